"""Colour, kept apart from content: painters draw tone and tint, a random palette turns them into RGB.

Every class uses the same law of palettes and the same law of mean tone, so neither colour nor brightness
tells the class. Tone is lightness in OKLab; a palette only chooses hue and chroma along it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatproof.data.two_factor.dice import Dice, Floats


@dataclass(frozen=True)
class Palette:
    """Two ramps of colour from dark to light, given as OKLab (a, b) at their ends."""

    dark: tuple[complex, complex]
    light: tuple[complex, complex]


def random_palette(dice: Dice, chroma: tuple[float, float]) -> Palette:
    """Any hue for the first ramp, another for the second; hues drift from dark to light as in real light."""
    hue = dice.uniform(0.0, 360.0)
    second = hue + dice.sign() * dice.uniform(40.0, 180.0)
    ends = []
    for start in (hue, second):
        strength = dice.uniform(*chroma)
        drift = dice.uniform(-45.0, 45.0)
        ends.append((_ab(start, strength), _ab(start + drift, strength * dice.uniform(0.5, 1.0))))
    return Palette(dark=(ends[0][0], ends[1][0]), light=(ends[0][1], ends[1][1]))


def settle(tone: Floats, mean: float, spread: float) -> Floats:
    """The tones with the given mean and standard deviation, gently kept inside (0, 1)."""
    deviation = tone - tone.mean()
    deviation *= spread / max(float(np.sqrt((deviation**2).mean())), 1e-6)
    room = np.where(deviation > 0, 1.0 - mean, mean)
    bent = room * np.tanh(deviation / room)
    return np.asarray(np.clip(bent - bent.mean() + mean, 0.0, 1.0))


def colour(palette: Palette, tone: Floats, tint: Floats) -> NDArray[np.uint8]:
    """RGB of each pixel: its tone as lightness, its tint as the mixture of the two ramps."""
    first = palette.dark[0] * (1 - tone) + palette.light[0] * tone
    second = palette.dark[1] * (1 - tone) + palette.light[1] * tone
    # displays have no strong colours near black and white
    ab = (first * (1 - tint) + second * tint) * np.sqrt(np.clip(4 * tone * (1 - tone), 0.0, 1.0))
    lightness = 0.10 + 0.88 * tone
    return _quantise(_srgb(lightness, ab.real, ab.imag))


def _ab(hue: float, chroma: float) -> complex:
    angle = np.deg2rad(hue)
    return complex(chroma * np.cos(angle), chroma * np.sin(angle))


def _srgb(lightness: Floats, a: Floats, b: Floats) -> Floats:
    """OKLab (Ottosson 2020) to gamma-encoded sRGB in [0, 1]."""
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = np.stack(
        (
            4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
            -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
            -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
        ),
        axis=-1,
    )
    linear = np.clip(linear, 0.0, 1.0)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _quantise(rgb: Floats) -> NDArray[np.uint8]:
    # in float64 throughout: machines differ in the last bits of sin, exp and powers, which is a millionth of
    # a millionth of what would move a byte
    return np.floor(rgb * 255.0 + 0.5).astype(np.uint8)

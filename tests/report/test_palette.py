"""The eight colours of methods: distinguished by every eye, readable on their paper, the same in print."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, xyz2lab
from skimage.color.colorconv import xyz_from_rgb

# Machado et al. 2009, severity 1: what is left of linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "deuteranope": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanope": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
STYLE = (files("heatproof.report") / "style.css").read_text(encoding="utf-8")
BLOCKS = (
    STYLE.split("prefers-color-scheme: dark")[0],
    STYLE.split("prefers-color-scheme: dark")[1].split("@media")[0],
    STYLE.split("@media print")[1],
)
LIGHT, DARK, PRINT = (dict(re.findall(r"--(c\d|paper): (#\w+);", block)) for block in BLOCKS)
WHOLE = [dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in BLOCKS]
SCHEMES = ["light", "dark", "print"]
READABLE = 4.5  # of words against what is behind them (WCAG 2.1, AA)


def linear(colour: str) -> np.ndarray:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    value = np.array([int(digits[at : at + 2], 16) for at in (0, 2, 4)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_two_colours_differ(palette: dict[str, str], vision: str) -> None:
    seen = [np.clip(np.asarray(VISIONS[vision]) @ linear(palette[f"c{at}"]), 0, 1) for at in range(8)]
    lab = [xyz2lab(xyz_from_rgb @ colour) for colour in seen]
    assert min(float(deltaE_ciede2000(one, other)) for one, other in combinations(lab, 2)) > 10


@pytest.mark.parametrize("palette", [LIGHT, DARK, PRINT], ids=["light", "dark", "print"])
def test_every_colour_stands_out_from_its_paper(palette: dict[str, str]) -> None:
    bright = {name: float(xyz_from_rgb[1] @ linear(colour)) for name, colour in palette.items()}
    for at in range(8):
        low, high = sorted((bright[f"c{at}"], bright["paper"]))
        assert (high + 0.05) / (low + 0.05) >= 3


def test_print_has_the_colours_of_the_light_page() -> None:
    assert {name: PRINT[name] for name in PRINT if name != "paper"} == {
        name: LIGHT[name] for name in LIGHT if name != "paper"
    }


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    low, high = sorted(float(xyz_from_rgb[1] @ colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, other: str, share: float) -> np.ndarray:
    """CSS color-mix(in srgb, …), linear."""
    parts = []
    for one in (colour, other):
        digits = one[1:] if len(one) == 7 else "".join(2 * digit for digit in one[1:])
        parts.append(np.array([int(digits[at : at + 2], 16) for at in (0, 2, 4)]))
    value = np.round(share * parts[0] + (1 - share) * parts[1]).astype(int)
    return linear("#" + "".join(f"{channel:02x}" for channel in value))


@pytest.mark.parametrize("palette", WHOLE, ids=SCHEMES)
def test_names_in_the_colour_of_their_line_can_be_read(palette: dict[str, str]) -> None:
    rule = re.search(r"\.chart \.name { fill: color-mix\(in srgb, var\(--c, .*?\) (\d+)%, var\(--ink\)\)", STYLE)
    assert rule is not None
    share = int(rule[1]) / 100
    for name in [*(f"c{at}" for at in range(8)), "quiet", "soft"]:
        assert contrast(mixed(palette[name], palette["ink"], share), linear(palette["paper"])) >= READABLE


def colour_of_text(shade: str) -> str:
    """The variable that fills the number of a cell of this shade: the last rule that names it wins."""
    rules = re.findall(r"([^{}]*\.cell-text[^{}]*){[^}]*fill: var\(--([\w-]+)\)", STYLE)
    named = [colour for selector, colour in rules if f".h{shade} " in selector]
    return named[-1] if named else next(colour for selector, colour in rules if ".h" not in selector)


@pytest.mark.parametrize("palette", WHOLE, ids=SCHEMES)
@pytest.mark.parametrize("shade", ["z", *(f"{side}{step}" for side in "pn" for step in range(1, 6))])
def test_numbers_in_cells_can_be_read(palette: dict[str, str], shade: str) -> None:
    assert contrast(linear(palette[colour_of_text(shade)]), linear(palette[shade])) >= READABLE


@pytest.mark.parametrize("palette", WHOLE, ids=SCHEMES)
def test_quiet_words_can_be_read(palette: dict[str, str]) -> None:
    for words, behind in (("muted", "paper"), ("muted", "raised"), ("soft", "faint"), ("ember", "paper")):
        assert contrast(linear(palette[words]), linear(palette[behind])) >= READABLE
    hole = re.search(r"\.hole {[^}]*color: var\(--(\w+)\)", STYLE)
    assert hole is not None
    assert hole[1] == "soft"


@pytest.mark.parametrize("palette", WHOLE, ids=SCHEMES)
def test_deeper_shades_are_further_from_none(palette: dict[str, str]) -> None:
    for side in "pn":
        away = [contrast(linear(palette[f"{side}{step}"]), linear(palette["z"])) for step in range(1, 6)]
        assert away == sorted(away)
        assert min(np.diff(away)) > 0.1

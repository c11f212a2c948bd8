"""One colour rule for every heatmap: over the grey picture, warm for the class, cold against it."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float64]

# From faint to strong; zero is fully transparent. The two ramps stay apart for every kind of colour vision.
WARM = np.array([[255, 214, 140], [249, 150, 60], [221, 74, 30], [138, 16, 28]], dtype=np.float64)
COLD = np.array([[170, 214, 242], [92, 164, 222], [32, 104, 186], [14, 44, 116]], dtype=np.float64)
OPACITY = 0.92
PERCENTILE = 99.0
LEGEND_PAPER = 210.0  # the grey under a legend: that of a bright picture


def scaled(values: NDArray[Any]) -> Floats:
    """The map divided by the 99th percentile of its magnitudes, clipped to [-1, 1]; non-finite is 0."""
    finite = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    top = float(np.percentile(np.abs(finite), PERCENTILE)) or float(np.abs(finite).max())
    return np.clip(finite / top, -1.0, 1.0) if top > 0 else np.zeros_like(finite)


def overlay(
    picture: NDArray[np.uint8], values: NDArray[Any], region: NDArray[np.bool_] | None, side: int
) -> Image.Image:
    """The heatmap over the lightened grey picture, `side` pixels on its longer side, region outlined."""
    grey = np.asarray(_resized(picture, side).convert("L"), dtype=np.float64)
    # Lightened, so that the darkest heat is darker than the darkest picture.
    paper = 96 + grey * (255 - 96) / 255
    height, width = paper.shape
    heat = scaled(shrunk(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), width, height))
    strength = np.abs(heat)[..., None]
    colour = np.where(heat[..., None] >= 0, _ramp(WARM, strength), _ramp(COLD, strength))
    alpha = OPACITY * np.minimum(1.0, 1.35 * strength)
    mixed = (1 - alpha) * paper[..., None] + alpha * colour
    if region is not None:
        _outlined(mixed, region)
    return Image.fromarray(np.clip(mixed, 0, 255).astype(np.uint8))


def shown(picture: NDArray[np.uint8], region: NDArray[np.bool_] | None, side: int) -> Image.Image:
    """The picture itself with the region's outline."""
    pixels = np.asarray(_resized(picture, side), dtype=np.float64).copy()
    if region is not None:
        _outlined(pixels, region)
    return Image.fromarray(pixels.astype(np.uint8))


def legend(width: int, height: int) -> Image.Image:
    """The colours of heat on grey: strongest evidence against the class on the left, strongest for it on the right."""
    strength = np.linspace(-1, 1, width)[None].repeat(height, 0)
    size = np.abs(strength)[..., None]
    colour = np.where(strength[..., None] >= 0, _ramp(WARM, size), _ramp(COLD, size))
    alpha = OPACITY * np.minimum(1.0, 1.35 * size)
    return Image.fromarray(((1 - alpha) * LEGEND_PAPER + alpha * colour).astype(np.uint8))


def heat_uri(image: Image.Image) -> str:
    """A heatmap as an inline PNG of at most 256 colours: a third of the size, and it looks the same.

    The octree divides the space of colours. Median cut divides the pixels, most of which are grey, and would leave too
    few colours for a few hot pixels. JPEG smears single pixels.
    """
    buffer = io.BytesIO()
    reduced = image.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    reduced.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def photo_uri(image: Image.Image) -> str:
    """A picture itself as an inline JPEG: a photograph has more colours than any palette."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=88, subsampling=0, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def shrunk(values: NDArray[Any], width: int, height: int) -> Floats:
    """The map at another size: positive and negative parts are resized separately, and the stronger one is kept.

    Averaged together, neighbours of opposite sign would cancel, and a fine-grained map would look empty.
    """
    parts = [
        np.asarray(
            Image.fromarray(part.astype(np.float32)).resize((width, height), Image.Resampling.BILINEAR),
            dtype=np.float64,
        )
        for part in (np.maximum(values, 0), np.maximum(-values, 0))
    ]
    stronger: Floats = np.where(parts[0] >= parts[1], parts[0], -parts[1])
    return stronger


def _ramp(stops: Floats, strength: Floats) -> Floats:
    at = strength[..., 0] * (len(stops) - 1)
    return np.stack([np.interp(at, np.arange(len(stops)), stops[:, channel]) for channel in range(3)], axis=-1)


def _resized(picture: NDArray[np.uint8], side: int) -> Image.Image:
    image = Image.fromarray(np.ascontiguousarray(picture)).convert("RGB")
    share = side / max(image.size)
    size = max(1, round(image.width * share)), max(1, round(image.height * share))
    return image.resize(size, Image.Resampling.LANCZOS if share < 1 else Image.Resampling.BICUBIC)


def _outlined(pixels: Floats, region: NDArray[np.bool_]) -> None:
    """A white line just inside the region and a dark one just outside: visible on any colour."""
    height, width = pixels.shape[:2]
    inside = np.asarray(Image.fromarray(np.asarray(region, dtype=np.uint8) * 255).resize((width, height))) > 127
    pixels[inside & ~_eroded(inside)] = 255
    pixels[~inside & _eroded_outside(inside)] = 40


def _eroded(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    padded = np.pad(inside, 1, mode="edge")
    kept: NDArray[np.bool_] = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:] & inside
    return kept


def _eroded_outside(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    touched: NDArray[np.bool_] = ~_eroded(~inside)
    return touched

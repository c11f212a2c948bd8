"""The eight colours of methods: told apart by every eye, readable on their paper, the same in print."""

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
LIGHT, DARK, PRINT = (
    dict(re.findall(r"--(c\d|paper): (#\w+);", block))
    for block in (
        STYLE.split("prefers-color-scheme: dark")[0],
        STYLE.split("prefers-color-scheme: dark")[1].split("@media")[0],
        STYLE.split("@media print")[1],
    )
)


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

"""Whose classes got their numbers from the alphabet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from heatproof import data
from heatproof.data._support.class_order import alphabetical
from heatproof.data._support.files import as_view
from heatproof.errors import BadInput
from heatproof.types import View


def _folder(root: Path, names: Sequence[str]) -> str:
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(root / name / "x.png")
    return str(root)


@pytest.mark.parametrize(
    ("names", "guessed"),
    [
        (("dog", "ant"), ("ant", "dog")),
        (("3_dog", "9_ant"), ()),
        (("3", "9"), ()),
        (("3_dog", "ant"), ("3_dog", "ant")),
    ],
)
def test_folders(tmp_path: Path, names: Sequence[str], guessed: Sequence[str]) -> None:
    folder = _folder(tmp_path / "pictures", names)
    assert alphabetical(data.load(folder)) == guessed
    assert alphabetical(data.load(folder, masks=folder)) == guessed
    if guessed:
        assert alphabetical(data.load(folder, classes=[*names, "eel"])) == ()
    together = _folder(tmp_path / "pair" / "images", names), _folder(tmp_path / "pair" / "masks", names)
    assert alphabetical(data.load(str(Path(together[0]).parent))) == guessed


@pytest.mark.parametrize(
    ("labels", "guessed"),
    [
        (("dog", "ant"), ("ant", "dog")),
        (("3", "9"), ()),
        (("3_dog", "9_ant"), ()),
        (("", ""), ()),
        (("dog", ""), ("dog",)),
    ],
)
def test_tables(tmp_path: Path, labels: Sequence[str], guessed: Sequence[str]) -> None:
    (tmp_path / "0.png").touch()
    rows = [f"{i}.png,{label}" for i, label in enumerate(labels)]
    (tmp_path / "table.csv").write_text("\n".join(["path,label", *rows]))
    assert alphabetical(data.load(str(tmp_path / "table.csv"))) == guessed


def test_a_flat_folder_and_data_drawn_on_the_spot_name_nothing(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "x.png")
    assert alphabetical(data.load(str(tmp_path))) == ()
    assert alphabetical(data.load("two_factor(count=2)")) == ()


def test_a_view_may_be_given_by_its_size() -> None:
    assert as_view(64) == View(64)
    assert as_view([224, 256, "bicubic"]) == View(224, 256, "bicubic")
    assert data.load("folder(path=x, view=64)").view == View(64)  # type: ignore[attr-defined]
    for odd in ("big", 0, -3, True, [], ["a"], [1, 2, "bilinear", 4], 2.5):
        with pytest.raises(BadInput, match="view must be a size in pixels"):
            as_view(odd)

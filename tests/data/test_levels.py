"""12 bits in 16-bit files reach a model over the whole range when levels say so, and are named when they do not."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from heatproof.data._support.files import as_levels
from heatproof.data._support.pictures import deep_grey
from heatproof.data._support.value_range import narrow, sentence, spans
from heatproof.data.folder import Folder
from heatproof.data.masked_folder import MaskedFolder
from heatproof.data.table import Table
from heatproof.errors import BadInput
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.types import Batch

RAMP = np.linspace(0, 4095, 32 * 32).round().astype(np.uint16).reshape(32, 32)


def twelve_bits(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RAMP).save(folder / "a.png")
    return folder


def test_twelve_bits_in_sixteen_fill_the_range_when_levels_say_so(tmp_path: Path) -> None:
    twelve_bits(tmp_path)
    as_they_are = Folder(str(tmp_path)).batch([0])
    assert float(as_they_are.images.max()) == pytest.approx(4095 / 65535)
    assert list(narrow(as_they_are)) == ["a.png"]
    right = Folder(str(tmp_path), levels=(0, 4095)).batch([0])
    torch.testing.assert_close(right.images[0, 0], torch.from_numpy(RAMP / 4095).float(), atol=1e-6, rtol=0)
    assert len(right.images.unique()) == len(np.unique(RAMP))
    assert not narrow(right)


def test_every_data_set_of_files_has_levels(tmp_path: Path) -> None:
    home = twelve_bits(tmp_path / "images")
    (tmp_path / "masks").mkdir()
    Image.new("L", (32, 32), 255).save(tmp_path / "masks" / "a.png")
    (tmp_path / "t.csv").write_text("path\nimages/a.png\n")
    plain = Folder(str(home))
    for dataset in (
        parse("dataset", f"folder(path={home},levels=[0,4095])"),
        parse("dataset", f"folder(path={home},levels=4095)"),
        MaskedFolder(str(tmp_path), levels=(0, 4095)),
        Table(str(tmp_path / "t.csv"), levels=(0, 4095)),
    ):
        assert spans(dataset.batch([0]).images) == [(0.0, 1.0)]
        again = recipe.build(recipe.plain(dataset))
        assert again == dataset
        assert again.levels == (0.0, 4095.0)
    assert dataset.digest([0]) != Table(str(tmp_path / "t.csv")).digest([0])  # else the old numbers would be found
    assert spans(plain.batch([0]).images)[0][1] < 0.07


def test_eight_bits_are_what_they_are_whatever_the_levels(tmp_path: Path) -> None:
    Image.linear_gradient("L").save(tmp_path / "a.png")
    assert torch.equal(
        Folder(str(tmp_path), levels=(0, 4095)).batch([0]).images, Folder(str(tmp_path)).batch([0]).images
    )


def test_values_beyond_the_levels_are_refused_in_grey_and_in_colour(tmp_path: Path) -> None:
    twelve_bits(tmp_path)
    cv2.imwrite(str(tmp_path / "b.png"), np.stack([RAMP] * 3, -1))
    reasons = Folder(str(tmp_path), levels=(0, 1023)).batch([0, 1]).missing
    assert reasons["a.png"].startswith("grey values must lie in [0, 1023], got [0, 4095]")
    assert reasons["b.png"].startswith("grey values must lie in [0, 1023], got [0, 4095]")
    assert list(narrow(Folder(str(tmp_path)).batch([0, 1]))) == ["a.png", "b.png"]


@pytest.mark.parametrize("levels", [(5, 5), (9, 1), "dark", (1, 2, 3), float("nan"), (0, float("inf"))])
def test_levels_that_mean_nothing(levels: object) -> None:
    with pytest.raises(BadInput, match="levels must be the grey values of black and white"):
        as_levels(levels)


@given(st.integers(-2000, 2000), st.integers(1, 5000), st.integers(0, 2**31))
def test_black_white_and_all_between(black: int, span: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(black, black + span + 1, (9, 9), dtype=np.int32)
    values[0, :2] = black, black + span
    found = np.asarray(deep_grey(Image.fromarray(values), (black, black + span)))
    np.testing.assert_allclose(found / 255, (values - black) / span, atol=0.5001 / 255)


def test_what_is_narrow_is_reported_with_the_remedy() -> None:
    images = torch.rand(3, 1, 8, 8)
    images[1] = images[1] * 0.06
    batch = Batch(images=images, targets=torch.zeros(3, dtype=torch.int64), ids=("a", "b", "c"))
    found = narrow(batch)
    assert list(found) == ["b"]
    assert sentence(found, 3).startswith("1 of 3 pictures fill less than a tenth of their value range (b: 0.00")
    assert "levels=[0,4095]" in sentence(found, 3)
    assert not narrow(Batch(images=images[:0], targets=torch.zeros(0, dtype=torch.int64), ids=()))

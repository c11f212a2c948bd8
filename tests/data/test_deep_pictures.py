"""Pictures of more than 8 bits, several pages and other channels than grey and colour keep what they hold."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
import torch
from PIL import Image

import heatproof
from heatproof import data
from heatproof.data._support.pictures import apply_view
from heatproof.data._support.pixels import as_input
from heatproof.data.folder import Folder
from heatproof.errors import BadInput, BadModel
from heatproof.spec import recipe
from heatproof.types import View

GREY = np.linspace(0, 65535, 32 * 32).round().astype(np.uint16).reshape(32, 32)
COLOUR = np.stack([GREY, GREY[::-1], GREY.T], -1)  # red, green, blue


def image(folder: Path, **fields: object) -> torch.Tensor:
    found = Folder(str(folder), **fields).batch([0])  # type: ignore[arg-type]
    assert not found.missing, found.missing
    return found.images[0]


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_sixteen_bits_stay_sixteen(tmp_path: Path, ending: str) -> None:
    Image.fromarray(GREY).save(tmp_path / f"a.{ending}")
    found = image(tmp_path, grey=True)
    assert len(found.unique()) == 32 * 32
    np.testing.assert_allclose(found[0], GREY / 65535, atol=1e-7)
    assert torch.equal(image(tmp_path), found.expand(3, -1, -1))


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_so_do_colours(tmp_path: Path, ending: str) -> None:
    cv2.imwrite(str(tmp_path / f"a.{ending}"), COLOUR[..., ::-1])
    found = image(tmp_path)
    np.testing.assert_allclose(found, COLOUR.transpose(2, 0, 1) / 65535, atol=1e-7)
    luma = np.tensordot([0.299, 0.587, 0.114], COLOUR / 65535, ([0], [2]))
    np.testing.assert_allclose(image(tmp_path, grey=True)[0], luma, atol=1e-6)
    with pytest.raises(AssertionError, match="grey values must lie in"):
        image(tmp_path, levels=(0, 4095))


def test_transparent_colours_lie_on_white(tmp_path: Path) -> None:
    cover = np.full((32, 32, 1), 65535, dtype=np.uint16)
    cover[:8] = 0
    cv2.imwrite(str(tmp_path / "a.png"), np.concatenate([COLOUR[..., ::-1], cover], -1))
    found = image(tmp_path)
    assert found[:, :8].eq(1).all()
    np.testing.assert_allclose(found[:, 8:], COLOUR.transpose(2, 0, 1)[:, 8:] / 65535, atol=1e-7)


def test_pages_of_a_stack(tmp_path: Path) -> None:
    stack = np.stack([GREY, GREY[::-1], GREY.T])
    tifffile.imwrite(tmp_path / "a.tif", stack, photometric="minisblack")
    for page in range(3):
        np.testing.assert_allclose(image(tmp_path, grey=True, page=page)[0], stack[page] / 65535, atol=1e-7)
    assert Folder(str(tmp_path), page=3).batch([0]).missing["a.tif"].startswith("page must be below 3")
    digests = {Folder(str(tmp_path), page=page).digest([0]) for page in (None, 1, 2)}
    assert len(digests) == 3
    again = recipe.build(recipe.plain(Folder(str(tmp_path), page=2)))
    assert again == Folder(str(tmp_path), page=2)


def test_pages_of_eight_bits(tmp_path: Path) -> None:
    pages = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue")]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    assert image(tmp_path)[:, 0, 0].tolist() == [1, 0, 0]
    assert image(tmp_path, page=1)[:, 0, 0].tolist() == [0, 0, 1]
    assert (
        Folder(str(tmp_path), page=2).batch([0]).missing["a.tif"]
        == "page must be below 2, the number of its pages, got 2"
    )


@pytest.mark.parametrize("planar", ["contig", "separate"])
def test_five_channels_are_five_channels(tmp_path: Path, planar: str) -> None:
    values = np.random.default_rng(0).integers(0, 256, (20, 24, 5), dtype=np.uint8)
    stored = values if planar == "contig" else values.transpose(2, 0, 1)
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="minisblack", planarconfig=planar)
    np.testing.assert_allclose(image(tmp_path), values.transpose(2, 0, 1) / 255, atol=1e-6)
    assert Folder(str(tmp_path), View(12, 16)).batch([0]).images.shape == (1, 5, 12, 12)


def test_axes_are_those_that_the_file_declares(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 65536, (3, 4, 16, 18), dtype=np.uint16)
    tifffile.imwrite(tmp_path / "a.ome.tif", values, metadata={"axes": "ZCYX"})
    assert image(tmp_path, page=1).shape == (4, 16, 18)
    np.testing.assert_allclose(image(tmp_path, page=2), values[2] / 65535, atol=1e-7)


def test_white_may_be_the_smallest_value(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", GREY, photometric="miniswhite")
    np.testing.assert_allclose(image(tmp_path, grey=True)[0], 1 - GREY / 65535, atol=1e-6)


def test_a_file_may_say_its_largest_value(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", GREY // 16, extratags=[(281, "H", 1, 4095, True)])
    np.testing.assert_allclose(image(tmp_path, grey=True)[0], GREY // 16 / 4095, atol=1e-6)


def test_numbers_without_a_usual_range_need_levels(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "a.tif", GREY.astype(np.int16) // 64)
    assert "values of type int16 have no usual black and white" in Folder(str(tmp_path)).batch([0]).missing["a.tif"]
    assert float(image(tmp_path, levels=(-600, 600)).std()) > 0.1


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_a_view_cuts_deep_pictures_as_it_cuts_others(interpolation: str) -> None:
    values = np.random.default_rng(0).integers(0, 256, (50, 70), dtype=np.uint8)
    view = View(24, 32, interpolation)  # type: ignore[arg-type]
    plain = apply_view(Image.fromarray(values), view)
    deep = as_input((values / 255).astype(np.float32)[None], view)
    torch.testing.assert_close(deep, plain, atol=1.1 / 255, rtol=0)


def test_pictures_of_unlike_channels_are_two_data_sets(tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "a.tif", np.zeros((16, 16, 5), dtype=np.uint8), photometric="minisblack", planarconfig="contig"
    )
    Image.new("RGB", (16, 16)).save(tmp_path / "b.png")
    with pytest.raises(BadInput, match=r"a.tif has 5, b.png has 3; make a data set of each kind"):
        Folder(str(tmp_path)).batch([0, 1])


def test_arrays_in_memory_keep_their_bits_and_channels() -> None:
    deep = heatproof.pictures(np.stack([GREY, GREY])[:, None])
    np.testing.assert_allclose(deep.batch([1]).images[0, 0], GREY / 65535, atol=1e-7)
    twelve = heatproof.pictures((GREY // 16)[None, None], levels=(0, 4095))
    np.testing.assert_allclose(twelve.batch([0]).images[0, 0], GREY // 16 / 4095, atol=1e-6)
    many = heatproof.pictures(torch.rand(2, 7, 30, 40), view=View(16, 20))
    assert many.batch([0, 1]).images.shape == (2, 7, 16, 16)
    with pytest.raises(BadInput, match="picture 000000: grey values must lie in"):
        heatproof.pictures(GREY[None, None], levels=(0, 4095)).batch([0])


def test_the_value_range_of_the_command_line_reaches_the_files(tmp_path: Path) -> None:
    Image.fromarray(GREY // 16).save(tmp_path / "a.png")
    found = data.between(data.load(str(tmp_path)), "0,4095")
    assert found.levels == (0, 4095)  # type: ignore[attr-defined]
    mosaic = data.between(data.load(f"mosaic(of=folder(path={tmp_path}))"), "4095")
    assert mosaic.of.levels == (0, 4095)  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match="a value range of their own"):
        data.between(data.load("two_factor"), "0,1")


@pytest.mark.parametrize("resize", [None, 64])
def test_a_view_need_not_be_a_square(tmp_path: Path, resize: int | None) -> None:
    """Height and width, squeezed, or cut from the middle as a square would be."""
    values = np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    Image.fromarray(values).save(tmp_path / "a.png")
    found = Folder(str(tmp_path), View((24, 48), resize)).batch([0]).images
    assert found.shape == (1, 3, 24, 48)
    if resize is not None:
        square = Folder(str(tmp_path), View(48, resize)).batch([0]).images
        torch.testing.assert_close(found, square[:, :, 12:36], atol=1.5 / 255, rtol=0)
    again = recipe.build(recipe.plain(Folder(str(tmp_path), View((24, 48), resize))))
    assert again.view == View((24, 48), resize)


def test_a_network_for_pictures_that_are_no_squares(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "def factory():\n"
        "    layers = torch.nn.Conv2d(3, 4, 8, 8), torch.nn.Flatten(), torch.nn.Linear(4 * 3 * 6, 5)\n"
        "    return torch.nn.Sequential(*layers)\n"
        "factory.size = (24, 48)\n"
    )
    model = heatproof.load(f"{tmp_path}/mine.py:factory")
    assert model.view == View((24, 48))
    assert model.fixed_size
    Image.new("RGB", (200, 90), "red").save(tmp_path / "a.png")
    shown = data.seen_by(model, Folder(str(tmp_path))).batch([0])
    assert heatproof.explain(model, shown.images, "saliency").shape == (1, 24, 48)
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text().replace("(24, 48)", "'large'"))
    with pytest.raises(BadModel, match="size must be a number of pixels, or height and width, got 'large'"):
        heatproof.load(f"{tmp_path}/mine.py:factory")

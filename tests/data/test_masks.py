import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from heatproof.data._support.masks import binarise, check_same_picture, read_region, undecided
from heatproof.data._support.pictures import apply_view, read_picture
from heatproof.errors import BadInput
from heatproof.types import View


def test_above_half_is_inside():
    mask = Image.fromarray(np.array([[0, 127, 128, 255]], dtype=np.uint8))
    assert np.asarray(binarise(mask)).tolist() == [[0, 0, 255, 255]]
    deep = Image.fromarray(np.array([[0, 32767, 40000, 65535]], dtype=np.uint16))
    assert np.asarray(binarise(deep)).tolist() == [[0, 0, 255, 255]]
    assert np.asarray(binarise(Image.fromarray(np.array([[False, True]])))).tolist() == [[0, 255]]


def test_an_empty_mask_is_empty_but_zeros_and_ones_are_refused():
    assert not np.asarray(binarise(Image.new("L", (4, 4), 0))).any()
    with pytest.raises(BadInput, match="brightest pixel is 1 of 255"):
        binarise(Image.new("L", (4, 4), 1))


def test_transparent_is_outside():
    mask = Image.new("RGBA", (4, 4), (255, 255, 255, 0))
    mask.putpixel((1, 1), (255, 255, 255, 255))
    assert np.asarray(binarise(mask)).sum() == 255


def test_sizes_must_agree_or_at_least_their_aspect():
    check_same_picture((600, 450), (600, 450))
    check_same_picture((300, 225), (600, 450))
    check_same_picture((301, 226), (600, 450))
    check_same_picture((33, 25), (401, 300))  # as rounding makes them
    with pytest.raises(BadInput, match="mask is 450x600 pixels and the picture 600x450"):
        check_same_picture((450, 600), (600, 450))
    with pytest.raises(BadInput, match="aspect"):
        check_same_picture((512, 512), (600, 450))


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(40, 120), st.integers(40, 120)),
    st.tuples(st.floats(0, 0.7), st.floats(0, 0.7)),
    st.sampled_from([View(32, 40), View(32), View(48, 48), None]),
    st.sampled_from([1, 2]),
)
def test_the_region_lies_where_the_object_lies_in_the_cut_picture(tmp_path_factory, size, corner, view, finer):
    """A white block on black: the picture's bright pixels and the region must be the same ones."""
    width, height = size
    block = np.zeros((height, width), dtype=np.uint8)
    top, left = int(corner[0] * height), int(corner[1] * width)
    block[top : top + 12, left : left + 12] = 255
    path = tmp_path_factory.getbasetemp() / "mask.png"
    Image.fromarray(block.repeat(finer, 0).repeat(finer, 1)).save(path)
    region = read_region(path, size, view)
    picture = apply_view(Image.fromarray(block).convert("RGB"), view)[0]
    assert region.dtype == torch.bool
    assert region.shape == picture.shape
    assert region[picture > 0.97].all()
    assert not region[picture < 0.03].any()


def test_a_mask_a_quarter_turn_from_its_picture_is_refused_with_the_reason():
    for mask in ((450, 600), (225, 300)):
        with pytest.raises(BadInput, match="a quarter turn apart: pictures are shown as their EXIF orientation says"):
            check_same_picture(mask, (600, 450))
    with pytest.raises(BadInput, match="aspect ratio") as output:
        check_same_picture((512, 512), (600, 450))
    assert "quarter" not in str(output.value)


def turned(path, orientation, size):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", size, (90, 120, 30)).save(path, exif=exif)
    return path


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tiff", ".webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_whether_a_size_tells_how_a_mask_of_a_turned_picture_lies(tmp_path, suffix, orientation):
    photo = turned(tmp_path / f"photo{suffix}", orientation, (40, 30))
    square = turned(tmp_path / f"square{suffix}", orientation, (40, 40))
    upright, stored, even = (tmp_path / f"{name}.png" for name in ("upright", "stored", "even"))
    for path, size in ((upright, (30, 40)), (stored, (40, 30)), (even, (20, 20))):
        Image.new("L", size, 255).save(path)
    assert undecided(photo, stored) == (orientation in (2, 3, 4)), "sizes stay: nobody can know"
    assert undecided(square, even) == (orientation > 1)
    if orientation >= 5:
        assert not undecided(photo, upright), "it lies as the picture is shown"
        read_region(upright, read_picture(photo).size, None)
        with pytest.raises(BadInput, match="a quarter turn apart"):
            read_region(stored, read_picture(photo).size, None)
    along = turned(tmp_path / f"along{suffix}", orientation, (40, 40))
    assert not undecided(square, along), "it was turned along with its picture"


def test_pictures_and_masks_that_cannot_be_read_are_no_reason_to_doubt(tmp_path):
    photo = turned(tmp_path / "photo.jpg", 3, (40, 30))
    (tmp_path / "broken.png").write_bytes(b"broken")
    assert not undecided(photo, tmp_path / "broken.png")
    assert not undecided(tmp_path / "broken.png", tmp_path / "gone.png")

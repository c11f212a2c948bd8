import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from heatproof.data.masks import binarise, check_same_picture, read_region
from heatproof.data.pictures import apply_view
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

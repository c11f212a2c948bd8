import io
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from heatproof.data._support.pictures import SMALLEST_SIDE, apply_view, cut, read_picture
from heatproof.errors import BadInput
from heatproof.types import View


def noise(width=40, height=30, mode="RGB", seed=0):
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values).convert(mode)


def smooth(width, height):
    across = np.linspace(0, 255, width)[None, :] * np.ones((height, 1))
    down = np.linspace(0, 255, height)[:, None] * np.ones((1, width))
    return Image.fromarray(np.stack([across, down, 255 - across], -1).astype(np.uint8))


MODES = {
    ".png": ("RGB", "L", "1", "P", "RGBA", "LA"),
    ".tiff": ("RGB", "L", "1", "P", "RGBA", "LA", "CMYK", "YCbCr"),
    ".jpg": ("RGB", "L", "CMYK"),
    ".webp": ("RGB",),
    ".gif": ("P",),
}


@pytest.mark.parametrize(("suffix", "mode"), [(suffix, mode) for suffix in MODES for mode in MODES[suffix]])
def test_every_mode_becomes_rgb_of_the_same_size(tmp_path, suffix, mode):
    path = tmp_path / f"picture{suffix}"
    noise(mode=mode).save(path)
    with Image.open(path) as stored:
        assert stored.mode == mode
    picture = read_picture(path)
    assert (picture.mode, picture.size) == ("RGB", (40, 30))


def test_cmyk_keeps_its_colours(tmp_path):
    Image.new("RGB", (20, 20), (200, 30, 60)).convert("CMYK").save(tmp_path / "a.tiff")
    assert read_picture(tmp_path / "a.tiff").getpixel((3, 3)) == (200, 30, 60)


def test_sixteen_bits_are_scaled_not_clipped(tmp_path):
    ramp = np.linspace(0, 65535, 64 * 16).reshape(16, 64).astype(np.uint16)
    Image.fromarray(ramp).save(tmp_path / "a.png")
    grey = np.asarray(read_picture(tmp_path / "a.png"))[..., 0]
    np.testing.assert_allclose(grey, ramp / 257.0, atol=0.51)


def test_floats_in_the_unit_interval_are_scaled_and_others_refused(tmp_path):
    ramp = np.linspace(0, 1, 256).reshape(16, 16).astype(np.float32)
    Image.fromarray(ramp).save(tmp_path / "a.tiff")
    np.testing.assert_allclose(np.asarray(read_picture(tmp_path / "a.tiff"))[..., 0], ramp * 255, atol=0.51)
    Image.fromarray(ramp * 70).save(tmp_path / "b.tiff")
    with pytest.raises(BadInput, match=r"grey values must lie in \[0, 1\]"):
        read_picture(tmp_path / "b.tiff")
    ramp[3, 3] = np.nan
    Image.fromarray(ramp).save(tmp_path / "c.tiff")
    with pytest.raises(BadInput, match="nan"):
        read_picture(tmp_path / "c.tiff")


def test_transparent_pixels_lie_on_white_whatever_colour_hides_in_them(tmp_path):
    Image.new("RGBA", (20, 20), (255, 0, 0, 0)).save(tmp_path / "a.png")
    assert read_picture(tmp_path / "a.png").getpixel((5, 5)) == (255, 255, 255)
    palette = Image.new("P", (20, 20), 7)
    palette.putpalette([value for _ in range(256) for value in (9, 9, 9)])
    palette.save(tmp_path / "b.png", transparency=7)
    assert read_picture(tmp_path / "b.png").getpixel((5, 5)) == (255, 255, 255)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    noise().save(tmp_path / "a.png", exif=exif)
    picture = read_picture(tmp_path / "a.png")
    assert picture.size == ((30, 40) if orientation >= 5 else (40, 30))
    upright = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}[orientation]
    wanted = noise() if upright is None else noise().transpose(Image.Transpose(upright))
    assert np.array_equal(np.asarray(picture), np.asarray(wanted))


def test_only_the_first_frame_of_an_animation(tmp_path):
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert read_picture(tmp_path / "a.gif").getpixel((5, 5)) == (255, 0, 0)


@pytest.mark.parametrize("size", [(1, 1), (SMALLEST_SIDE - 1, 100)])
def test_tiny_pictures_are_refused(tmp_path, size):
    noise(*size).save(tmp_path / "a.png")
    with pytest.raises(BadInput, match=f"{size[0]}x{size[1]} pixels"):
        read_picture(tmp_path / "a.png")


def test_files_that_are_no_pictures(tmp_path):
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "text.png").write_text("no picture")
    for name in ("empty.jpg", "folder.jpg", "text.png", "absent.jpg", "x" * 5000 + ".jpg", "nul\0.jpg"):
        with pytest.raises(BadInput):
            read_picture(tmp_path / name)


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    noise(40, 30).save(tmp_path / "a.png")
    with pytest.raises(BadInput, match="DecompressionBomb"):
        read_picture(tmp_path / "a.png")


@settings(max_examples=80, deadline=None)
@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"II*\x00", b"BM"]),
)
def test_any_bytes_are_a_picture_or_refused(tmp_path_factory, content, magic):
    path = tmp_path_factory.getbasetemp() / "fuzz.jpg"
    path.write_bytes(magic + content)
    picture = None
    with suppress(BadInput):
        picture = read_picture(path)
    assert picture is None or picture.mode == "RGB"


def encoded(suffix):
    stream = io.BytesIO()
    noise(64, 48).save(stream, suffix)
    return stream.getvalue()


ENCODED = {suffix: encoded(suffix) for suffix in ("jpeg", "png", "webp", "tiff")}


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(ENCODED)), st.floats(0, 0.98))
def test_truncated_pictures_are_refused(tmp_path_factory, suffix, share):
    content = ENCODED[suffix]
    path = tmp_path_factory.getbasetemp() / "cut.jpg"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(BadInput):
        read_picture(path)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(ENCODED)), st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_never_escapes(tmp_path_factory, suffix, place, change):
    content = bytearray(ENCODED[suffix])
    content[place % len(content)] ^= change
    path = tmp_path_factory.getbasetemp() / "flipped.jpg"
    path.write_bytes(content)
    picture = None
    with suppress(BadInput):
        picture = read_picture(path)
    assert picture is None or picture.mode == "RGB"


@settings(max_examples=60, deadline=None)
@given(st.integers(8, 90), st.integers(8, 90), st.integers(4, 40), st.integers(0, 20))
def test_a_view_is_resize_then_central_crop(width, height, size, margin):
    resize = size + margin
    picture = smooth(width, height)
    short, long = resize, int(resize * max(width, height) / min(width, height))
    whole = picture.resize((long, short) if width > height else (short, long), Image.Resampling.BICUBIC)
    left, top = round((whole.width - size) / 2), round((whole.height - size) / 2)
    wanted = np.asarray(whole.crop((left, top, left + size, top + size)), dtype=np.float32)
    got = apply_view(picture, View(size, resize, "bicubic"))
    assert got.shape == (3, size, size)
    assert got.dtype == torch.float32
    # To one grey level of rounding: the filter sees the same neighbours, also across the edges of the crop.
    assert np.abs(got.permute(1, 2, 0).numpy() * 255 - wanted).max() <= 1.01


def test_a_view_equals_torchvision(tmp_path):
    from heatproof.models._support.torchvision_repair import import_torchvision

    torchvision = import_torchvision("a test")
    from torchvision.transforms import CenterCrop, Compose, InterpolationMode, Resize, ToTensor

    assert torchvision is not None
    for size in ((500, 375), (333, 401), (224, 224)):
        reference = Compose([Resize(256, InterpolationMode.BILINEAR), CenterCrop(224), ToTensor()])(smooth(*size))
        got = apply_view(smooth(*size), View(224, 256))
        assert (got - reference).abs().max() <= 1.01 / 255


def test_squeezing_shows_everything():
    assert cut(300, 100, View(50)) == (0, 0, 300, 100)
    assert apply_view(smooth(300, 100), View(50)).shape == (3, 50, 50)


def test_without_a_view_pixels_are_as_stored():
    picture = noise()
    got = apply_view(picture, None)
    assert np.array_equal((got * 255).round().permute(1, 2, 0).numpy(), np.asarray(picture))
    assert 0 <= got.min() <= got.max() <= 1


def test_a_view_larger_than_what_it_resizes_to():
    with pytest.raises(BadInput, match="resize 10 and size 20"):
        apply_view(noise(), View(20, 10))


def test_a_long_thin_picture_needs_no_gigabyte():
    assert apply_view(noise(30000, 8), View(224, 256)).shape == (3, 224, 224)

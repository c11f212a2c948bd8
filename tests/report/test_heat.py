"""The colour rule: zero shows the picture, warm is for, cold is against, and scale does not matter."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from heatproof.report.heat import heat_uri, overlay, photo_uri, scaled, shown, shrunk

GREY = np.full((32, 32, 3), 128, dtype=np.uint8)


def test_zero_is_neutral() -> None:
    pixels = np.asarray(overlay(GREY, np.zeros((32, 32)), None, 32))
    assert (pixels == pixels[0, 0]).all()
    assert len(set(pixels[0, 0].tolist())) == 1


def test_for_is_warm_and_against_is_cold() -> None:
    values = np.concatenate([np.full((16, 32), 1.0), np.full((16, 32), -1.0)])
    pixels = np.asarray(overlay(GREY, values, None, 32)).astype(int)
    assert pixels[4, 16, 0] > pixels[4, 16, 2] + 50
    assert pixels[28, 16, 2] > pixels[28, 16, 0] + 50


def test_the_unit_of_a_map_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 20))
    np.testing.assert_allclose(scaled(values), scaled(values * 1e-6), rtol=1e-9)
    assert np.abs(scaled(values)).max() == 1


def test_hopeless_maps_are_still_pictures() -> None:
    for values in (np.full((8, 8), np.nan), np.zeros((8, 8)), np.full((8, 8), np.inf)):
        assert np.isfinite(scaled(values)).all()
    lonely = np.zeros((40, 40))
    lonely[3, 3] = 5.0
    assert scaled(lonely).max() == 1  # the percentile is zero, the one pixel still shows


def test_the_region_is_outlined_and_the_aspect_kept() -> None:
    region = np.zeros((20, 40), dtype=bool)
    region[5:15, 10:30] = True
    picture = np.full((20, 40, 3), 128, dtype=np.uint8)
    image = shown(picture, region, 80)
    assert image.size == (80, 40)
    pixels = np.asarray(image)
    assert (pixels == 255).any()
    assert (pixels == 40).any()
    assert (np.asarray(shown(picture, None, 80)) == 128).all()


def decoded(uri: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))).convert("RGB")).astype(int)


def test_inline_pictures_say_what_they_are() -> None:
    for uri, kind in ((heat_uri(shown(GREY, None, 16)), "png"), (photo_uri(shown(GREY, None, 16)), "jpeg")):
        assert uri.startswith(f"data:image/{kind};base64,")
        assert decoded(uri).shape == (16, 16, 3)


def test_a_photograph_keeps_colours_that_no_palette_holds() -> None:
    dice, steps = np.random.default_rng(0), np.fft.fftfreq(112)
    distance = np.maximum(np.hypot(steps, steps[:, None]), steps[1])
    waves = np.fft.fft2(dice.normal(size=(3, 112, 112))) / distance**1.5  # as smooth as photographs are
    colours = np.moveaxis(np.fft.ifft2(waves).real, 0, -1)
    colours = 255 * (colours - colours.min((0, 1))) / np.ptp(colours, axis=(0, 1))
    picture = shown(colours.astype(np.uint8), None, 112)
    assert np.abs(decoded(photo_uri(picture)) - np.asarray(picture)).mean() < 5
    assert np.abs(decoded(heat_uri(picture)) - np.asarray(picture)).mean() > 6  # a palette, for comparison


def hot(picture: Image.Image) -> np.ndarray:
    """How far each pixel is from grey."""
    pixels = np.asarray(picture).astype(int)
    return pixels.max(-1) - pixels.min(-1)


def test_neighbours_of_opposite_sign_do_not_cancel_whenshrunk() -> None:
    y, x = np.mgrid[0:64, 0:64]
    checkered = np.where((x + y) % 2 == 0, 1.0, -1.0)
    # A zero frame holds the scale: without it a map that had shrunk to almost nothing would be blown up again.
    checkered[:8] = 0
    checkered[8, 0] = 1.0
    pixels = hot(overlay(GREY, checkered, None, 32))
    assert np.median(pixels[8:]) > 100
    assert (pixels[:3] == 0).all()


def test_a_map_of_one_sign_isshrunk_as_any_picture_is() -> None:
    y, x = np.mgrid[0:64, 0:64] / 64
    smooth = np.exp(-8 * ((x - 0.4) ** 2 + (y - 0.6) ** 2))
    plain = np.asarray(Image.fromarray(smooth.astype(np.float32)).resize((32, 32), Image.Resampling.BILINEAR))
    for sign in (1, -1):
        np.testing.assert_allclose(shrunk(sign * smooth, 32, 32), sign * plain, atol=1e-7)


def test_a_few_hot_pixels_keep_their_colour_in_the_page() -> None:
    """The picture's many greys must not use up the palette."""
    rng = np.random.default_rng(0)
    texture = rng.normal(size=(112, 112)).cumsum(0).cumsum(1)
    grey = (255 * (texture - texture.min()) / np.ptp(texture)).astype(np.uint8)
    values = np.where(rng.random((112, 112)) < 0.02, rng.normal(size=(112, 112)), 0.0)
    drawn = overlay(np.stack([grey] * 3, -1), values, None, 112)
    uri = heat_uri(drawn)
    strong = hot(drawn) > 60
    assert strong.sum() > 50
    away = np.abs(decoded(uri) - np.asarray(drawn).astype(int)).max(-1)
    assert away[strong].mean() < 5
    assert len(uri) < 112 * 112 * 3 / 2  # less than half of the bare pixels

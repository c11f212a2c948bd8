"""Segmenters: every pixel has a label, labels have no holes, and the counts are known."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from networks import batch, pictures
from PIL import Image

from heatproof.errors import BadInput, BadShape, Missing, NotApplicable
from heatproof.occlusion.segmenters.felzenszwalb import Felzenszwalb
from heatproof.occlusion.segmenters.from_file import FromFile, labels_of, save_segments
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.patches import Patches
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.occlusion.segmenters.quickshift import Quickshift
from heatproof.occlusion.segmenters.segment_anything import SegmentAnything
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.occlusion.segmenters.squares import Squares
from heatproof.occlusion.segments import segments_of
from heatproof.types import Segmenter

ALL: list[Segmenter] = [
    Grid(),
    Grid(7),
    Squares(),
    Slic(),
    Slic(space="lab", compactness=10.0),
    Slic(space="volume"),
    Felzenszwalb(),
    Quickshift(),
    Pixels(),
    Patches(8),
]


@pytest.mark.parametrize("segmenter", ALL, ids=str)
def test_labels_are_dense_and_belong_to_the_picture_alone(segmenter: Segmenter) -> None:
    images = pictures(2)
    segments = segmenter(images)
    assert segments.shape == (2, 32, 32)
    assert segments.dtype == torch.int64
    for image, labels in zip(images, segments, strict=True):
        assert torch.equal(labels.unique(), torch.arange(int(labels.max()) + 1))
        assert torch.equal(segmenter(image[None])[0], labels)
    assert segmenter(images[:0]).shape == (0, 32, 32)


@pytest.mark.parametrize("segmenter", [Slic(), Squares(), Felzenszwalb(), Quickshift(), Grid()], ids=str)
def test_grey_pictures_can_be_cut_too(segmenter: Segmenter) -> None:
    assert int(segmenter(pictures(1)[:, :1]).max()) > 0


def test_a_grid_is_as_equal_as_it_can_be() -> None:
    sizes = torch.bincount(Grid(5)(pictures(1)).flatten())
    assert len(sizes) == 25
    assert int(sizes.max()) <= 49
    assert int(sizes.min()) >= 36
    with pytest.raises(BadInput, match="at most 32"):
        Grid(33)(pictures(1))


@pytest.mark.parametrize(("asked", "made"), [(25, 25), (100, 100), (500, 484)])
@pytest.mark.parametrize("space", ["grey", "volume"])
def test_slic_makes_as_many_superpixels_as_the_paper(asked: int, made: int, space: str) -> None:
    # On 224×224 pictures at compactness 1 the published counts are the same for any photo.
    image = pictures(1, size=224) * 0.2 + 0.4
    segments = Slic(asked, space=space)(image)  # type: ignore[arg-type]
    assert int(segments.max()) + 1 == pytest.approx(made, rel=0.03)


def test_patches_match_tokens() -> None:
    segments = Patches(8)(pictures(1))[0]
    assert int(segments.max()) == 15
    assert int(segments[8, 0]) == 4
    assert int(Patches(10)(pictures(1)).max()) == 15


def test_label_maps_come_back_from_files(tmp_path: Path) -> None:
    shown = batch(3)
    segments = Grid(4)(shown.images)
    save_segments(tmp_path / "folder", shown, segments)
    assert torch.equal(segments_of(shown, FromFile(str(tmp_path / "folder"))), segments)
    maps = {name: labels.numpy() * 10 + 3 for name, labels in zip(shown.ids, segments, strict=True)}
    np.savez(tmp_path / "all.npz", **maps)
    assert torch.equal(segments_of(shown, FromFile(str(tmp_path / "all.npz"))), segments)
    for name, labels in zip(shown.ids, segments, strict=True):
        Image.fromarray(labels.byte().numpy()).save(tmp_path / f"{name}.png")
    assert torch.equal(segments_of(shown, FromFile(str(tmp_path))), segments)


def test_missing_and_misfit_label_maps_are_named(tmp_path: Path) -> None:
    shown = batch(1)
    with pytest.raises(BadInput, match="picture0"):
        FromFile(str(tmp_path)).for_batch(shown)
    np.save(tmp_path / "picture0.npy", np.zeros((8, 8), np.int64))
    with pytest.raises(BadShape, match=r"\(32, 32\)"):
        FromFile(str(tmp_path)).for_batch(shown)
    np.save(tmp_path / "picture0.npy", np.zeros((32, 32)))
    with pytest.raises(BadShape, match="integers"):
        FromFile(str(tmp_path)).for_batch(shown)
    with pytest.raises(NotApplicable, match="path"):
        FromFile().for_batch(shown)
    with pytest.raises(NotApplicable, match="image id"):
        FromFile(str(tmp_path))(shown.images)


def test_smaller_masks_lie_on_top() -> None:
    large, small = np.zeros((6, 6), bool), np.zeros((6, 6), bool)
    large[:4], small[1:3, 1:3] = True, True
    labels = labels_of([small, large], (6, 6))
    assert labels[5, 5] == 0
    assert labels[0, 0] == 1
    assert labels[1, 1] == 2


def test_segment_anything_is_asked_for_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotApplicable, match="checkpoint"):
        SegmentAnything()(pictures(1))
    monkeypatch.setitem(sys.modules, "segment_anything", None)
    with pytest.raises(Missing, match="segment-anything"):
        SegmentAnything(str(tmp_path / "none.pth"))(pictures(1))

    def masks(picture: np.ndarray) -> list[dict[str, np.ndarray]]:
        assert picture.shape == (32, 32, 3)
        assert picture.dtype == np.uint8
        return [{"segmentation": picture[:, :, 0] > 128}]

    class Network:
        def eval(self) -> Network:
            return self

    fake = SimpleNamespace(
        sam_model_registry={"vit_b": lambda checkpoint: Network()},
        SamAutomaticMaskGenerator=lambda network: SimpleNamespace(generate=masks),
    )
    monkeypatch.setitem(sys.modules, "segment_anything", fake)
    with pytest.raises(BadInput, match="no Segment-Anything checkpoint"):
        SegmentAnything(str(tmp_path / "none.pth"))(pictures(1))
    (tmp_path / "weights.pth").touch()
    with pytest.raises(BadInput, match="vit_b"):
        SegmentAnything(str(tmp_path / "weights.pth"), "vit_q")(pictures(1))
    segments = SegmentAnything(str(tmp_path / "weights.pth"))(pictures(2))
    assert torch.equal(segments == 1, (pictures(2)[:, 0] * 255).round() > 128)

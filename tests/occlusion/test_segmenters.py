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
from skimage.segmentation import slic

from heatproof.errors import BadInput, BadShape, Missing, NotApplicable
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, IMAGENET_STD
from heatproof.occlusion.segmenters.felzenszwalb import Felzenszwalb
from heatproof.occlusion.segmenters.from_file import FromFile, labels_of, save_segments
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.patches import Patches
from heatproof.occlusion.segmenters.pixels import Pixels
from heatproof.occlusion.segmenters.quickshift import Quickshift
from heatproof.occlusion.segmenters.segment_anything import SegmentAnything
from heatproof.occlusion.segmenters.slic import Slic, superpixels
from heatproof.occlusion.segmenters.squares import Squares
from heatproof.occlusion.segments import relabelled, segments_of
from heatproof.spec import recipe
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


@pytest.mark.parametrize(("requested", "made"), [(25, 25), (100, 100), (500, 484)])
@pytest.mark.parametrize("space", ["grey", "volume"])
def test_slic_makes_as_many_superpixels_as_the_paper(requested: int, made: int, space: str) -> None:
    # On 224×224 pictures at compactness 1 the published counts are the same for any photo.
    image = pictures(1, size=224) * 0.2 + 0.4
    segments = Slic(requested, space=space)(image)  # type: ignore[arg-type]
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


@pytest.mark.parametrize("kind", ["npz", "npy", "png"])
def test_other_label_maps_under_the_same_path_are_another_segmenter(tmp_path: Path, kind: str) -> None:
    def write(labels: np.ndarray) -> str:
        if kind == "npz":
            np.savez(tmp_path / "all.npz", picture0=labels)
        elif kind == "npy":
            np.save(tmp_path / "picture0.npy", labels)
        else:
            Image.fromarray(labels).save(tmp_path / "picture0.png")
        return str(tmp_path / "all.npz" if kind == "npz" else tmp_path)

    labels = np.arange(32 * 32, dtype=np.uint8).reshape(32, 32) % 4
    before = recipe.plain(Occlusion(segmenter=FromFile(write(labels))))
    assert recipe.plain(Occlusion(segmenter=FromFile(write(labels)))) == before
    assert recipe.build(before["fields"]["segmenter"]) == FromFile(write(labels))
    assert recipe.key(Occlusion(segmenter=FromFile(write(labels.T.copy())))) != recipe.key(before)
    with pytest.raises(BadInput, match="something else now"):
        recipe.build(before["fields"]["segmenter"])


def test_slic_clusters_the_mean_of_normalised_channels() -> None:
    for image in pictures(3, size=64):
        shown = (image - torch.tensor(IMAGENET_MEAN).view(3, 1, 1)) / torch.tensor(IMAGENET_STD).view(3, 1, 1)
        seen = [relabelled(slic(one.double().numpy().mean(0), 16, 0.1, channel_axis=None)) for one in (shown, image)]
        assert not torch.equal(*seen)
        assert torch.equal(Slic(16, compactness=0.1)(image[None])[0], seen[0])


def test_squares_stay_square_whatever_they_show() -> None:
    """Superpixels of the same picture follow its edges instead."""
    image = pictures(1, size=64)
    cells = Grid(4)(image)
    assert float((Squares(16)(image) == cells).double().mean()) > 0.9
    assert float((Slic(16, compactness=0.01)(image) == cells).double().mean()) < 0.5


def test_a_pixel_of_a_volume_goes_where_most_of_its_channels_do() -> None:
    image = pictures(1, size=64)
    shown = (image - torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1)) / torch.tensor(IMAGENET_STD).view(1, 3, 1, 1)
    volume = slic(shown[0].double().numpy(), 16, 0.1, channel_axis=None)
    found = superpixels(image, 16, 0.1, "volume")[0].numpy()
    agreed = (volume[1] == volume[2]) & (volume[0] != volume[1])
    assert agreed.sum() > 20  # pixels whose first channel is outvoted
    # Labels are numbered anew: the same old label is the same new one.
    new = {old: found[(volume == old).all(0)] for old in np.unique(volume)}
    named = {old: int(labels[0]) for old, labels in new.items() if len(labels)}
    message = [
        (named[old], int(label)) for old, label in zip(volume[1][agreed], found[agreed], strict=True) if old in named
    ]
    assert len(message) > 20
    assert all(wanted == got for wanted, got in message)


def test_smaller_masks_lie_on_top() -> None:
    large, small = np.zeros((6, 6), bool), np.zeros((6, 6), bool)
    large[:4], small[1:3, 1:3] = True, True
    labels = labels_of([small, large], (6, 6))
    assert labels[5, 5] == 0
    assert labels[0, 0] == 1
    assert labels[1, 1] == 2


def test_segment_anything_gives_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

"""Imputers: what is kept is untouched, what is hidden is filled, and each does what its name says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import pictures, small_cnn, small_vit
from PIL import Image
from scipy import ndimage
from torch import Tensor

from heatproof.data.folder import Folder
from heatproof.errors import BadInput, NotApplicable
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.occlusion.game import Game
from heatproof.occlusion.imputers.blur import Blur, blurred
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.histogram import Histogram
from heatproof.occlusion.imputers.internal import Internal
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, Mean
from heatproof.occlusion.imputers.nearest import Nearest
from heatproof.occlusion.imputers.noise import Noise
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.imputers.train_set import TrainSet, pool
from heatproof.occlusion.imputers.uniform import Uniform
from heatproof.occlusion.occluded_images import shown as occluded
from heatproof.occlusion.occlusion import Occlusion, impute
from heatproof.spec import recipe
from heatproof.types import Batch, Imputer, Model, View


@dataclass(frozen=True)
class Kept:
    """Pictures in memory as a data set."""

    name: str = "kept"
    seed: int = 1
    count: int = 5

    def __len__(self) -> int:
        return self.count

    def ids(self) -> tuple[str, ...]:
        return tuple(f"{self.seed}-{i}" for i in range(self.count))

    def batch(self, indices: list[int], /) -> Batch:
        images = pictures(self.count, self.seed)[list(indices)]
        return Batch(images, torch.zeros(len(images), dtype=torch.int64), tuple(self.ids()[i] for i in indices))

    def digest(self, indices: list[int], /) -> str:
        return f"{self.seed}"


@dataclass(frozen=True)
class WatchedTrainSet:
    """A train set that notes whose donors the game asks for."""

    donors: TrainSet
    calls: list[str]
    random: ClassVar[bool] = True

    def recipe(self) -> str:
        return "watched"

    def for_batch(self, batch: Batch, /) -> Imputer:
        self.calls.extend(batch.ids)
        return self.donors.for_batch(batch)

    def __call__(self, images: Tensor, keep: Tensor, /, seeds: list[int] | None = None) -> Tensor:
        raise AssertionError("the game must say whose pictures they are")


ALL: list[Imputer] = [
    Mean(),
    Constant(),
    Uniform(),
    Noise(),
    Blur(),
    Nearest(),
    Telea(),
    Histogram(),
    TrainSet(Kept()),
]


def keeps(count: int, share: float, seed: int = 0, size: int = 32) -> Tensor:
    cells = torch.rand(count, 8, 8, generator=torch.Generator().manual_seed(seed)) < share
    return cells.repeat_interleave(size // 8, 1).repeat_interleave(size // 8, 2)


@pytest.mark.parametrize("imputer", ALL, ids=lambda i: type(i).__name__)
@given(share=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), seed=st.integers(0, 1000))
def test_kept_pixels_are_bit_identical_and_the_rest_is_a_picture(imputer: Imputer, share: float, seed: int) -> None:
    images, keep = pictures(2, seed % 5), keeps(2, share, seed)
    filled = imputer(images, keep, seeds=[seed, seed + 1])
    shown = keep[:, None].expand_as(images)
    assert torch.equal(filled[shown], images[shown])
    assert filled.shape == images.shape
    assert bool(((filled >= 0) & (filled <= 1)).all())


@pytest.mark.parametrize("imputer", ALL, ids=lambda i: type(i).__name__)
def test_a_row_does_not_depend_on_its_batch_mates(imputer: Imputer) -> None:
    images, keep = pictures(4), keeps(4, 0.5)
    together = imputer(images, keep, seeds=[3, 4, 5, 3])
    for i, seed in enumerate([3, 4, 5, 3]):
        assert torch.equal(imputer(images[[i]], keep[[i]], seeds=[seed])[0], together[i])


@pytest.mark.parametrize("imputer", [Uniform(), Noise(), Histogram(), TrainSet(Kept())], ids=lambda i: type(i).__name__)
def test_random_imputers_follow_their_seed(imputer: Imputer) -> None:
    images, keep = pictures(1), keeps(1, 0.5)
    draws = [imputer(images, keep, seeds=[seed]) for seed in range(12)]
    assert torch.equal(draws[0], imputer(images, keep, seeds=[0]))
    assert any(not torch.equal(draws[0], draw) for draw in draws[1:])
    with pytest.raises(BadInput, match="one seed per image"):
        imputer(images, keep)


def test_the_game_restores_what_a_careless_imputer_paints_over() -> None:
    images, keep = pictures(2), keeps(2, 0.5)
    painted = impute(lambda images, keep, seeds=None: torch.zeros_like(images), images, keep)
    assert torch.equal(painted, torch.where(keep[:, None], images, 0.0))


def test_mean_is_zero_after_normalisation_and_suits_grey_pictures() -> None:
    hidden = torch.zeros(1, 32, 32, dtype=torch.bool)
    filled = Model("m", torch.nn.Identity(), IMAGENET_MEAN, (0.2, 0.2, 0.2)).normalised(Mean()(pictures(1), hidden))
    assert float(filled.abs().max()) < 1e-6
    grey = Mean()(pictures(1)[:, :1], hidden)
    assert float(grey[0, 0, 0, 0]) == pytest.approx(sum(IMAGENET_MEAN) / 3)
    with pytest.raises(BadInput, match="3 channels"):
        Mean((0.1, 0.2))(pictures(1), hidden)


def test_constant_takes_one_number_for_all_channels() -> None:
    assert Constant(0.5) == Constant((0.5,))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"\[0, 1\]"):
        Constant((2.0,))


def test_blur_is_scipys() -> None:
    image = pictures(1)
    expected = ndimage.gaussian_filter(image[0].double().numpy(), (0, 2.0, 2.0), mode="nearest", truncate=3.0)
    np.testing.assert_allclose(blurred(image, 2.0)[0].numpy(), expected, atol=1e-5)


def test_nearest_takes_the_nearest() -> None:
    images, keep = pictures(1), torch.zeros(1, 32, 32, dtype=torch.bool)
    keep[0, 5, 5] = keep[0, 20, 28] = True
    filled = Nearest()(images, keep)
    assert torch.equal(filled[0, :, 0, 0], images[0, :, 5, 5])
    assert torch.equal(filled[0, :, 31, 31], images[0, :, 20, 28])


def test_telea_is_opencvs() -> None:
    images, keep = pictures(2), keeps(2, 0.7)
    filled = Telea()(images, keep)
    for image, shown, found in zip(images, keep, filled, strict=True):
        picture = (image * 255).round().byte().permute(1, 2, 0).contiguous().numpy()
        expected = cv2.inpaint(picture, (~shown).byte().numpy(), 3, cv2.INPAINT_TELEA)
        got = (found * 255).round().byte().permute(1, 2, 0).numpy()
        assert np.array_equal(got, expected)
    assert Telea()(images[:, :1], keep).shape == (2, 1, 32, 32)


def test_histogram_knows_only_visible_colours() -> None:
    images = torch.ones(1, 3, 8, 8)  # pure white lies on the edge of the last bin
    images[:, :, :, 4:] = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)
    keep = torch.zeros(1, 8, 8, dtype=torch.bool)
    keep[:, :, :4] = True
    for seed in range(8):
        assert torch.equal(Histogram()(images, keep, seeds=[seed]), torch.ones_like(images))


def test_histogram_draws_colours_in_their_share() -> None:
    images = torch.zeros(1, 3, 10, 10)
    images[:, :, :2] = 1.0  # a fifth of the picture, and a quarter of what is visible
    keep = torch.ones(1, 10, 10, dtype=torch.bool)
    keep[:, 8:] = False
    white = [float(Histogram()(images, keep, seeds=[s])[0, 0, 9, 9]) for s in range(400)]
    assert sum(white) / 400 == pytest.approx(0.25, abs=0.08)


def test_a_cell_of_the_histogram_gives_the_mean_of_its_visible_pixels_alone() -> None:
    images = torch.full((1, 3, 4, 4), 0.90)
    images[:, :, :, 2:] = 0.98  # the same cell, and hidden
    keep = torch.zeros(1, 4, 4, dtype=torch.bool)
    keep[:, :, :2] = True
    filled = Histogram()(images, keep, seeds=[0])
    torch.testing.assert_close(filled[0, :, 0, 3], torch.full((3,), 0.90))


def test_the_histogram_has_the_papers_seven_bins() -> None:
    """Levels an eighth of the range apart are distinguished, a tenth within a bin is not."""
    levels = torch.tensor([(i + 0.25) / 7 for i in range(7)])
    images = levels.view(1, 1, 1, 7).expand(1, 3, 8, 7).clone()
    keep = torch.ones(1, 8, 7, dtype=torch.bool)
    keep[:, 7] = False
    drawn = [float(Histogram()(images, keep, seeds=[s])[0, 0, 7, 0]) for s in range(200)]
    assert sorted({round(value, 4) for value in drawn}) == pytest.approx(levels.tolist(), abs=1e-4)
    images[:, :, 0] += 0.5 / 7  # two levels per bin come out as one mean
    drawn = [float(Histogram()(images, keep, seeds=[s])[0, 0, 7, 0]) for s in range(200)]
    assert len({round(value, 4) for value in drawn}) == 7


@pytest.mark.parametrize("imputer", [Telea(), Histogram()], ids=lambda i: type(i).__name__)
def test_with_nothing_visible_the_mean_colour_is_taken(imputer: Imputer) -> None:
    filled = imputer(pictures(1), torch.zeros(1, 32, 32, dtype=torch.bool), seeds=[0])
    torch.testing.assert_close(filled, torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1).expand(1, 3, 32, 32))


def test_train_set_never_gives_a_picture_itself_and_takes_one_donor_per_seed() -> None:
    donors = Kept(count=2)
    image = donors.batch([0]).images
    hidden = torch.zeros(3, 32, 32, dtype=torch.bool)
    for seed in range(6):
        filled = TrainSet(donors)(image.expand(3, -1, -1, -1), hidden, seeds=[seed] * 3)
        assert all(torch.equal(row, donors.batch([1]).images[0]) for row in filled)
    with pytest.raises(BadInput, match="another picture"):
        TrainSet(donors, count=1)(image, hidden[:1], seeds=[0])


def folder_of(place: Path, names: list[str], seed: int = 0) -> str:
    """Pictures of one colour each, distinguished by it."""
    for name, colour in zip(names, np.random.default_rng(seed).permutation(256), strict=False):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 32), (int(colour),) * 3).save(place / name)
    return str(place)


def test_other_donors_in_the_same_folder_are_another_imputer(tmp_path: Path) -> None:
    names = [f"{i}.png" for i in range(4)]
    hidden = torch.zeros(1, 32, 32, dtype=torch.bool)
    for make in (lambda: TrainSet(folder_of(tmp_path, names)), lambda: TrainSet(Folder(str(tmp_path)))):
        folder_of(tmp_path, names)
        before = make()
        first = before(pictures(1), hidden, seeds=[0])
        assert recipe.key(Occlusion(before)) == recipe.key(Occlusion(make()))
        assert recipe.build(recipe.plain(before)) == before
        message = recipe.plain(before)
        folder_of(tmp_path, names, seed=9)
        after = TrainSet(before.donors if isinstance(before.donors, str) else Folder(str(tmp_path)))
        assert recipe.key(Occlusion(after)) != recipe.key(Occlusion(before))
        assert not torch.equal(after(pictures(1), hidden, seeds=[0]), first)
        with pytest.raises(BadInput, match="something else now"):
            recipe.build(message)


def test_donors_are_drawn_from_all_classes_of_a_folder(tmp_path: Path) -> None:
    names = [f"{kind}/{i:02d}.png" for kind in ("apes", "bees", "cats") for i in range(20)]
    folder_of(tmp_path, names)
    chosen = pool(60, 20)
    assert len(set(chosen)) == 20
    assert chosen == pool(60, 20)
    assert {names[i].partition("/")[0] for i in chosen} == {"apes", "bees", "cats"}
    assert pool(5, 20) == [0, 1, 2, 3, 4]
    donors = TrainSet(str(tmp_path), count=20)
    hidden, image = torch.zeros(1, 32, 32, dtype=torch.bool), torch.zeros(1, 3, 32, 32)
    seen = {round(float(donors(image, hidden, seeds=[seed]).mean()) * 255) for seed in range(60)}
    colours = {name: int(c) for name, c in zip(names, np.random.default_rng(0).permutation(256), strict=False)}
    assert seen <= {colours[names[i]] for i in chosen}
    assert len(seen & {colours[name] for name in names if name.startswith("cats")}) > 1
    with pytest.raises(BadInput, match="at least 1 donor"):
        TrainSet(count=0)


def test_a_picture_is_not_its_own_donor_though_it_was_cut_otherwise(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("0.png", "1.png"):
        Image.fromarray(rng.integers(0, 256, (48, 64, 3), np.uint8)).save(tmp_path / name)
    shown = Folder(str(tmp_path), View(32, 40)).batch([0, 1])
    donors = TrainSet(Folder(str(tmp_path)))
    cut = [Folder(str(tmp_path), View(32, 32)).batch([i]).images[0] for i in (0, 1)]
    assert not torch.equal(cut[0], shown.images[0])
    hidden = torch.zeros(2, 1, 32, 32, dtype=torch.bool)
    for draw in range(8):
        filled = occluded(shown, hidden, Occlusion(donors), draw)
        assert torch.equal(filled[0, 0], cut[1])
        assert torch.equal(filled[1, 0], cut[0])
    calls: list[str] = []
    watched = WatchedTrainSet(donors, calls)
    Game(small_cnn(), shown, Occlusion(watched, draws=1)).value(torch.zeros(2, 1, 25, dtype=torch.bool))
    assert calls == list(shown.ids)


def test_donors_of_grey_pictures_are_grey(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ["0.png", "1.png"])
    grey = pictures(1)[:, :1]
    assert TrainSet(folder)(grey, torch.zeros(1, 32, 32, dtype=torch.bool), seeds=[0]).shape == grey.shape


def test_train_set_fits_its_donors_to_the_picture() -> None:
    hidden = torch.zeros(1, 48, 48, dtype=torch.bool)
    assert TrainSet(Kept())(pictures(1, size=48), hidden, seeds=[0]).shape == (1, 3, 48, 48)


def test_donors_come_from_the_training_split_by_default() -> None:
    from heatproof import data

    evaluated = {*data.load("two_factor").ids()}
    assert not evaluated & {*data.load(TrainSet().donors).ids()}


def dropped(model: Model, images: Tensor, kept: list[int]) -> Tensor:
    """The reference: the small transformer by hand, with only these patches."""
    network = model.network
    tokens = network.patch_embed(model.normalised(images)).flatten(2).transpose(1, 2)
    tokens = torch.cat([network.cls_token, tokens], 1) + network.pos_embed
    tokens = tokens[:, [0, *(k + 1 for k in kept)]]
    return network.head(network.norm(network.blocks(tokens))[:, 0]).detach()


def test_internal_drops_the_tokens_of_hidden_patches() -> None:
    model, images = small_vit(), pictures(3)
    patches = [[0, 5, 7], [], list(range(16))]
    keep = torch.zeros(3, 32, 32, dtype=torch.bool)
    for row, shown in enumerate(patches):
        for k in shown:
            keep[row, k // 4 * 8 : k // 4 * 8 + 8, k % 4 * 8 : k % 4 * 8 + 8] = True
    found = Internal().answer(model, images, keep)
    for row, shown in enumerate(patches):
        torch.testing.assert_close(found[[row]], dropped(model, images[[row]], shown), atol=1e-5, rtol=1e-5)
    assert not model.network.blocks[0]._forward_pre_hooks


def test_internal_understands_timm_and_torchvision() -> None:
    torchvision = import_torchvision("the test")
    import timm

    small = {
        "image_size": 32,
        "patch_size": 8,
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 16,
        "mlp_dim": 32,
    }
    networks = [
        timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=48, depth=2, num_classes=5),
        torchvision.models.VisionTransformer(**small, num_classes=5),
    ]
    images = pictures(2)
    keep = keeps(2, 0.5).view(2, 4, 8, 4, 8)[:, :, :1, :, :1].expand(-1, -1, 8, -1, 8).reshape(2, 32, 32)
    for network in networks:
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
        model = Model("vit", network)
        whole = Internal().answer(model, images, torch.ones_like(keep))
        torch.testing.assert_close(whole, model(images).detach(), atol=1e-4, rtol=1e-4)
        # A dropped patch is not there at all: what it showed cannot matter.
        painted = torch.where(keep[:, None], images, torch.rand_like(images))
        assert torch.equal(Internal().answer(model, images, keep), Internal().answer(model, painted, keep))
        assert not torch.allclose(Internal().answer(model, images, keep), whole, atol=1e-4)


def test_internal_says_where_it_does_not_apply() -> None:
    images, keep = pictures(1), torch.ones(1, 32, 32, dtype=torch.bool)
    with pytest.raises(NotApplicable, match=r"no picture|none"):
        Internal()(images, keep)
    with pytest.raises(NotApplicable, match=r"square patches|vision transformer"):
        Internal().answer(small_cnn(), images, keep)
    keep[0, 0, 0] = False
    with pytest.raises(NotApplicable, match=r"patches\(size=8\)"):
        Internal().answer(small_vit(), images, keep)


class Averaging(torch.nn.Module):
    """A transformer that reads the mean of its patches: without any, it has nothing to say."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = small_vit().network

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.inner.patch_embed(images).flatten(2).transpose(1, 2) + self.inner.pos_embed[:, 1:]
        return self.inner.head(self.inner.norm(self.inner.blocks(tokens)).mean(1))


class Counting(Averaging):
    """One that expects all of its tokens after the blocks."""

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.inner.patch_embed(images).flatten(2).transpose(1, 2)
        return self.inner.head((self.inner.blocks(tokens) + self.inner.pos_embed[:, 1:]).mean(1))


def test_internal_says_that_a_network_cannot_do_without_its_tokens() -> None:
    images, keep = pictures(1), torch.zeros(1, 32, 32, dtype=torch.bool)
    with pytest.raises(NotApplicable, match="'averaging' has no finite answer without them"):
        Internal().answer(Model("averaging", Averaging()), images, keep)
    keep[:, :8, :8] = True
    assert bool(Internal().answer(Model("averaging", Averaging()), images, keep).isfinite().all())
    keep[:, :8, :24] = True
    model = Model("counting", Counting())
    with pytest.raises(NotApplicable, match=r"'counting' cannot do with fewer \(.*size of tensor.*\)"):
        Internal().answer(model, images, keep)
    assert not model.network.inner.blocks[0]._forward_pre_hooks

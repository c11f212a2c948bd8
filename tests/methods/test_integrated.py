"""Path integrals: completeness, exactness, captum."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from captum.attr import GradientShap as CaptumGradientShap
from captum.attr import IntegratedGradients as CaptumIntegratedGradients
from hypothesis import given
from hypothesis import strategies as st
from networks import batch, linear, pictures, small_cnn, small_resnet, small_vit
from PIL import Image
from torch import Tensor, nn

from heatproof import engine
from heatproof.audit.other_classes import OtherClasses
from heatproof.data.folder import Folder
from heatproof.data.mosaic import Mosaic
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.baselines import blurred, start, starts
from heatproof.methods.deep_lift import DeepLift
from heatproof.methods.expected_gradients import ExpectedGradients
from heatproof.methods.gradient_shap import GradientShap
from heatproof.methods.guided_ig import GuidedIG
from heatproof.methods.integrated_gradients import FastIG, IGSmoothGrad, IntegratedGradients, gauss_legendre
from heatproof.methods.rise import RISE
from heatproof.spec import recipe
from heatproof.types import Batch, Model, View, read


class Album:
    """A data set in memory."""

    name = "album"

    def __init__(self, count: int, prefix: str = "album", size: int = 32) -> None:
        self.images = pictures(count, seed=9, size=size)
        self.prefix = prefix

    def __len__(self) -> int:
        return len(self.images)

    def ids(self) -> tuple[str, ...]:
        return tuple(f"{self.prefix}{i}" for i in range(len(self)))

    def batch(self, indices: list[int]) -> Batch:
        ids = tuple(self.ids()[i] for i in indices)
        return Batch(self.images[indices], torch.zeros(len(indices), dtype=torch.int64), ids)

    def digest(self, indices: list[int]) -> str:
        return ""


@given(st.integers(1, 40), st.integers(0, 20))
def test_the_quadrature_is_exact_for_polynomials(steps: int, degree: int) -> None:
    nodes, weights = gauss_legendre(steps)
    assert float(weights.sum()) == pytest.approx(1, abs=1e-12)
    if degree <= 2 * steps - 1:
        assert float((weights * nodes**degree).sum()) == pytest.approx(1 / (degree + 1), abs=1e-10)


def test_exact_on_a_linear_model() -> None:
    model, shown = linear(), batch(3)
    weights = model.network.fc.weight.detach()[shown.targets].view(-1, 3, 32, 32)
    full = (weights * shown.images).sum(1)
    assert torch.allclose(IntegratedGradients(steps=3)(model, shown), full, atol=1e-6)
    assert torch.allclose(FastIG()(model, shown), full, atol=1e-6)
    soft = (weights * (shown.images - blurred(shown.images))).sum(1)
    assert torch.allclose(IntegratedGradients(steps=3, baseline="blur")(model, shown), soft, atol=1e-6)


@pytest.mark.parametrize("baseline", ["black", "mean", "mid_grey", "blur", "uniform", "gaussian"])
@pytest.mark.parametrize("readout", ["logit", "probability"])
def test_complete(baseline: str, readout: str) -> None:
    shown = batch(2)
    for make in (small_cnn, small_resnet, small_vit):
        model = make()
        maps = IntegratedGradients(steps=100, baseline=baseline, readout=readout)(model, shown)  # type: ignore[arg-type]
        with torch.no_grad():
            ends = [
                read(model(images), shown.targets, readout)  # type: ignore[arg-type]
                for images in (shown.images, start(baseline, model, shown))
            ]
        gap = maps.sum((1, 2)) - (ends[0] - ends[1])
        assert float(gap.abs().max()) < 0.01 * float(maps.abs().sum((1, 2)).max())


def test_fast_ig_is_ig_from_the_mean_on_a_network_without_biases() -> None:
    model, shown = small_cnn(bias=False), batch(2)
    exact = IntegratedGradients(steps=4, baseline="mean")(model, shown)
    assert torch.allclose(FastIG()(model, shown), exact, rtol=1e-3, atol=1e-4 * float(exact.abs().max()))


def test_agrees_with_captum() -> None:
    shown = batch(3)
    for make in (small_cnn, small_resnet, small_vit):
        model = make()
        theirs = CaptumIntegratedGradients(model).attribute(
            shown.images, 0.0 * shown.images, shown.targets, n_steps=20, method="gausslegendre"
        )
        ours = IntegratedGradients(steps=20).channels(model, shown)
        assert torch.allclose(ours, theirs.float(), rtol=1e-3, atol=1e-4 * float(theirs.abs().max()))


def test_gradient_shap_estimates_what_captum_estimates() -> None:
    model, shown, album = small_resnet(), batch(1), Album(20)
    torch.manual_seed(0)
    theirs = CaptumGradientShap(model).attribute(
        shown.images, album.images, n_samples=600, stdevs=0.02, target=shown.targets
    )
    for method in (GradientShap(album, 600), ExpectedGradients(album, 600)):
        ours = method.channels(model, shown)
        agreement = torch.corrcoef(torch.stack([ours.flatten(), theirs.detach().float().flatten()]))[0, 1]
        assert float(agreement) > 0.95
        assert float(ours.sum()) == pytest.approx(float(theirs.sum()), abs=0.1 * float(ours.abs().sum()))


def test_expected_gradients_on_a_linear_model_tend_to_the_mean_background() -> None:
    model, shown, album = linear(), batch(2), Album(5)
    weights = model.network.fc.weight.detach()[shown.targets].view(-1, 3, 32, 32)
    wanted = weights * (shown.images - album.images.mean(0))
    got = ExpectedGradients(album, 1500).channels(model, shown)
    assert float((got - wanted).abs().max()) < 0.15 * float(wanted.abs().max())


@pytest.mark.parametrize(
    "method",
    [ExpectedGradients("black", 6), GradientShap("black", 6, noise=0.1), GradientShap("black", 6, noise=0.0)],
)
def test_every_draw_has_a_place_and_noise_of_its_own(
    method: ExpectedGradients | GradientShap, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []

    def listen(model: Model, images: Tensor, targets: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
        shown.append(images.clone())
        return torch.zeros_like(images), torch.zeros(len(images))

    monkeypatch.setattr(engine, "gradient", listen)
    pictures = batch(1)
    method(small_cnn(), pictures)
    points = torch.cat(shown).flatten(1)
    places = (points @ pictures.images.flatten()) / pictures.images.square().sum()  # all lie between black and picture
    assert float(places.std()) > 0.1
    assert 0 <= float(places.min()) < float(places.max()) <= 1.1
    if isinstance(method, ExpectedGradients):
        assert (places * 6).floor().tolist() == list(range(6))  # stratified
        assert float((places * 6 % 1).std()) > 0.1
    elif method.noise:
        noise = points / places[:, None] - pictures.images.flatten()
        assert float(torch.corrcoef(noise).fill_diagonal_(0).abs().max()) < 0.2
        assert float(noise.std()) == pytest.approx(0.1, rel=0.1)


def test_mosaics_serve_as_background_whatever_classes_the_model_has() -> None:
    model = dataclasses.replace(small_cnn(), view=View(32))
    assert ExpectedGradients(Mosaic(per_class=1), draws=2)(model, batch(2)).isfinite().all()


def test_stratified_points_close_the_completeness_gap_faster() -> None:
    model, shown = small_cnn(), batch(1)
    picture, album = shown.images[0], Album(1)
    album.images = torch.zeros_like(picture)[None]  # one background: the path is IG's from black
    exact = IntegratedGradients(steps=200)(model, shown)
    gaps = [
        float((method(model, shown) - exact).square().mean().sqrt())
        for method in (ExpectedGradients(album, 50), GradientShap(album, 50, noise=0.0))
    ]
    assert gaps[0] < gaps[1]


def test_backgrounds_are_resized_and_never_the_picture_itself() -> None:
    model, shown = small_cnn(), batch(2)
    large = Album(3, size=64)
    assert start(large, model, shown).shape == shown.images.shape
    own = Album(2, prefix="picture")
    own.images = shown.images
    assert torch.equal(start(own, model, shown), shown.images.flip(0))
    with pytest.raises(NotApplicable, match="no image other than 'picture0'"):
        start(Album(1, prefix="picture"), model, shown)


@pytest.mark.parametrize(
    "made",
    [
        *(ExpectedGradients, GradientShap, IntegratedGradients, IGSmoothGrad, GuidedIG, DeepLift, RISE),
        OtherClasses,
    ],
)
def test_what_the_pictures_to_begin_from_show_is_in_the_key(made: Callable[..., Any], tmp_path: Path) -> None:
    named = next(f.name for f in dataclasses.fields(made()) if f.name in ("baseline", "background", "pictures"))

    for number in range(3):
        Image.new("RGB", (8, 8), "grey").save(tmp_path / f"{number}.png")

    def key(colour: str) -> str:
        Image.new("RGB", (8, 8), colour).save(tmp_path / "last.png")
        return recipe.key(made(**{named: Folder(str(tmp_path))}))

    assert key("black") == key("black") != key("white")
    assert recipe.key(made()) == recipe.key(made())


def test_photos_of_any_size_are_begun_from_as_the_model_sees_them(tmp_path: Path) -> None:
    for side in (20, 30):
        Image.new("RGB", (side, side + 8), "white").save(tmp_path / f"{side}.png")
    model, shown, photos = dataclasses.replace(small_cnn(), view=View(32)), batch(2), Folder(str(tmp_path))
    assert torch.equal(start(photos, model, shown), torch.ones_like(shown.images))
    sizeless = start(photos, small_cnn(), shown)  # a model that does not say how it wants them
    assert torch.equal(sizeless, torch.ones_like(shown.images))
    grey = Model("grey", nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(1800, 10)), view=View(32))
    one_channel = dataclasses.replace(shown, images=shown.images[:, :1])
    assert torch.equal(start(photos, grey, one_channel), torch.ones_like(one_channel.images))


def test_random_baselines_differ_by_draw_and_fixed_ones_are_paid_once() -> None:
    model, shown = small_cnn(), batch(2)
    for baseline in ("uniform", "gaussian"):
        first, second = starts(baseline, model, shown, 2)
        assert not torch.equal(first, second)
        assert torch.equal(first, start(baseline, model, shown))
        assert 0 <= float(first.min()) < 0.05 < 0.95 < float(first.max()) <= 1
        clamped = ((first == 0) | (first == 1)).float().mean()
        assert (clamped > 0.005) == (baseline == "gaussian")
    assert IntegratedGradients(steps=10, draws=5).cost() == (10, 10)
    assert IntegratedGradients(steps=10, draws=5, baseline="gaussian").cost() == (50, 50)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(BadInput, match="steps must be at least 1"):
        IntegratedGradients(steps=0)
    with pytest.raises(BadInput, match=r"baseline must be one of black.*got 'grey'"):
        IntegratedGradients(steps=1, baseline="grey")(small_cnn(), batch(1))


def test_blurring_keeps_the_mean_and_loses_the_detail() -> None:
    shown = pictures(2)
    soft = blurred(shown)
    assert torch.allclose(soft.mean((2, 3)), shown.mean((2, 3)), atol=0.03)
    assert float(soft.std((2, 3)).max()) < 0.6 * float(shown.std((2, 3)).min())


def test_mid_grey_is_the_same_whatever_the_model_subtracts() -> None:
    shown = batch(2)
    for mean in ((0.0,), (0.45, 0.5, 0.4)):
        model = dataclasses.replace(small_cnn(), mean=mean)
        assert torch.equal(start("mid_grey", model, shown), torch.full_like(shown.images, 0.5))
    assert IntegratedGradients(steps=10, draws=5, baseline="mid_grey").cost() == (10, 10)

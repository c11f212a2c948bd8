"""Many pictures per image: each is painted once, whatever the blocks, and memory that is used again leaks nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from heatproof import engine, registry
from heatproof.attribute import attribute
from heatproof.methods._support.batched_views import values_of_views
from heatproof.methods._support.path_gradients import Stretch, stretches, sum_contributions, sum_gradients
from heatproof.methods.lime import LIME
from heatproof.methods.occlusion import SlidingOcclusion
from heatproof.occlusion.imputers.constant import Constant
from heatproof.spec.parse import parse
from heatproof.types import Batch, Images, Keep, Model, read


@given(st.integers(0, 6), st.integers(1, 9), st.integers(1, 20))
def test_every_point_comes_once_and_in_order(images: int, points: int, size: int) -> None:
    parts = list(stretches(images, points, size))
    met = [(image, point) for part in parts for image, at, _ in part for point in at]
    assert met == [(image, point) for image in range(images) for point in range(points)]
    for part in parts:
        rows = [row for *_, taken in part for row in range(taken.start, taken.stop)]
        assert rows == list(range(len(rows)))
        assert all(len(at) == taken.stop - taken.start for _, at, taken in part)
    assert all(sum(len(at) for _, at, _ in part) == size for part in parts[:-1])


@pytest.fixture(scope="module")
def curved() -> Model:
    """A network whose gradient at a picture is known: the squares of its pixels, weighted by class."""

    class Squares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))

        def forward(self, images: Images) -> torch.Tensor:
            return images.square().flatten(1).sum(1, keepdim=True) * self.weights

    return Model("squares", Squares())


def pictures(count: int) -> Batch:
    images = torch.rand(count, 3, 6, 5, generator=torch.Generator().manual_seed(0))
    return Batch(images, torch.arange(count) % 3, tuple(f"p{i}" for i in range(count)))


@pytest.mark.parametrize("count", [1, 3, 20])
def test_sums_of_gradients_are_those_of_every_point(curved: Model, count: int) -> None:
    batch, points = pictures(7), torch.linspace(0.1, 0.9, count)
    factor = curved.network.weights.detach()[batch.targets].view(-1, 1, 1, 1)
    weights = torch.arange(1, count + 1) / count

    def paint(stretch: Stretch, room: Images) -> None:
        image, at, _ = stretch
        torch.mul(points[at.start : at.stop, None, None, None], batch.images[image], out=room)

    expected = 2 * factor * batch.images * (weights * points).sum()
    assert torch.allclose(sum_gradients(curved, batch, paint, weights), expected, rtol=1e-5)

    def paint_path(stretch: Stretch, room: Images, steps: Images) -> None:
        paint(stretch, room)
        image, at, _ = stretch
        for step, point in zip(steps, at, strict=True):
            step.fill_(image + weights[point])

    which = torch.arange(7.0)[:, None]
    scale = ((which + weights) * points).sum(1).view(-1, 1, 1, 1)
    assert torch.allclose(
        sum_contributions(curved, batch, paint_path, count), 2 * factor * batch.images * scale, rtol=1e-5
    )


def test_values_of_views_are_those_of_every_view_alone(curved: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, shades = pictures(5), torch.linspace(0, 1, 11)

    def paint(stretch: Stretch, room: Images) -> None:
        image, at, _ = stretch
        torch.mul(shades[at.start : at.stop, None, None, None], batch.images[image], out=room)

    def logit(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return read(logits, targets, "logit")

    whole = values_of_views(curved, batch, paint, 11, logit)
    views = (shades[None, :, None, None, None] * batch.images[:, None]).flatten(0, 1)
    alone = read(engine.forward(curved, views), batch.targets.repeat_interleave(11), "logit").view(5, 11)
    assert torch.equal(whole, alone)
    monkeypatch.setattr("heatproof.engine.execute.PICTURES_BYTES", 1)  # the smallest blocks there are
    assert torch.equal(values_of_views(curved, batch, paint, 11, logit), whole)


@pytest.mark.parametrize("name", ["integrated_gradients", "expected_gradients", "occlusion", "smoothgrad", "score_cam"])
def test_pictures_that_want_gradients_are_explained_too(name: str) -> None:
    model = Model("small", nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()))
    plain = pictures(2)
    wanting = Batch(plain.images.clone().requires_grad_(), plain.targets, plain.ids)
    method = registry.find("method", name)
    assert torch.equal(attribute(model, wanting, method).maps, attribute(model, plain, method).maps)


@pytest.mark.parametrize(
    "label", ["smoothgrad(draws=2)", "integrated_gradients(baseline=uniform)", "gradient_shap(draws=2)"]
)
def test_how_pictures_lie_in_memory_is_not_in_the_noise(label: str, curved: Model) -> None:
    plain = pictures(2)
    lying = plain.images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    maps = [attribute(curved, plain.showing(images), parse("method", label)).maps for images in (plain.images, lying)]
    torch.testing.assert_close(maps[0], maps[1])


@dataclass(frozen=True)
class PaintsOver:
    """Works in place and answers in another precision, as a user's imputer may."""

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        images *= keep[:, None]
        return images.double()


@pytest.mark.parametrize("method", [LIME(samples=8, imputer=PaintsOver()), SlidingOcclusion(7, imputer=PaintsOver())])
def test_an_imputer_that_works_in_place_leaves_the_pictures_alone(method: Any, curved: Model) -> None:
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    batch = Batch(images.clone(), torch.tensor([0, 1]), ("a", "b"))
    ours = attribute(curved, batch, method).maps
    assert torch.equal(batch.images, images)
    black = replace(method, imputer=Constant((0.0,)))
    torch.testing.assert_close(ours, attribute(curved, batch, black).maps)

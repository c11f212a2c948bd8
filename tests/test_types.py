"""The border: what is let in, and how the rest is refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import small_cnn
from torch import nn

from heatproof.attribute import attribute
from heatproof.errors import BadModel, BadShape, HeatproofError
from heatproof.types import Attribution, Batch, Model, Scored, View, keyed_seed, read


def batch(count: int = 3, size: int = 32) -> Batch:
    images = torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))
    return Batch(images, torch.arange(count), tuple(f"p{i}" for i in range(count)))


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (torch.rand(3, 32, 32), "batch, channels, height, width"),
        (torch.randint(0, 255, (2, 3, 8, 8)), "divide by 255"),
        (torch.full((2, 3, 8, 8), 1.5), r"\[0, 1\]"),
        (torch.full((2, 3, 8, 8), float("nan")), r"\[0, 1\]"),
    ],
)
def test_pictures_that_are_not_pictures_are_refused(images: torch.Tensor, says: str) -> None:
    with pytest.raises(BadShape, match=says):
        Batch(images, torch.zeros(len(images), dtype=torch.int64), tuple("ab")[: len(images)])


def test_targets_ids_and_regions_must_fit() -> None:
    whole = batch()
    with pytest.raises(BadShape, match="targets must be 3 int64"):
        Batch(whole.images, torch.zeros(3), whole.ids)
    with pytest.raises(BadShape, match="ids must name each"):
        Batch(whole.images, whole.targets, whole.ids[:2])
    with pytest.raises(BadShape, match="regions must have shape"):
        Batch(whole.images, whole.targets, whole.ids, regions=torch.ones(3, 8, 8, dtype=torch.bool))


def test_a_selection_keeps_everything_together() -> None:
    regions = torch.rand(3, 32, 32) > 0.5
    whole = batch()
    whole = Batch(whole.images, whole.targets, whole.ids, regions, whole.images, {"label": torch.tensor([5, 6, 7])})
    part = whole.select([2, 0])
    assert part.ids == ("p2", "p0")
    assert part.labels["label"].tolist() == [7, 5]
    assert torch.equal(part.images, whole.images[[2, 0]])
    assert part.regions is not None
    assert torch.equal(part.regions, regions[[2, 0]])


@given(st.integers(0, 10), st.text(max_size=8), st.text(max_size=8))
def test_seeds_belong_to_the_work(seed: int, identity: str, component: str) -> None:
    assert keyed_seed(seed, identity, component) == keyed_seed(seed, identity, component)
    assert 0 <= keyed_seed(seed, identity, component) < 2**63
    assert keyed_seed(seed, identity, component) != keyed_seed(seed + 1, identity, component)


def test_draws_do_not_depend_on_batch_mates() -> None:
    whole = batch()
    draws = [torch.rand(2, generator=g) for g in whole.generators("noise")]
    alone = [torch.rand(2, generator=g) for g in whole.select([2]).generators("noise")]
    assert torch.equal(draws[2], alone[0])
    assert not torch.equal(draws[0], draws[1])


class Answers(nn.Module):
    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, images: torch.Tensor) -> object:
        return self.answer


@pytest.mark.parametrize("answer", [(torch.zeros(3, 10), 1), torch.zeros(3, 0), torch.zeros(2, 10), "logits"])
def test_a_network_that_does_not_answer_with_logits_is_refused_with_the_reason(answer: object) -> None:
    with pytest.raises(BadModel, match="logits"):
        Model("odd", Answers(answer))(batch().images)


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_one_number_per_picture_is_yes_or_no(shape: tuple[int, ...]) -> None:
    z = torch.tensor([-2.0, 0.5, 3.0])
    model = Model("yes or no", Answers(z.view(shape)))
    torch.testing.assert_close(model(batch().images).softmax(1)[:, 1], z.sigmoid())


def test_dropout_left_on_is_switched_off() -> None:
    network = nn.Sequential(nn.Dropout(0.5), nn.Flatten(), nn.Linear(3 * 32 * 32, 10)).train()
    model = Model("dropout", network)
    images = batch().images
    assert torch.equal(model(images), model(images))


def test_weights_decide_the_revision() -> None:
    one, other = small_cnn(), small_cnn()
    assert one.revision == other.revision
    with torch.no_grad():
        next(other.network.parameters()).add_(1e-3)
    assert one.revision != Model("m", other.network, other.mean, other.std).revision
    seen = [Model("m", one.network, view=view).revision for view in (None, View(64), View(64, 80))]
    assert len(set(seen)) == 3


@pytest.mark.parametrize(
    ("maps", "says"),
    [
        (lambda m, b: torch.rand(3, 3, 32, 32), r"must have shape \(3, 32, 32\), got \(3, 3, 32, 32\)"),
        (lambda m, b: torch.full((3, 32, 32), float("nan")), "first on 'p0'"),
        (lambda m, b: [1, 2, 3], "tensor of maps"),
    ],
)
def test_maps_are_checked_at_the_border(maps: object, says: str) -> None:
    with pytest.raises(BadShape, match=says):
        attribute(small_cnn(), batch(), maps)  # type: ignore[arg-type]


@given(st.integers(1, 5), st.integers(2, 6), st.integers(0, 1000))
def test_readouts(rows: int, classes: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, classes, generator=generator)
    targets = torch.randint(classes, (rows,), generator=generator)
    probability = read(logits, targets, "probability")
    assert torch.allclose(probability.log(), read(logits, targets, "log_probability"), atol=1e-5)
    assert torch.equal(read(logits, targets, "logit"), logits[torch.arange(rows), targets])


def test_every_error_is_ours() -> None:
    for kind in (BadModel, BadShape):
        assert issubclass(kind, HeatproofError)
    assert Scored(torch.zeros(1)).notes == ()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_maps_that_are_not_finite_are_no_attribution(bad):
    """They would still be ranked, and the score would look like any other."""
    batch = Batch(torch.rand(2, 3, 4, 4), torch.tensor([0, 1]), ("first", "second"))
    maps = torch.rand(2, 4, 4)
    maps[1, 2, 2] = bad
    with pytest.raises(BadShape, match="finite, got NaN or infinity on 1 of 2 images, first on 'second'"):
        Attribution(None, batch, None, maps)
    with pytest.raises(BadShape, match=r"shape \(2, 4, 4\)"):
        Attribution(None, batch, None, torch.rand(2, 4))
    Attribution(None, batch, None, torch.full((2, 4, 4), 3e38))  # finite, though its sum is not

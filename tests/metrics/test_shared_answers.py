"""What does not depend on a map is computed once for all methods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from networks import batch, small_cnn, small_resnet

from heatproof import registry
from heatproof.attribute import attribute
from heatproof.engine import Engine, use
from heatproof.methods.controls import Random
from heatproof.metrics._support import shared_answers
from heatproof.metrics._support.shared_answers import answered, classes, logits
from heatproof.metrics.infidelity import Infidelity
from heatproof.spec.parse import parse
from heatproof.types import Attribution, Batch, Model

METHODS = [
    "saliency",
    "input_x_gradient",
    "smoothgrad",
    "integrated_gradients",
    "grad_cam",
    "lrp",
    "guided_backprop",
    "deep_lift",
    "random",
    "edges",
    "occlusion",
    "gradient_shap",
]


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No answers of other tests, and an engine that measures nothing: every pass is one that a metric wants."""
    monkeypatch.setattr(shared_answers, "_answers", type(shared_answers._answers)())
    with use(Engine(measure=False)):
        yield


class Counted:
    """Counts the pictures that a network sees."""

    def __init__(self, model: Model) -> None:
        self.pictures = 0
        model.network.register_forward_pre_hook(self._count)

    def _count(self, _: object, inputs: tuple[torch.Tensor]) -> None:
        self.pictures += len(inputs[0])


def explained(model: Model, pictures: Batch, names: list[str]) -> list[Attribution]:
    return [attribute(model, pictures, registry.find("method", name)) for name in names]


@pytest.mark.parametrize("disturbance", ["square", "gaussian"])
def test_infidelity_of_twelve_methods_shows_as_many_pictures_as_of_one(disturbance: str) -> None:
    metric = Infidelity(disturbance, count=16)
    seen = []
    for names in (METHODS[:1], METHODS):
        shared_answers._answers.clear()
        model, pictures = small_cnn(), batch(3)
        maps = explained(model, pictures, names)
        counted = Counted(model)
        scores = [metric(one).values for one in maps]
        seen.append(counted.pictures)
    assert len(METHODS) == len(set(METHODS)) == 12
    assert seen[0] == seen[1] >= 3 * 16
    assert len({tuple(one.tolist()) for one in scores}) > 6  # each map has its own score


SHARED = {
    "average_drop": 1,  # of the network's answer to the whole picture; the masked one is the map's own
    "completeness_error(baseline='black')": 0,
    "sensitivity_n(sets=5)": 0,
    "faithfulness_correlation": 0,
    "single_deletion": 0,
    "monotonicity_correlation": 0,
}


@pytest.mark.parametrize("text", SHARED)
def test_another_map_costs_only_what_depends_on_it(text: str) -> None:
    metric = parse("metric", text)
    model, pictures = small_cnn(), batch(2)
    first, second = (attribute(model, pictures, Random(law)) for law in ("gaussian", "uniform"))
    counted = Counted(model)
    metric(first)
    before = counted.pictures
    metric(second)
    assert before > 0
    assert counted.pictures - before == SHARED[text] * len(pictures)


@pytest.mark.parametrize("text", ["relative_output_stability", "local_lipschitz", "relative_representation_stability"])
def test_predictions_on_noisy_copies_are_shared(text: str) -> None:
    """Of a method that needs no passes, only maps of the copies are made again."""
    model, pictures = small_cnn(), batch(2)
    counted = Counted(model)
    first, second = (attribute(model, pictures, Random(law)) for law in ("gaussian", "uniform"))
    parse("metric", text)(first)
    before = counted.pictures
    parse("metric", text)(second)
    assert counted.pictures == before > 0


def test_an_answer_belongs_to_its_model_its_pictures_and_its_question() -> None:
    model, other, pictures = small_cnn(), small_resnet(), batch(3)
    assert not torch.equal(logits(model, pictures.images), logits(other, pictures.images))
    assert not torch.equal(logits(model, pictures.images), logits(model, pictures.images.flip(3)))
    one = answered("one", model, pictures, lambda: torch.ones(3))
    assert answered("one", model, pictures, lambda: torch.zeros(3)).equal(one)
    assert not answered("two", model, pictures, lambda: torch.zeros(3)).equal(one)
    aimed = pictures.aimed((pictures.targets + 1) % 10)
    assert not answered("one", model, aimed, lambda: torch.zeros(3)).equal(one)


def test_changed_weights_are_another_model() -> None:
    model, pictures = small_cnn(), batch(3)
    before = logits(model, pictures.images)
    with torch.no_grad():
        next(model.network.parameters()).add_(0.5)
    assert not torch.equal(before, logits(model, pictures.images))


def test_what_a_caller_writes_into_an_answer_stays_with_it() -> None:
    model, pictures = small_cnn(), batch(3)
    logits(model, pictures.images).zero_()
    assert bool(logits(model, pictures.images).any())
    assert classes(model, pictures).dtype == torch.int64


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_answers, "KEPT_BYTES", 1000)
    model, pictures = small_cnn(), batch(1)
    for number in range(20):
        answered(f"question {number}", model, pictures, lambda: torch.zeros(50))
    assert sum(kept.nbytes for kept in shared_answers._answers.values()) <= 1000

"""The mosaic ratios: identities that must hold exactly, and what happens where a ratio is undefined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heatproof import registry, testing
from heatproof.attribute import attribute
from heatproof.data.mosaic import Mosaic
from heatproof.data.two_factor import EASY_PAIR
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods.controls import Constant, Edges, Inverted, Oracle, Random
from heatproof.methods.precomputed import Precomputed
from heatproof.metrics.mosaic import LACKING, ONE_SIGN, MosaicPrecision, MosaicRatio, confusion, mosaic_scores
from heatproof.types import Attribution, Batch, Maps, Model

NAMES = [name for name in registry.names("metric") if name.startswith("mosaic_")]
TARGET = torch.tensor([[True, True, False, False]] * 2 + [[False, False, True, True]] * 2)
maps = hnp.arrays(np.float32, (3, 4, 4), elements=st.floats(-8, 8, width=16)).map(torch.from_numpy)


def region(count: int) -> torch.Tensor:
    return TARGET.expand(count, 4, 4)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)


@given(maps, st.floats(1e-3, 1e3))
def test_scale_does_not_matter(values: Maps, factor: float) -> None:
    first = mosaic_scores(values.double(), region(3))
    scaled = mosaic_scores(values.double() * factor, region(3))
    assert all(same(first[name], scaled[name]) for name in first)


@given(maps)
def test_swapping_the_labels(values: Maps) -> None:
    first, swapped = mosaic_scores(values, region(3)), mosaic_scores(values, ~region(3))
    assert same(swapped["precision"], 1 - first["precision"])
    assert same(swapped["accuracy"], 1 - first["accuracy"])
    assert same(swapped["recall"], first["fpr"])
    assert same(swapped["specificity"], first["fnr"])


@given(maps)
def test_complements(values: Maps) -> None:
    scores = mosaic_scores(values, region(3))
    assert same(scores["fnr"], 1 - scores["recall"])
    assert same(scores["fpr"], 1 - scores["specificity"])
    precision, recall = scores["precision"], scores["recall"]
    usual = 2 * precision * recall / (precision + recall)
    assert same(scores["f1"], torch.where(precision + recall == 0, 0.0, usual))


@given(maps)
def test_maps_that_are_never_negative(values: Maps) -> None:
    scores = mosaic_scores(values.abs(), region(3))
    some = scores["recall"].isfinite()
    assert bool((scores["recall"][some] == 1).all())
    rest = scores["specificity"].isfinite()
    assert bool((scores["specificity"][rest] == 0).all())
    assert same(scores["accuracy"], scores["precision"])
    precision = scores["precision"][some]
    assert same(scores["f1"][some], 2 * precision / (1 + precision))


@given(maps)
def test_every_score_lies_between_0_and_1(values: Maps) -> None:
    for scores in mosaic_scores(values, region(3)).values():
        known = scores[scores.isfinite()]
        assert bool(((known >= 0) & (known <= 1)).all())


@given(maps)
def test_relevance_is_conserved_and_batch_mates_do_not_matter(values: Maps) -> None:
    sums = confusion(values, region(3))
    assert same(sum(sums), values.double().abs().sum((1, 2)))  # type: ignore[arg-type]
    alone = mosaic_scores(values[1:2], region(1))
    assert all(same(scores[1:2], alone[name]) for name, scores in mosaic_scores(values, region(3)).items())


def test_a_constant_is_not_harmless() -> None:
    values = torch.where(TARGET, 1.0, -1.0)[None]
    shifted = values - values.min()
    assert mosaic_scores(values, region(1))["specificity"].item() == 1
    assert mosaic_scores(shifted, region(1))["specificity"].isnan().item()


def test_a_uniform_map_has_precision_one_half() -> None:
    assert mosaic_scores(torch.full((1, 4, 4), 0.3), region(1))["precision"].item() == 0.5


def test_by_hand() -> None:
    values = torch.zeros(1, 4, 4)
    values[0, 0, 0], values[0, 0, 1], values[0, 0, 2], values[0, 0, 3] = 6.0, -2.0, 3.0, -9.0
    scores = {name: round(score.item(), 6) for name, score in mosaic_scores(values, region(1)).items()}
    expected = {"precision": 6 / 9, "recall": 6 / 8, "specificity": 9 / 12, "accuracy": 15 / 20}
    expected |= {"f1": 12 / 17, "fnr": 2 / 8, "fpr": 3 / 12}
    assert scores == {name: round(value, 6) for name, value in expected.items()}


def test_maps_that_are_not_finite_are_refused() -> None:
    values = torch.zeros(2, 4, 4)
    values[1, 0, 0] = torch.inf
    with pytest.raises(BadInput, match="in 1 of 2"):
        mosaic_scores(values, region(2))


class Fixed:
    """A method that answers with given maps."""

    signed: ClassVar[bool] = True

    def __init__(self, maps: Maps) -> None:
        self.maps = maps

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return self.maps


@pytest.fixture(scope="module")
def stage() -> tuple[Model, Batch]:
    return MosaicPrecision().stage()


def scored(name: str, attribution: Attribution) -> torch.Tensor:
    ratio = registry.find("metric", name)
    assert isinstance(ratio, MosaicRatio)
    answer = ratio(attribution)
    assert [note not in ("", ONE_SIGN) for note in answer.notes] == answer.values.isnan().tolist()
    return answer.values


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_is_perfect_and_its_inverse_always_wrong(name: str, stage: tuple[Model, Batch]) -> None:
    best = 1.0 if registry.find("metric", name).higher_is_better else 0.0
    oracle = Oracle(outside=-1.0)
    assert scored(name, attribute(*stage, oracle)).tolist() == [best] * 4
    assert scored(name, attribute(*stage, Inverted(oracle))).tolist() == [1 - best] * 4


@pytest.mark.parametrize("name", NAMES)
def test_noise_is_worth_one_half(name: str) -> None:
    batch = Mosaic(between=EASY_PAIR, per_class=10).batch(range(20))
    values = scored(name, attribute(Model("none", torch.nn.Identity()), batch, Random()))
    error = values.std() / len(values) ** 0.5
    assert abs(values.mean().item() - 0.5) < 4 * error.item()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mosaic_precision"])
def test_unsigned_methods_are_judged_by_precision_only(name: str, stage: tuple[Model, Batch]) -> None:
    with pytest.raises(NotApplicable, match="needs negative relevance"):
        registry.find("metric", name)(attribute(*stage, Edges()))
    assert scored("mosaic_precision", attribute(*stage, Constant())).tolist() == [0.5] * 4


def bright(model: Model, batch: Batch) -> Maps:
    return batch.images.mean(1)


class Claiming(Fixed):
    """A method of one's own that says it is signed."""


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mosaic_precision"])
def test_maps_of_others_that_are_never_negative_win_nothing(
    name: str, stage: tuple[Model, Batch], tmp_path: Path
) -> None:
    """Recall is 1 for them whatever they show, so what they say of themselves is not enough."""
    model, batch = stage
    maps = bright(model, batch)
    np.savez(tmp_path / "maps.npz", **{key: one.numpy() for key, one in zip(batch.ids, maps, strict=True)})
    stored = Precomputed(str(tmp_path / "maps.npz"))
    for method in (bright, Claiming(maps), stored):
        answer = registry.find("metric", name)(attribute(model, batch, method))
        assert set(answer.notes) == {ONE_SIGN}
        assert bool(answer.values.isnan().all())
        assert len(scored("mosaic_precision", attribute(model, batch, method))) == 4
    with pytest.raises(NotApplicable, match="this method has none"):
        registry.find("metric", name)(attribute(model, batch, replace(stored, signed=False)))


@pytest.mark.parametrize("name", NAMES)
def test_a_map_of_one_sign_among_others_is_noted(name: str, stage: tuple[Model, Batch]) -> None:
    model, batch = stage
    maps = bright(model, batch) - 0.5
    maps[1], maps[2] = maps[1].abs(), 0.0
    answer = registry.find("metric", name)(attribute(model, batch, Fixed(maps)))
    single = "" if name == "mosaic_precision" else ONE_SIGN
    assert answer.notes == ("", single, LACKING[registry.find("metric", name).ratio], "")
    alone = registry.find("metric", name)(attribute(model, batch.select([1]), Fixed(maps[1:2])))  # no mates decide
    assert alone.notes == (single,)
    assert alone.values.isnan().tolist() == answer.values[1:2].isnan().tolist() == [bool(single)]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mosaic_precision"])
def test_a_signed_method_keeps_its_scores_where_all_maps_happen_to_be_positive(
    name: str, stage: tuple[Model, Batch]
) -> None:
    model, batch = stage
    everywhere = Batch(batch.images, batch.targets, batch.ids, torch.ones_like(batch.regions), seed=0)  # type: ignore[arg-type]
    maps = attribute(model, everywhere, Oracle(outside=-1.0)).maps
    answer = registry.find("metric", name)(Attribution(model, batch, Oracle(outside=-1.0), maps))
    assert set(answer.notes) == {ONE_SIGN}
    assert not bool(answer.values.isnan().any())


@pytest.mark.parametrize("name", NAMES)
def test_undefined_is_missing_with_a_reason(name: str, stage: tuple[Model, Batch]) -> None:
    _, batch = stage
    answer = registry.find("metric", name)(attribute(*stage, Fixed(torch.zeros(4, *batch.images.shape[2:]))))
    assert bool(answer.values.isnan().all())
    assert set(answer.notes) == {LACKING[registry.find("metric", name).ratio]}


def test_pictures_without_tiles_cannot_be_judged(stage: tuple[Model, Batch]) -> None:
    model, batch = stage
    bare = Batch(batch.images, batch.targets, batch.ids)
    with pytest.raises(NotApplicable, match="no regions"):
        MosaicPrecision()(attribute(model, bare, Random()))


@pytest.mark.parametrize("name", NAMES)
def test_the_kit_approves(name: str) -> None:
    assert [str(verdict) for verdict in testing.check(name) if not verdict.holds] == []

"""The game: coalitions are paid for once, and their values depend on nothing but the question."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import batch, small_cnn, small_vit
from PIL import Image
from torch import Tensor

from heatproof import engine
from heatproof.engine import execute
from heatproof.errors import BadInput, BadShape
from heatproof.methods.lime import LIME
from heatproof.methods.occlusion import SlidingOcclusion
from heatproof.occlusion.game import Game, game_of
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.train_set import TrainSet
from heatproof.occlusion.imputers.uniform import Uniform
from heatproof.occlusion.occlusion import Occlusion, impute, named
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.types import Batch, Images, Model, Segments, read


@dataclass(frozen=True)
class Ragged:
    """Two to four columns, by the brightness of the first pixel: images differ in their segments."""

    def __call__(self, images: Images, /) -> Segments:
        width = images.shape[3]
        labels = []
        for image in images:
            count = 2 + int(float(image[0, 0, 0]) * 1000) % 3
            labels.append((torch.arange(width) * count // width).expand(images.shape[2], -1))
        return torch.stack(labels)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many images each call sends to the network."""
    sent: list[int] = []

    plain = engine.forward

    def forward(model: Model, images: Images, *way: engine.Plan) -> Tensor:
        sent.append(len(images))
        return plain(model, images, *way)

    monkeypatch.setattr(engine, "forward", forward)
    return sent


def some(batch_size: int, rows: int, n: int, seed: int = 0) -> Tensor:
    return torch.rand(batch_size, rows, n, generator=torch.Generator().manual_seed(seed)) < 0.5


def test_a_value_is_the_models_answer_to_the_occluded_picture() -> None:
    model, shown = small_cnn(), batch(3)
    coalitions = some(3, 4, 25)
    segments = Grid()(shown.images)
    found = Game(model, shown).value(coalitions)
    for i in range(3):
        for m in range(4):
            keep = coalitions[i, m][segments[i]][None]
            picture = torch.where(keep[:, None], shown.images[[i]], Mean()(shown.images[[i]], torch.zeros_like(keep)))
            expected = read(model(picture), shown.targets[[i]], "probability")
            assert float(found[i, m]) == pytest.approx(float(expected.detach()), abs=1e-6)


def test_only_new_and_distinct_coalitions_reach_the_network(counted: list[int]) -> None:
    model, shown = small_cnn(), batch(3)
    coalitions = some(3, 6, 25)
    first = game_of(model, shown, Occlusion())
    first.value(torch.cat([coalitions, coalitions], 1))
    assert sum(counted) == 3 * 6
    first.value(coalitions.flip(1))
    game_of(model, shown, Occlusion(), "logit").value(coalitions)
    game_of(model, shown, Occlusion()).confidence(coalitions)
    assert sum(counted) == 3 * 6
    assert first.evaluated == 3 * 6
    first.value(torch.cat([coalitions, ~coalitions[:, :2]], 1))
    assert sum(counted) == 3 * 6 + 3 * 2


def test_other_batches_models_and_occlusions_do_not_share(counted: list[int]) -> None:
    model, shown = small_cnn(), batch(2)
    whole = torch.ones(2, 1, 25, dtype=torch.bool)
    for requested in (
        game_of(model, shown, Occlusion()),
        game_of(small_cnn(), shown, Occlusion()),
        game_of(model, batch(2), Occlusion()),
        game_of(model, shown, Occlusion(Mean((0.0, 0.0, 0.0)))),
    ):
        requested.value(whole)
    assert sum(counted) == 8


def test_random_imputers_are_drawn_often_but_a_whole_picture_once(counted: list[int]) -> None:
    coalitions = torch.stack([torch.ones(2, 25), torch.zeros(2, 25)], 1).bool()
    game = Game(small_cnn(), batch(2), Occlusion(Uniform(), draws=4))
    game.value(coalitions)
    assert sum(counted) == 2 * (1 + 4)


def test_the_answer_to_a_whole_picture_is_the_models_own_however_often_others_are_drawn() -> None:
    model, shown = small_cnn(), batch(2)
    whole = torch.stack([torch.ones(2, 25), torch.zeros(2, 25)], 1).bool()
    found = Game(model, shown, Occlusion(Uniform(), draws=4)).value(whole)[:, 0]
    expected = read(model(shown.images), shown.targets, "probability").detach().double()
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_draws_are_shared_by_the_coalitions_of_an_image_and_averaged() -> None:
    model, shown = small_cnn(), batch(2)
    occlusion = Occlusion(Uniform(), draws=3)
    game = Game(model, shown, occlusion)
    coalitions = some(2, 3, 25)
    total = torch.zeros(2, 3, dtype=torch.float64)
    for draw in range(3):
        seeds = game._seeds(draw)
        for m in range(3):
            keep = torch.stack([coalitions[i, m][game.segments[i]] for i in range(2)])
            painted = impute(Uniform(), shown.images, keep, seeds)
            total[:, m] += read(engine.forward(model, painted).double(), shown.targets, "probability")
    torch.testing.assert_close(game.value(coalitions), total / 3, atol=1e-6, rtol=0)


@given(st.integers(0, 10_000), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_order_and_split_of_the_calls_change_no_bit(seed: int, parts: list[int]) -> None:
    model, shown = small_cnn(), batch(3)
    coalitions = some(3, sum(parts), 25, seed)
    for occlusion in (Occlusion(), Occlusion(Uniform(), draws=2)):
        at_once = Game(model, shown, occlusion).value(coalitions)
        game = Game(model, shown, occlusion)
        piecewise = torch.cat([game.value(part) for part in reversed(coalitions.split(parts, 1))][::-1], 1)
        assert torch.equal(at_once, piecewise)


def test_memory_limits_and_batch_mates_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    model, shown = small_cnn(), batch(3)
    coalitions = some(3, 20, 25)
    found = Game(model, shown).value(coalitions)
    monkeypatch.setattr(execute, "PICTURES_BYTES", 1)
    assert torch.equal(Game(model, shown).value(coalitions), found)
    for i in range(3):
        assert torch.equal(Game(model, shown.select([i])).value(coalitions[[i]])[0], found[i])


def test_images_may_differ_in_their_number_of_segments() -> None:
    model, shown = small_cnn(), batch(6)
    occlusion = Occlusion(segmenter=Ragged())
    game = Game(model, shown, occlusion)
    widest = max(game.counts)
    assert len(set(game.counts)) > 1
    coalitions = some(6, 5, widest)
    found = game.value(coalitions)
    other = coalitions.clone()
    for i, count in enumerate(game.counts):
        alone = Game(model, shown.select([i]), occlusion).value(coalitions[[i], :, :count])
        assert torch.equal(alone[0], found[i])
        other[i, :, count:] = ~other[i, :, count:]
    before = game.evaluated
    assert torch.equal(game.value(other), found)
    assert game.evaluated == before
    assert game.sizes.sum(1).tolist() == [32 * 32] * 6


def test_readouts_agree_with_each_other() -> None:
    model, shown = small_cnn(), batch(3)
    coalitions = some(3, 4, 25)
    games = {name: game_of(model, shown, Occlusion(), name) for name in ("probability", "logit", "log_probability")}
    probability = games["probability"].value(coalitions)
    torch.testing.assert_close(games["log_probability"].value(coalitions).exp(), probability)
    assert bool((games["probability"].confidence(coalitions) >= probability).all())
    whole = torch.ones(3, 1, 25, dtype=torch.bool)
    expected = read(model(shown.images), shown.targets, "logit").detach().double()
    torch.testing.assert_close(games["logit"].value(whole)[:, 0], expected, atol=1e-5, rtol=0)


def test_what_was_learned_is_forgotten_with_the_batch() -> None:
    model, shown = small_cnn(), batch(2)
    game_of(model, shown, Occlusion()).value(some(2, 2, 25))
    gone = weakref.ref(shown)
    del shown
    gc.collect()
    assert gone() is None


def test_five_thousand_segments_cost_no_more_than_their_pictures(counted: list[int]) -> None:
    shown = batch(2, size=80)
    game = Game(small_cnn(), shown, Occlusion(segmenter=Grid(72)))
    assert game.counts == (5184, 5184)
    coalitions = some(2, 10, 5184)
    game.value(torch.cat([coalitions] * 5, 1))
    assert sum(counted) == 20


def test_wrong_questions_are_refused() -> None:
    game = Game(small_cnn(), batch(2))
    with pytest.raises(BadShape, match=r"\(2, M, 25\)"):
        game.value(torch.ones(2, 3, 24, dtype=torch.bool))
    with pytest.raises(BadShape, match="bool"):
        game.value(torch.ones(2, 3, 25))
    with pytest.raises(BadInput, match="classes of model"):
        Game(small_cnn(), batch(2).aimed(torch.tensor([0, 10]))).value(torch.ones(2, 1, 25, dtype=torch.bool))
    with pytest.raises(BadInput, match="draws"):
        Occlusion(draws=0)
    with pytest.raises(BadShape, match="int64"):
        Game(small_cnn(), batch(2), Occlusion(segmenter=lambda images: images[:, 0])).counts  # noqa: B018


def test_an_occlusion_is_named_by_its_parts() -> None:
    assert Occlusion().name == "mean/grid"
    assert Occlusion(Uniform(), Grid(7), draws=2).name == "uniform/grid(side=7) x2"


def test_a_vision_transformer_can_be_run_without_pictures() -> None:
    from heatproof.occlusion.imputers.internal import Internal
    from heatproof.occlusion.segmenters.patches import Patches

    model, shown = small_vit(), batch(3)
    game = Game(model, shown, Occlusion(Internal(), Patches(8)), "logit")
    coalitions = torch.cat([torch.ones(3, 1, 16, dtype=torch.bool), some(3, 5, 16)], 1)
    found = game.value(coalitions)
    expected = read(model(shown.images), shown.targets, "logit").detach().double()
    torch.testing.assert_close(found[:, 0], expected, atol=1e-5, rtol=1e-5)
    alone = Game(model, shown.select([1]), Occlusion(Internal(), Patches(8)), "logit")
    assert torch.equal(alone.value(coalitions[[1]].flip(1)).flip(1)[0], found[1])


@pytest.mark.parametrize("make", [partial(LIME, samples=8), partial(SlidingOcclusion, positions=2, window=0.5)])
def test_methods_bind_imputers_to_their_pictures(make: Any) -> None:
    """As the game does: some know pictures by name, so that none is its own donor."""
    met: list[tuple[str, ...]] = []

    @dataclass(frozen=True)
    class Reported(Mean):
        def for_batch(self, pictures: Batch, /) -> Mean:
            met.append(pictures.ids)
            return Mean()

    pictures = batch(2)
    make(imputer=Reported())(small_cnn(), pictures)
    assert {identity for ids in met for identity in ids} == set(pictures.ids)


def test_draws_are_keyed_by_what_files_hold_and_not_by_where_they_are(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        for i in range(3):
            pixels = np.random.default_rng(i).integers(0, 255, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    keys = {named(TrainSet(str(tmp_path / name))) for name in ("one", "other")}
    assert len(keys) == 1
    assert named(TrainSet()) == "train_set"
    assert named(Mean()) == "mean"

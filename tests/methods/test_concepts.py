"""TCAV on a network whose concept direction is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from sklearn.linear_model import SGDClassifier
from torch import Tensor, nn

from heatproof import engine, models
from heatproof.attribute import attribute
from heatproof.data.folder import Folder
from heatproof.data.two_factor.k_dataset import TwoFactorK
from heatproof.errors import BadInput, NotApplicable
from heatproof.methods._support.concept_vectors import (
    REDRAWN,
    against_chance,
    direction,
    directions,
    layer_score,
    products,
    weights,
    welch,
)
from heatproof.methods._support.layer_activations import activations, tap, taps
from heatproof.methods.random_weights import RandomWeights, shuffled
from heatproof.methods.tcav import TCAV, stages
from heatproof.metrics.relative_importance import IDR, MCS
from heatproof.spec import recipe
from heatproof.types import Batch, Model

SIZE = 6


@dataclass(frozen=True)
class Striped:
    """Noise; with the concept a bright left half is added."""

    concept: bool = True
    count: int = 60

    @property
    def name(self) -> str:
        return f"striped {self.concept}"

    def __len__(self) -> int:
        return self.count

    def ids(self) -> tuple[str, ...]:
        return tuple(str(i) for i in range(self.count))

    def digest(self, indices: Sequence[int], /) -> str:
        return f"{self.concept}{list(indices)}"

    def batch(self, indices: Sequence[int], /) -> Batch:
        pictures = []
        for index in indices:
            picture = 0.3 * torch.rand(3, SIZE, SIZE, generator=torch.Generator().manual_seed(2 * index + self.concept))
            picture[:, :, : SIZE // 2] += 0.6 * self.concept
            pictures.append(picture)
        targets = torch.zeros(len(indices), dtype=torch.int64)
        return Batch(torch.stack(pictures), targets, tuple(str(i) for i in indices), labels={"label": targets})


class Halves(nn.Module):
    """Class 0 likes a bright left half, class 1 dislikes it, class 2 does not care."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Conv2d(3, 2, 1, bias=False)
        nn.init.constant_(self.seen.weight, 1.0)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.seen(images)
        left, right = maps[..., : SIZE // 2].sum((1, 2, 3)), maps[..., SIZE // 2 :].sum((1, 2, 3))
        return torch.stack([left - right, right - left, (right * 0 + left * 0)], 1)


class Opposed(Halves):
    """A bright left half raises the first answer, though what the second layer makes of it lowers it."""

    def __init__(self) -> None:
        super().__init__()
        self.again = nn.Conv2d(2, 2, 1, bias=False)
        self.again.weight.data = -torch.eye(2).view(2, 2, 1, 1)

    def forward(self, images: Tensor) -> Tensor:
        seen = self.seen(images)
        maps = 2 * seen + self.again(seen)
        left, right = maps[..., : SIZE // 2].sum((1, 2, 3)), maps[..., SIZE // 2 :].sum((1, 2, 3))
        return torch.stack([left - right, right - left], 1)


def requested() -> tuple[Model, TCAV, Batch]:
    concept = TCAV(Striped(True), Striped(False, 120), ("seen",), shown_by=None)
    return Model("halves", Halves(), cam_layer="seen"), concept, Striped(False, 200).batch(range(150, 170))


def test_the_direction_points_at_the_known_concept() -> None:
    model, _, _ = requested()
    output = (activations(model, Striped(on).batch(range(50)).images, "seen").flatten(1) for on in (True, False))
    with_it, without = (one.numpy() for one in output)
    found = torch.from_numpy(direction(with_it, without, 0.1, 0)).view(2, SIZE, SIZE)
    truth = torch.zeros(2, SIZE, SIZE)
    truth[:, :, : SIZE // 2] = 1
    assert float(nn.functional.cosine_similarity(found.flatten(), truth.flatten(), dim=0)) > 0.9


def test_every_run_is_a_fit_of_its_own_sets() -> None:
    dice = np.random.default_rng(0)
    concept, pool = (dice.normal(size=(n, 200)).astype(np.float32) for n in (8, 20))
    own, chance = directions(concept + 1, pool, runs=2, size=8, alpha=0.1, seed=0)
    order = np.random.default_rng([0, 1]).permutation(20)
    assert own[1] == pytest.approx(direction(concept + 1, pool[order[8:16]], 0.1, 1), abs=1e-4)
    assert np.linalg.norm(own, axis=1) == pytest.approx(np.ones(2), abs=1e-5)
    assert chance.shape == (2, REDRAWN, 20)
    redrawn = {0: (order[8:16], 1), 3: (np.random.default_rng([0, 1, 3]).permutation(order[8:])[:8], 3)}
    for again, (others, number) in redrawn.items():
        made = chance[1, again] @ pool
        wanted = direction(pool[order[:8]], pool[others], 0.1, number)
        assert made / np.linalg.norm(made) == pytest.approx(wanted, abs=1e-4)
    few = directions(concept + 1, pool, runs=2, size=8, alpha=0.1, seed=0, redrawn=1)
    assert np.array_equal(few.chance, chance[:, :1])


def test_random_sets_stand_in_for_the_concept_with_its_own_number_of_pictures() -> None:
    dice = np.random.default_rng(0)
    _, chance = directions(*(dice.normal(size=(n, 30)).astype(np.float32) for n in (5, 24)), 3, 8, 0.1, 0)
    for of_set in chance:
        always = (of_set != 0).all(0)
        assert always.sum() >= 5  # the set itself, however its counterparts are redrawn
        counts = [int((fit != 0).sum()) for fit in of_set]  # a row that is never near the border has no weight
        assert 8 < max(counts) <= 10


def test_a_fit_by_products_is_sklearns_fit_in_the_layer() -> None:
    dice = np.random.default_rng(0)
    rows = dice.normal(size=(24, 300)) + np.repeat([0.5, 0.0], 12)[:, None]
    plain = SGDClassifier(alpha=0.1, max_iter=1000, tol=1e-3, random_state=5).fit(rows, np.repeat([1, 0], 12))
    found = weights(products(rows.astype(np.float32)), 0.1, 5) @ rows
    assert found == pytest.approx(plain.coef_[0], rel=1e-3, abs=1e-4)


def test_repeated_pictures_and_dead_layers_still_have_a_direction() -> None:
    dice = np.random.default_rng(0)
    one, other = (dice.normal(size=(1, 50)).astype(np.float32).repeat(6, 0) for _ in range(2))
    found = direction(one, other, 0.1, 0)
    assert float(found @ (one[0] - other[0])) > 0
    assert not direction(np.zeros_like(one), np.zeros_like(one), 0.1, 0).any()


def test_layers_tapped_together_say_what_each_says_alone() -> None:
    model = models.load("embedded:object")
    batch = TwoFactorK(count=3).batch(range(3))
    names = ["layer1", "stem", "layer3"]
    for name, together in zip(names, taps(model, batch, names, "logit"), strict=True):
        alone = tap(model, batch, name, "logit")
        assert torch.equal(together.activations, alone.activations)
        assert torch.allclose(together.gradients, alone.gradients, rtol=1e-4, atol=1e-7)
        assert torch.equal(activations(model, batch.images, name), alone.activations)


@pytest.mark.parametrize(("target", "score"), [(0, 1.0), (1, 0.0)])
def test_a_concept_for_and_against_a_class(target: int, score: float) -> None:
    model, concept, batch = requested()
    tested = concept.test(model, batch.aimed(torch.full((20,), target)))
    assert tested.layers[0].score == score
    assert tested.layers[0].p_value < 0.01
    assert tested.score == score
    assert concept.importance(model, batch.aimed(torch.full((20,), target))).tolist() == [score] * 20


def test_a_concept_the_network_is_blind_to_does_not_apply() -> None:
    _, concept, batch = requested()

    class Blind(Halves):
        def forward(self, images: Tensor) -> Tensor:
            return self.seen(images).mean((2, 3)) * 0

    model = Model("blind", Blind(), cam_layer="seen")
    with pytest.raises(NotApplicable, match="in no layer"):
        concept(model, batch)


def test_the_map_is_where_the_derivative_comes_from() -> None:
    model, concept, batch = requested()
    maps = attribute(model, batch, concept).maps
    assert float(maps[:, :, : SIZE // 2].sum()) > 0
    assert maps.shape == (20, SIZE, SIZE)


def test_welch_says_what_it_can_of_scores_without_spread() -> None:
    assert welch(np.ones(2), np.ones(2)) == 1.0
    assert welch(np.ones(2), np.zeros(2)) == 0.0
    assert 0.05 < welch(np.array([0.1, 0.2, 0.3]), np.array([0.15, 0.2, 0.4])) < 1


def test_runs_are_compared_by_their_scores_as_published() -> None:
    dice = np.random.default_rng(0)
    concept, pool = (dice.normal(size=(n, 40)).astype(np.float32) for n in (20, 80))
    slopes = torch.from_numpy(dice.normal(size=(30, 40)).astype(np.float32))
    fitted = directions(concept, pool, 10, 20, 0.1, 0)
    found = layer_score("x", slopes, fitted, pool)
    scores = (found.positive.double().mean(1).numpy(), found.random[:, 0].double().mean(1).numpy())
    assert found.p_value == pytest.approx(stats.ttest_ind(*scores, equal_var=False).pvalue)
    assert found.p_value != layer_score("x", slopes, fitted, pool, "sets").p_value


def test_one_more_draw_is_held_against_the_spread_of_all_others() -> None:
    assert against_chance(1.0, np.ones(3)) == 1.0
    assert against_chance(1.0, np.zeros(3)) == 0.0
    chance = np.array([-1.0, 1.0, -1.0, 1.0, 0.0])
    # Mean 0, spread 1: t = 2.776 · √(6/5) is where Student's table has 5 % for four degrees of freedom.
    assert against_chance(2.776 * 1.2**0.5, chance) == pytest.approx(0.05, abs=1e-4)
    assert against_chance(-2.776 * 1.2**0.5, chance) == pytest.approx(0.05, abs=1e-4)


def test_a_random_set_is_distinguished_from_chance_no_more_often_than_the_level_says() -> None:
    dice = np.random.default_rng(0)
    pool = dice.normal(size=(80, 40)).astype(np.float32)
    slopes = torch.from_numpy(dice.normal(size=(1, 40)).astype(np.float32)).repeat(6, 1)
    values = []
    for _ in range(12):
        nothing = dice.normal(size=(20, 40)).astype(np.float32)  # drawn as the pool was: no concept at all
        values.append(layer_score("x", slopes, directions(nothing, pool, 10, 20, 0.1, 0), pool, "sets").p_value)
    assert sum(value < 0.01 for value in values) <= 1
    assert 0.2 < float(np.median(values)) < 0.8


def test_a_layer_is_kept_only_below_the_level() -> None:
    model, concept, batch = requested()
    concept = dataclasses.replace(concept, against="sets")
    p = concept.test(model, batch).layers[0].p_value
    assert 0 < p < 0.01
    assert len(dataclasses.replace(concept, level=1.01 * p).test(model, batch).kept) == 1
    assert not dataclasses.replace(concept, level=0.99 * p).test(model, batch).kept


def test_importance_is_the_mean_over_the_layers_that_are_kept() -> None:
    concept = TCAV(Striped(True), Striped(False, 120), ("seen", "again"), shown_by=None, level=1.1)
    model = Model("opposed", Opposed(), cam_layer="again")
    batch = Striped(False, 200).batch(range(150, 154))
    each = [one.score for one in concept.test(model, batch).layers]
    assert each == [1.0, 0.0]
    assert concept.importance(model, batch).tolist() == [0.5] * 4


def test_other_pictures_of_a_concept_are_another_method(tmp_path: Path) -> None:
    for part, count, red in (("with", 12, 120), ("without", 24, 0)):
        (tmp_path / part).mkdir()
        for i in range(count):
            pixels = np.random.default_rng([count, i]).integers(0, 130, (16, 16, 3), dtype=np.uint8)
            pixels[..., 0] += np.uint8(red)
            Image.fromarray(pixels).save(tmp_path / part / f"{i:02d}.png")

    def concept() -> TCAV:
        sets = (Folder(str(tmp_path / part)) for part in ("with", "without"))
        return TCAV(*sets, ("seen",), 10, 12, shown_by=None, level=1.1)

    model = Model("halves", Halves(), cam_layer="seen")
    first = concept()
    assert recipe.key(first) == recipe.key(concept())
    assert recipe.build(recipe.plain(first)) == first
    before = first._directions(model, "seen").own
    tested = first._kept(model)[0].p_value
    for i in range(12):
        Image.fromarray(np.full((16, 16, 3), 20 * i, dtype=np.uint8)).save(tmp_path / "with" / f"{i:02d}.png")
    second = concept()
    assert recipe.key(second) != recipe.key(first)
    assert not np.array_equal(second._directions(model, "seen").own, before)
    assert second._kept(model)[0].p_value != tested
    with pytest.raises(BadInput, match="something else now"):
        recipe.build(recipe.plain(first))
    Image.fromarray(np.zeros((16, 16, 3), dtype=np.uint8)).save(tmp_path / "without" / "23.png")
    assert recipe.key(concept()) != recipe.key(second)


def test_too_few_counterparts_or_pictures_are_refused() -> None:
    with pytest.raises(BadInput, match="at least 10"):
        TCAV(runs=9)
    with pytest.raises(BadInput, match="seed must be at least 0"):
        TCAV(seed=-1)
    model, _, batch = requested()
    with pytest.raises(BadInput, match="120 pictures"):
        TCAV(Striped(True), Striped(False, 60), ("seen",), shown_by=None)(model, batch)


def test_stages_lead_to_the_cam_layer() -> None:
    batch = TwoFactorK(count=1).batch([0])
    assert stages(models.load("embedded:object"), batch) == ["stem", "layer1", "layer2", "layer3"]
    assert stages(models.load("embedded:scene_k1"), batch)[-1] == "features.9"


def test_model_contrast_takes_the_concepts_importance_and_the_others_refuse() -> None:
    model = models.load("embedded:object")
    batch = TwoFactorK(count=4).batch(range(4))
    concept = TCAV()
    judged = attribute(model, batch.aimed(engine.forward(model, batch.images).argmax(1)), concept)
    scored = MCS()(judged)
    other = models.load("embedded:scene")
    theirs = batch.aimed(engine.forward(other, batch.images).argmax(1))
    difference = concept.importance(model, judged.batch) - concept.importance(other, theirs)
    assert scored.values.tolist() == difference.tolist()
    assert bool((difference != 0).any())
    with pytest.raises(NotApplicable, match="judged by MCS"):
        IDR()(judged)
    labels = {**batch.labels, "object": torch.full((4,), 5)}
    elsewhere = concept.importance(model, Batch(batch.images, batch.targets, batch.ids, labels=labels))
    assert bool(elsewhere.isnan().all())


def test_shuffled_weights_know_nothing_and_leave_the_model_alone() -> None:
    model = models.load("embedded:object")
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    other = shuffled(model)
    for (name, own), (_, theirs) in zip(
        model.network.named_parameters(), other.network.named_parameters(), strict=True
    ):
        assert torch.equal(own, before[name])
        assert torch.equal(own.flatten().sort().values, theirs.flatten().sort().values)
    batch = TwoFactorK(count=2).batch(range(2))
    assert not torch.equal(RandomWeights()(model, batch), RandomWeights().method(model, batch))
    assert RandomWeights.control

"""One logit, several labels and values: each is judged as what it is, and agrees with what theory says it equals."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import cheaper
import pandas as pd
import planted_outputs as stage
import pytest
import torch
from torch import Tensor

import heatproof
from heatproof import Study, engine, registry, run
from heatproof.attribute import attribute
from heatproof.errors import BadInput, HeatproofError, NotApplicable
from heatproof.outputs import read
from heatproof.questions import QUESTIONS
from heatproof.run.unit import OK, explain
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.traits import metric_traits, misfit
from heatproof.types import Batch, Model

IG = "integrated_gradients(baseline=mid_grey)"
STORED = {"precomputed"}  # methods that only read files
CLASSES = {"agi", "local_attribution", "finer_cam", "boundary_ig", "mfaba"}


def posed(ask: stage.Ask, count: int = 3) -> tuple[Model, Batch]:
    """The model of label 0 (or of the value), and pictures that have it."""
    model, batch = stage.model(ask), stage.Squares(count, ask).batch(range(count))
    if ask == "many":
        model(batch.images)  # it knows now how many labels there are
        model = model.of(0)
    return model, batch.aimed(torch.full((count,), 0 if ask == "value" else 1))


def test_what_is_read_of_a_yes_or_no_is_what_the_softmax_of_its_twin_says() -> None:
    z = torch.tensor([[-3.0], [0.0], [0.7], [40.0]], requires_grad=True)
    twin = torch.cat([torch.zeros_like(z), z], 1)
    own = torch.cat([-z / 2, z / 2], 1)
    for side in (0, 1):
        targets = torch.full((4,), side)
        for readout in ("probability", "log_probability"):
            found, wanted = read(own, targets, readout, "yes_no"), read(twin, targets, readout)  # type: ignore[arg-type]
            torch.testing.assert_close(found, wanted)
            slopes = [torch.autograd.grad(value.sum(), z, retain_graph=True)[0] for value in (found, wanted)]
            torch.testing.assert_close(*slopes)
        torch.testing.assert_close(read(own, targets, "logit", "yes_no"), (2 * side - 1) * z[:, 0])
    with pytest.raises(NotApplicable, match="a value has no probability"):
        read(z, torch.zeros(4, dtype=torch.int64), "probability", "value")


@pytest.mark.parametrize("target", ["predicted", "label", "0"])
def test_one_logit_and_its_softmax_twin_have_one_table(target: str, tmp_path: Path) -> None:
    """Probabilities, log-probabilities and all that follows from them are the same; so are logits of `yes`."""
    methods = ["saliency(readout=probability)", "integrated_gradients(steps=4, readout=log_probability)", "grad_cam"]
    methods = methods if target == "predicted" else methods[:2]  # the logit of `no` is 0 in the twin, whatever it sees
    metrics = ["srg(points=5)", "mif(points=5)", "insertion(points=5)", "r_oms", "average_drop", "auroc"]
    data = stage.Squares(4, "one", only=target != "label")

    def judged(model: Model) -> dict[tuple[str, ...], float]:
        scores = run(Study([model], [data], methods, metrics, target=target), tmp_path / model.name).scores
        scores = scores.drop(columns=["model"])
        return {tuple(row[:-1]): row[-1] for row in scores[["method", "metric", "image", "value"]].values.tolist()}

    one, twin = judged(stage.model("one")), judged(stage.twin())
    assert one == pytest.approx(twin, abs=1e-5, nan_ok=True)
    assert len({round(value, 4) for value in one.values() if value == value}) > 20


def test_the_logit_of_no_is_minus_that_of_yes() -> None:
    model, batch = posed("one")
    yes = attribute(model, batch, parse("method", IG)).maps
    no = attribute(model, batch.aimed(torch.zeros_like(batch.targets)), parse("method", IG)).maps
    torch.testing.assert_close(no, -yes)
    assert float(yes.abs().max()) > 0


def test_a_label_does_not_hear_of_the_others() -> None:
    """Nor do its maps and scores: a softmax over labels would couple them."""
    model, batch = posed("many")
    other = stage.model("many")
    network = stage.Network(stage.LABELS)
    network.load_state_dict(other.network.state_dict())
    with torch.no_grad():
        network.head.weight[1:] *= -3
        network.head.bias[1:] += 5
    changed = dataclasses.replace(other, network=network.eval())
    changed(batch.images)
    for method in (IG, "grad_cam(readout=probability)", "occlusion(readout=probability)"):
        torch.testing.assert_close(
            attribute(model, batch, parse("method", method)).maps,
            attribute(changed.of(0), batch, parse("method", method)).maps,
        )
    assert not torch.allclose(engine.forward(model.whole, batch.images).softmax(1)[:, 0], torch.tensor(0.0), atol=1e-6)


def test_labels_together_are_explained_as_each_alone() -> None:
    whole, pictures = stage.model("many"), stage.Squares(4, "many").batch(range(4))
    targets = torch.tensor([0, 3, 0, 5])
    together = attribute(whole, pictures.aimed(targets), parse("method", IG)).maps
    for row, label in enumerate(targets.tolist()):
        alone = attribute(whole.of(label), pictures.select([row]).aimed(torch.tensor([1])), parse("method", IG)).maps
        torch.testing.assert_close(together[[row]], alone)
    plain = heatproof.explain(whole, pictures.images, IG, targets)
    torch.testing.assert_close(plain, together, rtol=1e-3, atol=1e-5)
    named = heatproof.explain(whole, pictures.images, IG, "colour 3")
    torch.testing.assert_close(named[1], together[1], rtol=1e-3, atol=1e-5)
    scores = heatproof.score("srg(points=5)", whole, pictures.images, together, targets)
    assert bool((scores > 0).all())


@pytest.mark.parametrize("ask", ["one", "many", "value"])
def test_planted_evidence_has_the_right_sign(ask: stage.Ask) -> None:
    """The square that says yes, or adds to the value, is evidence for it; on `no` and the other way round, against."""
    model, batch = posed(ask)
    assert batch.regions is not None
    for name in (IG, "occlusion", "kernel_shap", "lime", "shapley", "expected_gradients", "pred_diff"):
        maps = attribute(model, batch, parse("method", name)).maps
        inside, outside = (_mean(maps, region) for region in (batch.regions, ~batch.regions))
        assert bool((inside > 0).all()), name
        assert bool((inside > 3 * outside.abs()).all()), name


def test_what_lowers_a_value_is_evidence_against_it() -> None:
    data = stage.planted(40, (0, 1), seed=5)
    rows = data.there[:, 1].nonzero().flatten()[:4]
    maps = heatproof.explain(stage.model("value"), data.images[rows], "occlusion")
    assert bool((_mean(maps, data.where[rows, 1]) < 0).all())
    scores = heatproof.score("srg", stage.model("value"), data.images[rows], maps)
    against = heatproof.score("srg", stage.model("value"), data.images[rows], -maps)
    assert bool((scores > 0).all())  # although the picture lowers the value: the sign of the change does not matter
    torch.testing.assert_close(against, -scores)


def _mean(maps: Tensor, region: Tensor) -> Tensor:
    return (maps * region).sum((1, 2)) / region.sum((1, 2))


@pytest.mark.parametrize("ask", ["one", "many", "value"])
def test_every_method_applies_or_says_why_not(ask: stage.Ask) -> None:
    model, batch = posed(ask, 2)
    for name in sorted(set(registry.names("method")) - STORED):
        method = registry.find("method", name, **cheaper.METHODS.get(name, {}))
        declared = misfit(method, model.question)
        found = explain(model, batch, method)
        if found.attribution is None:
            ((status, note),) = set(found.reasons.values())
            assert status == "not_applicable", (name, note)
            assert len(note) > 20
            assert note == (declared or note), name
            assert declared or ask != "value" or name not in CLASSES, name
            continue
        assert not declared, name
        assert bool(found.attribution.maps.isfinite().all()), name


@cache
def every_metric(ask: stage.Ask, as_twin: bool = False) -> pd.DataFrame:
    """The scores of every metric there is, by a run, on pictures with a square of label 0 and for that label."""
    model = stage.twin() if as_twin else stage.model(ask)
    target = "0" if ask != "one" else "1"
    few = "integrated_gradients(baseline=mid_grey, steps=4)"  # some metrics explain dozens of times
    metrics = {
        name: registry.find("metric", name, **cheaper.METRICS.get(name, {})) for name in registry.names("metric")
    }
    names = {recipe.label(metric): name for name, metric in metrics.items()}
    data = [stage.Squares(2, ask)]
    study = Study([model], data, [few, "oracle", "random"], list(metrics.values()), target=target)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what has no score is said before: here the rows are looked at
        scores = run(study, folder).scores
    return scores.assign(metric=scores["metric"].astype(str).map(names))


@pytest.mark.parametrize("ask", ["one", "many", "value"])
def test_every_metric_goes_through_a_run_or_says_why_not(ask: stage.Ask) -> None:
    scores, question = every_metric(ask), posed(ask)[0].question
    assert set(scores["metric"]) == set(registry.names("metric"))
    assert not {"failed", "unreadable"} & set(scores["status"]), scores[scores["status"] == "failed"]
    for name, rows in scores.groupby("metric"):
        lost = rows[rows["status"] != OK]
        assert (lost["note"].str.len() > 20).all(), name
        if reason := misfit(parse("metric", name), question):
            assert set(rows["note"]) == {reason}, name
            assert set(rows["status"]) == {"not_applicable"}, name
    explained = scores[scores["method"].str.startswith("integrated_gradients")]
    assert (explained.groupby("metric")["status"].agg(set) == {OK}).sum() > 40


GAINS = {"average_gain", "average_increase"}  # a network that is certain of the whole picture has nothing to gain


@pytest.mark.parametrize("ask", ["one", "many", "value"])
def test_every_metric_prefers_the_planted_evidence_to_noise(ask: stage.Ask) -> None:
    judged = 0
    for name, rows in every_metric(ask).groupby("metric"):
        metric = parse("metric", name)
        if metric_traits(metric).measures not in ("faithfulness", "localisation"):
            continue
        means = rows[rows["status"] == OK].groupby("method")["value"].mean()
        if {"oracle", "random"} <= set(means.index):
            better = (means["oracle"] - means["random"]) * (1 if metric.higher_is_better else -1)
            assert better > 0 or (better == 0 and name in GAINS), (name, dict(means))
            judged += 1
    assert judged > 25


UNLIKE = {
    "random_logit": "the logit of no is -z here, and 0 there",
    "relative_output_stability": "it is the distance of two rows of logits, [-z/2, z/2] or [0, z]",
    "mprt": "new weights are drawn by the name of the layer",
    "smooth_mprt": "likewise",
    "efficient_mprt": "likewise",
}


def test_every_other_metric_is_that_of_the_softmax_twin() -> None:
    keys = ["method", "metric", "image"]
    one, twin = (every_metric("one", as_twin).set_index(keys).sort_index() for as_twin in (False, True))
    one, twin = (rows.drop(index=list(UNLIKE), level="metric") for rows in (one, twin))
    applies = [not misfit(parse("metric", name), "yes_no") for name in one.index.get_level_values("metric")]
    assert one.index.equals(twin.index)
    assert one["status"][applies].equals(twin["status"][applies])
    assert one["value"][applies].to_numpy() == pytest.approx(twin["value"][applies].to_numpy(), abs=1e-5, nan_ok=True)


def test_a_value_that_nothing_changes_has_no_share(tmp_path: Path) -> None:
    """Scores in units of the change are undefined without one, and say so."""

    class Same(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return 7 + 0 * images.mean((1, 2, 3), keepdim=True).flatten(1)

    model = Model("same", Same(), output="regression")
    study = Study([model], [stage.Squares(2, "value")], ["saliency"], ["srg", "insertion", "road", "auroc"])
    found = run(study, tmp_path).scores
    lost = found[found["metric"] != "auroc"]
    assert set(lost["status"]) == {"undefined"}
    assert set(lost["note"]) == {"the model's value does not change when the whole picture is hidden"}


def test_the_share_of_a_change_has_no_unit() -> None:
    """A value in other units, or from another zero, has the same scores."""
    model, batch = posed("value")

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = model.network

        def forward(self, images: Tensor) -> Tensor:
            return 100 * self.network(images) - 40  # type: ignore[no-any-return]

    other = Model("scaled", Scaled(), output="regression")
    maps = attribute(model, batch, parse("method", "occlusion")).maps
    for metric in ("srg", "mif", "insertion", "r_oms"):
        one, two = (heatproof.score(metric, who, batch.images, maps) for who in (model, other))
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)
        assert bool((one != 0).any())


def test_questions_are_three() -> None:
    assert QUESTIONS == ("classes", "yes_no", "value")
    for ask, wanted in (("one", "yes_no"), ("many", "yes_no"), ("value", "value")):
        assert posed(ask)[0].question == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ask", "target", "says"),
    [
        ("one", "2", "indices are 0 … 1, got 2"),
        ("one", "colour 7", "No label of model 'one' is called 'colour 7'"),
        ("many", "14", "indices are 0 … 13, got 14"),
        ("many", "colour 99", "No label of model 'many' is called 'colour 99'"),
        ("value", "label", "answers with a value"),
        ("value", "1", "indices are 0 … 0, got 1"),
    ],
)
def test_targets_that_are_none_are_refused(ask: stage.Ask, target: str, says: str, tmp_path: Path) -> None:
    study = Study([stage.model(ask)], [stage.Squares(2, ask)], ["saliency"], ["srg"], target=target)
    with pytest.raises(HeatproofError, match=says):
        run(study, tmp_path)


def test_several_values_need_a_choice(tmp_path: Path) -> None:
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    model = Model("mean colour", network, output="regression", classes=("red", "green", "blue"))
    data = stage.Squares(2, "value")
    with pytest.raises(BadInput, match=r"answers with 3 values, .* one of red, green, blue"):
        run(Study([model], [data], ["saliency"], ["srg"]), tmp_path)
    with pytest.raises(BadInput, match="one of red, green, blue"):
        heatproof.explain(model, data.batch([0]).images, "saliency")
    found = run(Study([model], [data], ["input_x_gradient"], ["srg"], target="green"), tmp_path / "green").scores
    assert set(found["image"]) == {"0.png#green", "1.png#green"}
    assert set(found["status"]) == {OK}
    maps = heatproof.explain(model, data.batch([0]).images, "input_x_gradient", "green")
    torch.testing.assert_close(maps, data.batch([0]).images[:, 1] / 32**2)


def test_what_an_untrained_reader_is_told(tmp_path: Path) -> None:
    """A network with one number is taken for a yes or no, aloud; a declared one is not asked about."""
    plain = dataclasses.replace(stage.model("one"), output=None, classes=())
    with pytest.warns(UserWarning, match="one number per picture, which is read as the logit of yes"):
        found = run(Study([plain], [stage.Squares(2)], ["saliency"], ["srg"]), tmp_path / "plain")
    assert found.pictures["predicted"].tolist() == ["yes", "yes"]
    assert found.pictures["right"].tolist() == [True, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(Study([stage.model("one")], [stage.Squares(2)], ["saliency"], ["srg"]), tmp_path / "declared")

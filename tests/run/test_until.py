"""A run that stops when it is solid stops at the same picture however it is computed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from networks import small_cnn
from torch import Tensor
from typer.testing import CliRunner

import heatproof
from heatproof.cli import app
from heatproof.data._support.picture_groups import Grouping
from heatproof.data._support.sample import shuffled
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, UnknownName
from heatproof.methods.saliency import Saliency
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.headline import headline
from heatproof.results.until_text import stopped_in_words
from heatproof.run import dry_run
from heatproof.run import until as until_module
from heatproof.run.dry_run import forecast, in_words
from heatproof.run.loop import run
from heatproof.run.pace import Progress
from heatproof.run.until import Solid
from heatproof.spec.study import Study, load
from heatproof.stats.looks import SHARD
from heatproof.types import Attribution, Batch, Model, Scored

LEVELS = {"high": 1.0, "middle": 0.4, "low": 0.0}


def high(model: Model, batch: Batch) -> Tensor:
    return torch.full_like(batch.images[:, 0], 1.0)


def middle(model: Model, batch: Batch) -> Tensor:
    return torch.full_like(batch.images[:, 0], 0.4)


def low(model: Model, batch: Batch) -> Tensor:
    return torch.full_like(batch.images[:, 0], 0.0)


@dataclasses.dataclass(frozen=True)
class NoisyLevel:
    """The level of a map and noise that belongs to the picture and the level."""

    higher_is_better: ClassVar[bool] = True
    noise: float = 0.8

    def __call__(self, attribution: Attribution, /) -> Scored:
        level = attribution.maps.flatten(1)[:, 0]
        noise = []
        for name, own in zip(attribution.batch.ids, level.tolist(), strict=True):
            seed = int.from_bytes(hashlib.sha256(f"{name} {own:.2f}".encode()).digest()[:6])
            noise.append(torch.randn((), generator=torch.Generator().manual_seed(seed)).item())
        return Scored(level + self.noise * torch.tensor(noise))


def study(**changes: Any) -> Study:
    return Study(
        models=[small_cnn()],
        datasets=[TwoFactor(count=300)],
        methods=[high, middle, low],
        metrics=[NoisyLevel()],
        **changes,
    )


def text(results: Any) -> tuple[Any, ...]:
    table = results.scores.drop(columns="seconds").sort_values(["method", "image"]).reset_index(drop=True)
    return results.info.until, table.to_dict("list")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    out = tmp_path_factory.mktemp("once")
    return out, run(study(), out, until=Solid(margin=0.05))


def test_it_stops_as_soon_as_every_pair_is_decided(once: tuple[Path, Any]) -> None:
    _, results = once
    until = results.info.until
    assert until.undecided == 0
    assert {pair.outcome for pair in until.pairs} == {"better"}
    (stop,) = until.stops
    assert stop.reason == "decided"
    assert 20 * stop.shards == stop.pictures == results.scores["image"].nunique() < 300
    assert max(pair.pictures for pair in until.pairs) == stop.pictures
    assert stop.looks[-1] == stop.pictures
    assert len(until.levels) == len(stop.looks)
    assert sum(until.levels) < 0.05
    assert "every pair of methods is decided" in stopped_in_words(until)[0]
    said = f"Pictures were added until it was solid, {stop.pictures} of 300: 3 pairs of methods differ."
    assert said in headline(Reading(results))[0]
    assert results.info.edition > 0


def outcomes(page: Any) -> dict[tuple[str, ...], str]:
    """By metric, data set, model and pair in the order of their names."""
    turned = {"better": "worse", "worse": "better"}
    return {
        (*place, *sorted((row["method_a"], row["method_b"]))): row["outcome"]
        if row["method_a"] < row["method_b"]
        else turned.get(row["outcome"], row["outcome"])
        for place, tests in page.tests.items()
        for row in tests.frame.to_dict("records")
        if row["controls"] == 0
    }


def decisions(until: dict[str, Any]) -> dict[tuple[str, ...], str]:
    turned = {"better": "worse", "worse": "better"}
    return {
        (one.metric, one.dataset, one.model, *sorted((one.method_a, one.method_b))): one.outcome
        if one.method_a < one.method_b
        else turned.get(one.outcome, one.outcome)
        for one in until.pairs
    }


@pytest.mark.parametrize(("noise", "race", "most"), [(0.3, False, None), (2.0, False, 200), (1.5, True, 300)])
def test_the_page_says_what_the_run_decided(tmp_path: Path, noise: float, race: bool, most: int | None) -> None:
    """Read back from its files, every pair of the page is as the sequence had it: sentences, ranks and tables too."""
    requested = dataclasses.replace(
        study(), methods=[high, "random", middle, low, Saliency()], metrics=[NoisyLevel(noise=noise)]
    )
    run(requested, tmp_path, until=Solid(margin=0.3, max_images=most, race=race))
    results = heatproof.Results.load(tmp_path)
    until, page = results.info.until, results.page
    assert outcomes(page) == decisions(until)
    assert (page.looks, page.level) == (len(until.levels), until.levels[-1])
    assert "whenever the run stops" in page.sentence
    for tests in page.tests.values():
        frame = tests.frame
        assert (frame["significant"] == (frame["p_adjusted"] <= 0.05)).all()
        assert (frame["significant"] == frame["outcome"].isin(["better", "worse"])).all()
    html = heatproof.report(results, tmp_path / "report.html").read_text()
    assert "made for a number of pictures that was fixed" not in html


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_do_not_move_the_stop(once: tuple[Path, Any], tmp_path: Path, workers: int) -> None:
    assert text(run(study(), tmp_path, until=Solid(margin=0.05), workers=workers)) == text(once[1])


def test_a_run_that_was_killed_stops_at_the_same_place(once: tuple[Path, Any], tmp_path: Path) -> None:
    def kill(done: int, total: int, label: str) -> None:
        assert total == 45
        assert "decided" in label
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study(), tmp_path, until=Solid(margin=0.05), watch=kill)
    half = heatproof.Results.load(tmp_path)
    assert half.info.until.stops[0].reason == "interrupted"
    assert half.scores["image"].nunique() == 20
    assert text(run(study(), tmp_path, until=Solid(margin=0.05))) == text(once[1])
    assert text(run(study(), tmp_path, until=Solid(margin=0.05))) == text(once[1])  # and again, of what is stored


def test_a_race_keeps_the_rows_of_dropped_methods(once: tuple[Path, Any], tmp_path: Path) -> None:
    results = run(study(), tmp_path, until=Solid(margin=0.05, race=True), workers=2)
    until = results.info.until
    dropped = {one.method: one.pictures for one in until.dropped}
    assert set(dropped) == {"middle", "low"}
    rows = results.scores.groupby("method").size()
    for method, pictures in dropped.items():
        assert rows[method] == pictures
    assert rows["high"] == max(dropped.values())
    assert rows["low"] < rows["high"] or dropped["low"] == dropped["middle"]
    page = heatproof.report(results, tmp_path / "report.html").read_text()
    assert "Why the run stopped" in page
    assert "Dropped from the race" in page


def test_open_pairs_stay_open_when_there_are_no_more_pictures(tmp_path: Path) -> None:
    twice = dataclasses.replace(study(), methods=[high, middle], metrics=[NoisyLevel(noise=50.0)])
    results = run(twice, tmp_path, until=Solid(max_images=40))
    until = results.info.until
    assert until.undecided == 1
    assert until.stops[0].reason == "max_images"
    assert until.stops[0].pictures == 40
    assert "still open" in stopped_in_words(until)[0]


def test_the_rule_is_stored_and_replayed(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    words = "run --methods saliency,random,input_x_gradient --metrics pointing_game --limit 100 -q --workers 1 "
    runner = CliRunner()
    done = runner.invoke(
        app, [*words.split(), "--until", "solid", "--margin", "0.9", "--max-images", "64", "-o", str(first)]
    )
    assert done.exit_code == 0, done.output
    assert "stopped after" in done.output
    assert Solid.load(first / "study.json") == Solid(margin=0.9, max_images=64)
    (stored,) = load(first / "study.json")
    assert (stored.sample, stored.shard, stored.limit) == ("random", 20, 64)
    again = runner.invoke(app, ["run", str(first / "study.json"), "-q", "--workers", "1", "-o", str(second)])
    assert again.exit_code == 0, again.output
    assert text(heatproof.Results.load(second)) == text(heatproof.Results.load(first))
    table = runner.invoke(app, ["table", str(first)])
    assert "stopped after" in table.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--race", "--race needs --until solid"),
        ("--margin 0.1 --max-images 40", "--margin, --max-images needs --until solid"),
        ("--until sure", "--until must be solid, got 'sure'"),
        ("--until solid --max-images 5", "max_images must be at least 20"),
        ("--until solid --margin -1", "margin must be a number from 0 on"),
    ],
)
def test_options_that_make_no_sense(words: str, message: str) -> None:
    done = CliRunner().invoke(app, ["run", "--methods", "saliency", *words.split()])
    assert done.exit_code == 2
    assert message in done.output


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = "run --methods saliency,input_x_gradient,random --metrics pointing_game --limit 30 --dry-run --workers 1"
    done = CliRunner().invoke(app, [*words.split(), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "3 methods × 1 metric × 30 pictures = 90 scores" in done.output
    assert "Expected time" in done.output
    assert not out.exists()


def test_a_dry_run_says_what_will_be_run_before_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise BadInput("measuring begins here")

    monkeypatch.setattr(dry_run, "forecast", stop)
    words = "run --methods saliency,random --metrics pointing_game --limit 30 --dry-run"
    done = CliRunner().invoke(app, words.split())
    assert done.output.index("2 methods × 1 metric × 30 pictures") < done.output.index("Measuring every unit")
    assert done.output.index("Measuring every unit") < done.output.index("measuring begins here")


def test_a_forecast_tells_a_display_what_it_measures() -> None:
    shown: list[Progress] = []
    forecast([study(limit=40)], show=shown.append)
    measured = [one for one in shown if one.phase == "measuring"]
    assert [one.done for one in measured][: measured[0].total] == list(range(1, measured[0].total + 1))
    assert measured[0].label


def test_a_forecast_counts_passes_and_comparisons() -> None:
    found = forecast([study(limit=200)], until=Solid(max_images=100))
    (setting,) = found.settings
    assert setting.pictures == 100
    assert found.pilot == 20
    assert set(setting.unpriced) >= {"high", "middle", "low"}
    (card,) = found.comparisons
    assert len(card.plans) == 3
    assert all(0 < one.detectable < 1 for one in card.plans)
    assert found.seconds > 0
    assert "declare no cost" in " ".join(in_words(found))


@dataclasses.dataclass(frozen=True)
class Patients(TwoFactor):
    """Pictures of patients."""

    kinds: tuple[str, ...] = ("patient",)
    each: int = 7

    def groups(self) -> dict[str, Grouping]:
        count = len(self)
        labels = {
            name: tuple(str(i // self.each if at == 0 else i % (self.each + at - 1)) for i in range(count))
            for at, name in enumerate(self.kinds)
        }
        return {name: Grouping("sampled", values) for name, values in labels.items()}


def test_whole_groups_are_units(tmp_path: Path) -> None:
    dataset = Patients(count=140)
    order = shuffled(dataset, None, 0)
    met = [place // 7 for place in order]
    assert sorted(order) == list(range(140))
    assert len([1 for a, b in pairwise(met) if a != b]) == 19  # none comes back
    assert shuffled(dataset, 50, 0) == order[:50]
    assert shuffled(dataset, None, 1) != order
    requested = dataclasses.replace(study(), datasets=[dataset])
    until = run(requested, tmp_path, until=Solid(margin=0.0)).info.until
    assert {pair.outcome for pair in until.pairs} == {"better"}
    # Twenty pictures are of three or four patients only: nothing can be decided of them.
    assert min(pair.look for pair in until.pairs) > 1


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Patients(count=140, kinds=("patient", "site", "week")), "crossed kinds"),
        (Patients(count=40, each=20), "at least 6 are needed"),
    ],
)
def test_groups_that_come_back_are_refused(tmp_path: Path, dataset: Patients, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run(dataclasses.replace(study(), datasets=[dataset]), tmp_path, until=Solid())


def test_rules_that_compare_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="at least two methods"):
        run(dataclasses.replace(study(), methods=[high]), tmp_path, until=Solid())
    with pytest.raises(UnknownName, match="metric of this study"):
        run(study(), tmp_path, until=Solid(metric="srg"))
    with pytest.raises(BadInput, match="must be the rule 'solid'"):
        Solid.from_plain({"rule": "whatever"})
    with pytest.raises(BadInput, match="another version"):
        Solid.from_plain({"rule": "solid", "blade": 1})
    assert until_module.SHARD == SHARD


def test_results_of_another_edition_are_named(once: tuple[Path, Any], tmp_path: Path, recwarn: Any) -> None:
    requested = study(limit=8)
    run(requested, tmp_path)
    run(requested, tmp_path)
    assert not [one for one in recwarn if "edition" in str(one.message)]
    from heatproof.storage import sealed_json

    info = json.loads((tmp_path / "info.json").read_bytes())
    info.pop(sealed_json.SEAL, None)
    for edition, words in ((3, "edition 3"), (None, "an earlier edition")):
        (tmp_path / "info.json").write_bytes(sealed_json.written({**info, "edition": edition}))
        with pytest.warns(UserWarning, match=f"holds results of {words} .* computed anew"):
            run(requested, tmp_path)

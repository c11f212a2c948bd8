"""The pace: units weigh what they cost, so that the time left neither jumps nor lies."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from networks import small_cnn

from heatproof import engine
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.run.loop import run
from heatproof.run.pace import Pace, Progress, passes, unit_of
from heatproof.run.shards import Shard, shards
from heatproof.spec.study import Study


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def study(count: int = 16, **rest: object) -> Study:
    return Study(
        [small_cnn()],
        [TwoFactor(count=count)],
        ["saliency", "integrated_gradients(steps=32)"],
        ["srg(points=3)", "mif(points=3)"],
        shard=8,
        **rest,  # type: ignore[arg-type]
    )


def work(count: int = 16) -> list[Shard]:
    return list(shards(study(count, protocol="one"), engine.pick("cpu")))


def every(shard: Shard) -> list[tuple[str, str]]:
    return list(shard.units)


@pytest.fixture
def costs() -> dict[str, float]:
    """Seconds per picture by method; the explanation falls on the first metric."""
    return {"saliency": 0.01, "integrated_gradients(steps=32)": 2.0}


def started(monkeypatch: pytest.MonkeyPatch, costs: dict[str, float], shown: list[Progress]) -> tuple[Pace, Clock]:
    units = [(unit_of(s, *names), costs[names[0]] if "srg" in names[1] else 0.01) for s in work() for names in s.units]
    monkeypatch.setattr(sys.modules["heatproof.run.pace"], "_measured", lambda *_: iter(dict(units).items()))
    clock = Clock()
    pace = Pace(shown.append, clock=clock)
    pace.begin(work(), every, 1)
    return pace, clock


@pytest.mark.parametrize("slower", [0.5, 1.0, 3.0])
def test_the_time_left_never_rises_by_half_though_units_differ_a_hundredfold(
    monkeypatch: pytest.MonkeyPatch, costs: dict[str, float], slower: float
) -> None:
    shown: list[Progress] = []
    pace, clock = started(monkeypatch, costs, shown)
    assert pace.expected == pytest.approx(8 * 2 * (2.01 + 0.02))
    for shard in work():
        for method, metric in shard.units:
            clock.now += slower * 8 * (costs[method] if "srg" in metric else 0.01)
            pace.tick(f"{method} · {metric}")
    left = [one.seconds_left for one in shown if one.phase == "judging"]
    known = [seconds for seconds in left if seconds is not None]
    assert len(known) == len(left)
    first = next(seconds for seconds in known)
    assert first == pytest.approx(pace.expected)
    lowest = math.inf
    for seconds in known:
        # A run three times as slow as measured cannot but say so, once.
        assert slower > 2 or seconds <= 1.5 * lowest
        lowest = min(lowest, seconds)
    assert known[-1] == pytest.approx(0)
    assert shown[-1].protocols == {"one": (8, 8)}


def test_what_was_done_before_weighs_nothing(monkeypatch: pytest.MonkeyPatch, costs: dict[str, float]) -> None:
    pace, _ = started(monkeypatch, costs, [])
    whole = pace.expected or 0.0
    pace.begin(work(), lambda shard: [names for names in shard.units if names[0] == "saliency"], 1)
    assert 0 < (pace.expected or 0.0) < whole / 50


def test_without_a_measurement_units_weigh_their_declared_passes() -> None:
    weights = passes(work())
    slow, fast = (
        sum(weight for unit, weight in weights.items() if unit[-2].startswith(name))
        for name in ("integrated_gradients", "saliency")
    )
    assert slow > 3 * fast


def test_a_run_shows_its_phases_and_the_pilot_leaves_no_trace(tmp_path: Path) -> None:
    shown: list[Progress] = []
    requested = dataclasses.replace(study(), protocol="")
    measured = run(requested, tmp_path / "measured", pace=Pace(shown.append, fewest=1))
    plain = run(requested, tmp_path / "plain")
    assert list(dict.fromkeys(one.phase for one in shown)) == ["reading pictures", "checking", "measuring", "judging"]
    measuring = [one for one in shown if one.phase == "measuring"]
    assert [one.done for one in measuring] == [1, 2, 3, 4, *[4] * (len(measuring) - 4)]  # as each is measured
    assert measuring[-1].total == 4
    assert shown[-1].done == shown[-1].total == 8
    assert (measured.scores["value"] - plain.scores["value"]).abs().max() < 1e-5
    again: list[Progress] = []
    run(requested, tmp_path / "measured", pace=Pace(again.append, fewest=1))
    assert "measuring" not in {one.phase for one in again}


def test_an_estimate_before_the_work_is_there_for_the_display() -> None:
    pace = Pace(lambda progress: None, fewest=1)
    todo: Callable[[Shard], list[tuple[str, str]]] = every
    pace.begin(work(8), todo, 1)
    assert (pace.expected or 0.0) > 0

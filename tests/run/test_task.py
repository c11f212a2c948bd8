"""Work hands back what it finds and writes nothing: the driver alone puts it in the store, each unit once."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
import torch

from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.executors import local
from heatproof.results import Results
from heatproof.run import loop, verify
from heatproof.run.findings import Choices, Counted, Maps, Pictures, Rows
from heatproof.run.loop import run
from heatproof.run.shards import shards
from heatproof.run.store import Store
from heatproof.run.task import finished, perform, tasks
from heatproof.spec.study import Study
from heatproof.types import Attribution


@dataclass(frozen=True)
class Traced:
    """Counts its calls in a file, so that forked workers count, too."""

    file: str
    higher_is_better: ClassVar[bool] = True

    def __call__(self, attribution: Attribution, /) -> torch.Tensor:
        with Path(self.file).open("a") as trace:
            trace.write("x")
        return attribution.maps.flatten(1).std(1)


def study(*metrics: Any, methods: Sequence[Any] = ("saliency", "random")) -> Study:
    return Study(["embedded:object"], [TwoFactor(count=6)], list(methods), list(metrics) or ["mif"], shard=2)


def table(root: Path) -> pd.DataFrame:
    return Results.load(root).scores.drop(columns="seconds")


def test_work_needs_no_directory_and_its_findings_make_the_run(tmp_path: Path) -> None:
    run(study(), tmp_path / "run")
    work = list(shards(study(), torch.device("cpu")))
    store = Store(tmp_path / "new")
    todo = tasks(work, store)
    before = set(tmp_path.rglob("*"))
    found = [one for task in todo for one in perform(task) if not isinstance(one, Choices)]
    assert set(tmp_path.rglob("*")) == before
    assert {type(one) for one in found} == {Counted, Pictures, Maps, Rows}
    for one in found:
        one.put(store)
    store.flush()
    assert all(finished(shard, store) for shard in work)
    assert tasks(work, store) == []
    for shard in work:
        for key in shard.units.values():
            (mine, its) = (Store(root).get(key) for root in (tmp_path / "new", tmp_path / "run"))
            assert mine is not None
            assert its is not None
            assert dataclasses.replace(mine, seconds=0.0) == dataclasses.replace(its, seconds=0.0)


@pytest.mark.parametrize("workers", [1, 2])
def test_only_the_driver_writes(workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[int] = []
    put = Store.put

    def watched(self: Store, *given: Any) -> None:
        writers.append(os.getpid())
        put(self, *given)

    monkeypatch.setattr(Store, "put", watched)
    assert run(study(), tmp_path, workers=workers).complete
    assert writers == [os.getpid()] * 6


@pytest.mark.parametrize("workers", [1, 2])
def test_a_unit_that_two_studies_share_is_computed_once(workers: int, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    one, other = study(Traced(str(trace)), methods=["saliency"]), study(Traced(str(trace)), "mif")
    counts: list[tuple[int, int]] = []
    results = run([one, other], tmp_path / "run", workers=workers, watch=lambda *now: counts.append(now[:2]))
    assert results.complete
    assert len(trace.read_text()) == 3 * 2  # three shards, two methods
    assert counts[-1] == (15, 15)


class Repeating:
    """An executor that lost every worker once, after its work."""

    how_many, check, close = map(staticmethod, (local.how_many, local.check, local.close))

    @staticmethod
    def spread(work: Callable[[Any], Iterator[Any]], parts: Sequence[Any], workers: int) -> Generator[Any]:
        for part in parts:
            yield from work(part)
            yield from work(part)


def test_a_task_that_was_done_again_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(study(), tmp_path / "once")
    counts: list[tuple[int, int]] = []
    monkeypatch.setattr(loop, "executor", lambda name: Repeating)
    results = run(study(), tmp_path / "twice", watch=lambda *now: counts.append(now[:2]))
    assert counts == [(done, 6) for done in range(1, 7)]
    pd.testing.assert_frame_equal(results.scores.drop(columns="seconds"), table(tmp_path / "once"), check_exact=True)


def test_what_was_done_before_counts_from_the_start(tmp_path: Path) -> None:
    run(study(methods=["saliency"]), tmp_path)
    counts: list[tuple[int, int]] = []
    run(study(), tmp_path, watch=lambda *now: counts.append(now[:2]))
    assert counts == [(4, 6), (5, 6), (6, 6)]


def test_rows_say_the_kind_of_machine(tmp_path: Path) -> None:
    machines = set(run(study(), tmp_path).scores["machine"])
    assert machines == {f"cpu {torch.backends.cpu.get_cpu_capability()} of {os.cpu_count()}"}


def test_a_directory_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    """It has a JSON file for each unit and each shard, and no parts."""
    first = run(study(), tmp_path)
    kept = Store(tmp_path)
    for shard in shards(study(), torch.device("cpu")):
        for key in shard.units.values():
            body = json.dumps({"key": key, **dataclasses.asdict(kept.get(key))}).encode()  # type: ignore[arg-type]
            file = tmp_path / "units" / key[:2] / f"{key}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        kept.put_json(f"shards/{shard.key[:2]}/{shard.key}.json", dataclasses.asdict(kept.record(shard.key)))  # type: ignore[arg-type]
    shutil.rmtree(tmp_path / "parts")
    assert [finding for finding in verify.check(tmp_path) if finding.problem] == []
    pd.testing.assert_frame_equal(table(tmp_path), first.scores.drop(columns="seconds"), check_exact=True)
    counts: list[int] = []
    again = run(study(methods=["saliency", "random", "edges"]), tmp_path, watch=lambda done, *_: counts.append(done))
    assert counts == [7, 8, 9]  # only the method that is new
    old = again.scores[again.scores["method"] != "edges"].reset_index(drop=True)
    pd.testing.assert_frame_equal(old, first.scores, check_exact=True)
    assert again.info.pictures == first.info.pictures

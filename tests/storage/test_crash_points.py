"""Whatever step of a write fails or is the last: right results, earlier ones, or a sentence; never a wrong number."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from networks import small_cnn
from storage.breaking import KILLED, Disk, breaking, in_a_fork

from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import HeatproofError
from heatproof.report import report
from heatproof.results import Results, tables
from heatproof.run.loop import run
from heatproof.spec.study import Study
from heatproof.types import Batch, Model

pytestmark = pytest.mark.usefixtures("each_unit_at_once")
ENDS = [KILLED, errno.ENOSPC, errno.EIO]


def bright(model: Model, batch: Batch) -> Any:
    return batch.images.mean(1)


def dark(model: Model, batch: Batch) -> Any:
    return -batch.images.mean(1)


def question(metric: str, methods: Sequence[Any]) -> Study:
    return Study([small_cnn()], [TwoFactor(count=2)], list(methods), [metric], shard=1)


FIRST = (("lif(points=3)", [bright, "random"]),)
SECOND = (("mif(points=3)", [bright, dark, "random"]),)  # lower is better: a guessed direction turns it upside down


def study(words: Any) -> list[Study]:
    return [question(*one) for one in words]


def answer(root: Path) -> str:
    """What a person is shown: the ranking as `heatproof table` prints it."""
    return tables.written(tables.rankings(Results.load(root)), "csv")


def scores(root: Path) -> pd.DataFrame:
    return Results.load(root).scores.drop(columns="seconds")


class Answers(NamedTuple):
    """Two directories in which all went well, what they show, and the scores of the second."""

    first: Path
    second: Path
    shown: dict[str, str]
    scores: pd.DataFrame


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Both questions answered without any fault, and a directory in which the first one was."""
    home = tmp_path_factory.mktemp("right")
    for name, words in (("first", FIRST), ("second", SECOND)):
        run(study(words), home / name)
    shown = {name: answer(home / name) for name in ("first", "second")}
    return Answers(home / "first", home / "second", shown, scores(home / "second"))


def steps_of(right: Answers, tmp_path: Path, begun: bool) -> int:
    """How many steps the second question takes in an empty directory, or in one that holds the first one's answer."""
    where = tmp_path / "counted"
    if begun:
        shutil.copytree(right.first, where)
    with breaking(Disk()) as disk:
        run(study(SECOND), where)
    return disk.steps


def survives(right: Answers, where: Path, at: int, how: int | str, begun: bool, drawn: bool = True) -> str:
    """Break the second question at one step; what the directory then shows, after checking that it is not wrong."""
    if begun:
        shutil.copytree(right.first, where)

    def broken() -> None:
        with breaking(Disk(at, how)):
            run(study(SECOND), where)

    status = in_a_fork(broken)
    assert status == (-9 if how == KILLED else 1)
    allowed = [right.shown["second"]] + ([right.shown["first"]] if begun else [])
    try:
        shown = answer(where)
        assert shown in allowed
        if drawn:
            report(Results.load(where), where / "report.html")
        outcome = "second" if shown == allowed[0] else "first"
    except HeatproofError as error:
        outcome = (
            "sentence" if "run the same command again" in str(error) or "no run.json" in str(error) else str(error)
        )
    assert outcome in ("first", "second", "sentence")
    healed = run(study(SECOND), where)
    pd.testing.assert_frame_equal(healed.scores.drop(columns="seconds"), right.scores, check_exact=True)
    assert answer(where) == right.shown["second"]
    assert not list(where.rglob(".partial-*"))
    return outcome


@pytest.mark.parametrize("begun", [False, True], ids=["empty directory", "second question"])
@pytest.mark.parametrize("how", ENDS, ids=["kill", "full disk", "read-write error"])
def test_some_crash_points(right: Answers, tmp_path: Path, how: int | str, begun: bool) -> None:
    total = steps_of(right, tmp_path, begun)
    assert total > 40
    first = {KILLED: 0, errno.ENOSPC: 2, errno.EIO: 4}[how]
    late = range(total - 8, total, 3)  # around the commit, where results change hands
    points = [*range(first, total - 8, 42), *late]
    met = {survives(right, tmp_path / str(at), at, how, begun, drawn=at in late) for at in points}
    assert met >= ({"first", "sentence"} if begun else {"sentence"})


@pytest.mark.slow
@pytest.mark.parametrize("begun", [False, True], ids=["empty directory", "second question"])
@pytest.mark.parametrize("how", ENDS, ids=["kill", "full disk", "read-write error"])
def test_every_crash_point(right: Answers, tmp_path: Path, how: int | str, begun: bool) -> None:
    for at in range(steps_of(right, tmp_path, begun)):
        survives(right, tmp_path / str(at), at, how, begun)


def test_the_harness_sees_a_commit_in_the_wrong_order(right: Answers) -> None:
    """Scores of one question with the run information of another must be noticed."""
    mixed = right.first.with_name("mixed")
    shutil.copytree(right.first, mixed, dirs_exist_ok=True)
    shutil.copy(right.second / "scores.parquet", mixed / "scores.parquet")
    with pytest.raises(HeatproofError, match=r"do not belong together .*scores\.parquet"):
        answer(mixed)
    os.unlink(mixed / "info.json")  # noqa: PTH108
    with pytest.raises(HeatproofError, match=r"info\.json"):
        answer(mixed)

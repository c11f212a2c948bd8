"""Two runs: what moved is found, what did not is not, and pairing sees what unpaired tests cannot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heatproof.stats.groups import Groups
from heatproof.stats.two_runs import Cell, Move, moves

N = 40


def series(values: np.ndarray, start: int = 0) -> pd.Series:
    return pd.Series(values, index=[f"picture{start + at}" for at in range(len(values))])


def cells(gap: float, count: int = 12, seed: int = 0, shift: int = 0) -> dict[int, Cell]:
    """Cells of which the first moved by `gap`; pictures are hard or easy in both runs."""
    rng = np.random.default_rng(seed)
    found = {}
    for at in range(count):
        hard = rng.normal(0, 1, N)
        second = hard + rng.normal(0, 0.1, N) + gap * (at == 0)
        found[at] = Cell(series(hard + rng.normal(0, 0.1, N)), series(second, shift))
    return found


def test_a_move_is_found_with_its_direction_and_size() -> None:
    up, *rest = moves(cells(0.3))
    assert (up.outcome, up.basis, up.n) == ("up", "paired", (N, N))
    assert up.low < 0.3 < up.high
    assert up.difference == pytest.approx(up.means[1] - up.means[0])
    assert {one.outcome for one in rest} == {"noise"}
    down = moves(cells(-0.3))[0]
    assert down.outcome == "down"
    assert down.high < 0


def test_pairing_sees_what_other_pictures_cannot_show() -> None:
    assert moves(cells(0.3))[0].outcome == "up"
    apart = moves(cells(0.3, shift=1000))
    assert {one.basis for one in apart} == {"unpaired"}
    assert apart[0].outcome == "noise"
    assert moves(cells(3.0, shift=1000))[0].outcome == "up"


def test_equal_scores_are_equal_and_no_test_of_anything() -> None:
    same = {0: Cell(series(np.arange(9.0)), series(np.arange(9.0)))}
    (found,) = moves(same)
    assert found == Move(0, "paired", (9, 9), (4.0, 4.0), 0.0, 0.0, 0.0, 1.0, "same")


def test_few_pictures_tell_nothing() -> None:
    short = {
        0: Cell(series(np.arange(3.0)), series(np.arange(3.0) + 5)),
        1: Cell(series(np.ones(9)), series(np.ones(2), 99)),
    }
    assert [one.outcome for one in moves(short)] == ["few", "few"]
    empty = {0: Cell(series(np.array([])), series(np.ones(9)))}
    assert moves(empty)[0].outcome == "few"


def test_only_shared_pictures_are_paired() -> None:
    rng = np.random.default_rng(3)
    first, second = series(rng.normal(0, 1, N)), series(rng.normal(0, 1, N), 30)
    (found,) = moves({0: Cell(first, second)})
    assert (found.basis, found.n) == ("paired", (10, 10))
    assert found.means[0] == pytest.approx(first.iloc[30:].mean())


def test_false_moves_are_as_rare_as_promised() -> None:
    """30 runs without any move, of 12 cells each: more than 6 with a false one has a chance below 0.1 %."""
    wrong = sum(any(one.outcome in ("up", "down") for one in moves(cells(0.0, seed=seed))) for seed in range(30))
    assert wrong <= 6


def test_pictures_of_one_patient_count_as_one() -> None:
    """A few patients moved together: independent pictures would show it, patients do not."""
    rng = np.random.default_rng(0)
    patient = np.arange(40) // 8
    gap = rng.normal(0, 1, 5)[patient] + 0.8
    cell = {0: Cell(series(np.zeros(40)), series(gap + rng.normal(0, 0.05, 40)), "d")}
    labels = pd.DataFrame({"patient": patient.astype(str)}, index=cell[0].first.index)
    assert moves(cell)[0].outcome == "up"
    assert moves(cell, {"d": Groups(labels, {"patient": "sampled"})})[0].outcome != "up"

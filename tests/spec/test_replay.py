"""How a replay is compared with its first run: stable methods by float noise, unstable ones by name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from heatproof.spec.replay import ROW, Comparison, compared

PICTURES = 10


def scores(**moved: float) -> pd.DataFrame:
    """Scores of two methods; `moved` says by how much the first picture's differs."""
    rows = [
        ("d", "m", method, "srg", f"{i}", 0.5 + (moved.get(method, 0.0) if i == 0 else 0.0))
        for method in ("saliency", "isa")
        for i in range(PICTURES)
    ]
    return pd.DataFrame(rows, columns=[*ROW, "value"])


def comparison(before: pd.DataFrame, now: pd.DataFrame) -> Comparison:
    return compared(before, now, {}, Path("first"), ["isa"])


def test_equal_tables_are_the_same() -> None:
    found = comparison(scores(), scores())
    assert found.same
    assert found.holds
    assert str(found) == "20 scores as in first, largest difference 0"


def test_float_noise_in_a_picture_is_float_noise() -> None:
    found = comparison(scores(), scores(saliency=5e-5))
    assert (found.same, found.holds) == (False, True)
    assert (found.largest, found.largest_mean) == (pytest.approx(5e-5), pytest.approx(5e-6))
    assert ": float noise" in str(found)


def test_more_than_float_noise_is_named() -> None:
    found = comparison(scores(), scores(saliency=5e-4))
    assert not found.holds
    assert "more than float noise (1e-05)" in str(found)


def test_unstable_methods_are_counted_apart_and_named() -> None:
    found = comparison(scores(), scores(isa=0.3))
    assert (found.same, found.holds, found.largest) == (False, True, 0)
    assert found.unstable == {"isa": pytest.approx(0.3)}
    assert "compared with first, largest difference 0; numerically unstable, counted apart: isa 0.3" in str(found)


def test_rows_of_one_side_only_are_counted() -> None:
    found = comparison(scores(), scores().iloc[1:])
    assert not found.same
    assert "1 only there" in str(found)
    hole = scores()
    hole.loc[3, "value"] = float("nan")
    assert "1 with a number in one of the two only" in str(comparison(scores(), hole))

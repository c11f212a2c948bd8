"""Results of very many rows, whose texts are categories, are the same results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from heatproof.report import report
from heatproof.results import Results, read_table, run_state, tables


@pytest.fixture
def coded(small_run: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    """A run's scores as they are read where there are very many of them."""
    small_run.scores.to_parquet(tmp_path / "scores.parquet", index=False)
    monkeypatch.setattr(read_table, "MANY", len(small_run.scores) - 1)
    hashes = {"scores.parquet": run_state.sha256_of(tmp_path / "scores.parquet")}
    scores = read_table.read_table(tmp_path, "scores.parquet", hashes)
    assert isinstance(scores["image"].dtype, pd.CategoricalDtype)
    return replace(small_run, scores=scores)


def test_the_page_and_the_tables_are_the_same(small_run: Results, coded: Results, tmp_path: Path) -> None:
    plain = replace(small_run, scores=small_run.scores.copy())
    pages = [report(one, tmp_path / f"{at}.html").read_text() for at, one in enumerate((plain, coded))]
    assert pages[0] == pages[1]
    for make in (tables.rankings, tables.pairs):
        assert tables.written(make(coded), "csv") == tables.written(make(plain), "csv")
    assert coded.to_latex() == plain.to_latex()


def test_rows_of_a_metric_are_plain_text(coded: Results) -> None:
    rows = coded.rows(coded.metrics[0])
    assert not [name for name in rows if isinstance(rows[name].dtype, pd.CategoricalDtype)]

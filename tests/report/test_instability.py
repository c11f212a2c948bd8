"""Numerically unstable methods carry a mark in the report, with what it means."""

from __future__ import annotations

from invented_run import invent, with_info

from heatproof.report.page import page
from heatproof.report.run_numbers import Reading


def test_unstable_methods_are_marked_and_explained() -> None:
    run = invent(["embedded:object"], [f"{index:05d}" for index in range(9)])
    assert "Numerically unstable" not in page(Reading(run))
    run = with_info(run, methods={**run.info.plain()["methods"], "lrp": {"unstable": True}})
    drawn = page(Reading(run))
    assert "† Numerically unstable: lrp. Float noise" in drawn
    assert "only <code>--engine reference</code> repeats them" in drawn
    assert 'lrp <abbr title="numerically unstable">†</abbr>' in drawn
    run = with_info(run, engine_kind="reference")
    assert "computed by the reference engine, which repeats them" in page(Reading(run))

"""The steps that `run` and `demo` share: judge, draw the report, list what is missing, end with the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from heatproof.cli._replayed import FirstRun
from heatproof.cli._terminal import (
    COMPLETE,
    FAILED_ROWS,
    INTERRUPTED,
    echo,
    line,
    readable_errors,
    run_display,
    usage,
    work_bars,
)
from heatproof.results.census_text import pictures_in_words
from heatproof.results.until_text import stopped_in_words
from heatproof.run.stored_engine import StoredEngine

if TYPE_CHECKING:
    import pandas as pd

    from heatproof.executors import Executor
    from heatproof.results import Results
    from heatproof.run.share import Share
    from heatproof.run.until import Solid

SETTINGS = 6  # data sets and models whose pictures are counted in the terminal; the report has all


def run_and_report(
    studies: list[Any],
    out: Path,
    device: str,
    workers: str,
    quiet: bool,
    earlier: FirstRun | None = None,
    passes: StoredEngine = StoredEngine(),  # noqa: B008  # it is frozen
    on: str | Executor = "local",
    until: Solid | None = None,
    share: Share | None = None,
    log: str | None = None,
) -> None:
    from heatproof import loggers
    from heatproof.report import report as draw
    from heatproof.run.loop import run as judge

    count = _count(workers)
    if log is not None:
        with readable_errors():
            loggers.check(log)
    before = Before.of(out)
    try:
        with readable_errors(), run_display(quiet) as pace:
            results = judge(
                studies,
                out,
                device=device,
                workers=count,
                pace=pace,
                engine=passes.kind,
                choices=passes.choices,
                on=on,
                until=until,
                share=share,
            )
            page = draw(results, out / "report.html")
            if log is not None:
                loggers.log(log, results, out)
    except KeyboardInterrupt:
        echo(f"\nStopped. Everything finished is kept in {out}; the same command goes on from there.", err=True)
        _report_partly(out)
        raise typer.Exit(INTERRUPTED) from None
    for sentence in before.missing_in(results):
        line(sentence, err=True)
    if earlier is not None:
        echo(earlier.apart(results, studies), err=True)
    for name in results.info.damaged:
        echo(f"{name} was damaged and has been computed again.", err=True)
    for sentence in stopped_in_words(results.info.until):
        line(sentence, err=True)
    if share is not None:
        line(f"Part {share} of the study is done; heatproof gather puts the parts together.", err=True)
    end(results, page)


def end(results: Results, page: Path) -> NoReturn:
    """Say what the results lack, name the page, and leave with the exit status."""
    from heatproof.results.cautions import cautions

    for sentence in pictures_in_words(results.info.pictures)[:SETTINGS]:
        line(sentence, err=True)
    for sentence in cautions(results.scores, results.info):
        line(f"Caution: {sentence}", err=True)
    if not results.complete:
        bad = results.scores[results.scores["status"].isin(["failed", "unreadable"])]
        line(f"{len(bad)} of {len(results.scores)} rows have no score; first: {bad.iloc[0]['note']}", err=True)
    silent = {kind: unscored(results.scores, kind) for kind in ("metric", "method")}
    for name, reason in silent["metric"].items():
        line(f"Not a single score under {name}: {reason}", err=True)
    judged = results.scores["metric"].nunique() > len(silent["metric"])
    for name, reason in silent["method"].items() if judged else ():
        line(f"Not a single score of {name}: {reason}", err=True)
    whole = results.complete and not any(silent.values())
    echo(page)
    raise typer.Exit(COMPLETE if whole else FAILED_ROWS)


def show_plan(studies: list[Any], quiet: bool) -> None:
    """Print what will be run, and which of the requested protocols do not apply."""
    from heatproof.run.plan import in_words, left_out

    with readable_errors():
        if quiet:
            for name, reason in left_out(studies).items():
                line(f"Left out: {name}: {reason}", err=True)
            return
        for sentence in in_words(studies):
            line(sentence, err=True)


def show_forecast(studies: list[Any], device: str, workers: str, on: str | Executor, until: Solid | None) -> None:
    """Print what a run will cost and what it can show; write nothing."""
    from heatproof.run.dry_run import expected_in_words, forecast, in_words
    from heatproof.run.plan import in_words as plan_in_words

    with readable_errors():
        for sentence in plan_in_words(studies) if until is None else ():  # at once: measuring may take minutes
            line(sentence)
        with work_bars("Measuring every unit of work on one picture …") as show:
            found = forecast(studies, device=device, workers=_count(workers), on=on, until=until, show=show)
    for sentence in expected_in_words(found) if until is None else in_words(found):
        line(sentence)


def crew_of(on: str, gpus_per_worker: float | None) -> str | Executor:
    """The executor, with the share of a GPU that its workers have if that is given."""
    if gpus_per_worker is None:
        return on
    if on != "ray":
        usage("--gpus-per-worker belongs to --on ray: add it, or leave --gpus-per-worker out")
    from heatproof.executors.ray import Ray

    return Ray(gpus_per_worker)


def _count(workers: str) -> Any:
    """A number, or a word that the run checks."""
    return int(workers) if workers.isdecimal() else workers


def _report_partly(out: Path) -> None:
    """Draw the report of what a stopped run has so far. An earlier, whole run's report stays as it is."""
    from heatproof.errors import HeatproofError
    from heatproof.report import report as draw
    from heatproof.results import Results

    try:
        results = Results.load(out)
    except HeatproofError:
        return
    if stopped := results.info.stopped:
        line(f"The report is of a part, {stopped}:", err=True)
        echo(draw(results, out / "report.html"))
    else:
        line(f"The report in {out} is that of the earlier run, which is whole.", err=True)


@dataclass(frozen=True)
class Before:
    """What the table of an earlier run in a directory shows."""

    names: Mapping[str, set[str]]  # by kind
    pictures: Mapping[tuple[str, str], int]  # by data set and model

    @classmethod
    def of(cls, out: Path) -> Before:
        from heatproof.errors import HeatproofError
        from heatproof.results import Results

        try:
            earlier = Results.load(out).scores
        except HeatproofError:  # none, or of no use
            return cls({}, {})
        return cls({kind: set(earlier[kind]) for kind in KINDS}, _counts(earlier))

    def missing_in(self, results: Results) -> Iterator[str]:
        """Sentences on what is no longer in the table."""
        for kind, known in self.names.items():
            if gone := sorted(known - set(results.scores[kind])):
                yield (
                    f"Not requested this time, so no longer in the table: {kind} {', '.join(gone)}. The numbers are "
                    "kept: name all of them in one command to see them side by side."
                )
        now = _counts(results.scores)
        for place, count in self.pictures.items():
            if now.get(place, count) < count:
                dataset, model = place
                yield (
                    f"The table now has {now[place]} pictures of {dataset} ({model}) where it had {count}. The numbers "
                    f"of the others are kept: --limit {count} shows them again."
                )


KINDS = ("dataset", "model", "method", "metric")


def _counts(scores: pd.DataFrame) -> dict[tuple[str, str], int]:
    met = scores[["dataset", "model", "image"]].drop_duplicates().itertuples(index=False)
    return dict(Counter((str(dataset), str(model)) for dataset, model, _ in met))


def unscored(scores: pd.DataFrame, kind: str) -> dict[str, str]:
    """Metrics, or methods, without any score in the whole run, each with the first reason."""
    empty = scores.groupby(kind, sort=False)["value"].count() == 0
    return {str(name): str(scores[scores[kind] == name].iloc[0]["note"]) for name in empty.index[empty]}

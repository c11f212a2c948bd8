"""`demo`, `run`, `report`: judge, and show what came out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from heatproof.results import Results

from heatproof.cli.terminal import (
    COMPLETE,
    FAILED_ROWS,
    INTERRUPTED,
    Device,
    Out,
    Quiet,
    Workers,
    echo,
    line,
    progress_bar,
    readable_errors,
    usage,
    warn_of_later,
)
from heatproof.pictures_in_words import pictures_in_words
from heatproof.stored_engine import StoredEngine

SETTINGS = 6  # data sets and models whose pictures are counted in the terminal; the report has all


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer pictures and methods: under a minute.")] = False,
    out: Out = Path("runs/demo"),
    device: Device = "auto",
    workers: Workers = "auto",
    quiet: Quiet = False,
) -> None:
    """Judge the first contestants on the embedded models and data, and draw the report."""
    from heatproof.demo import studies

    run_and_report(studies(quick), out, device, workers, quiet)


def run(
    study: Annotated[
        Path | None, typer.Argument(help="study.json that a run wrote (data), or STUDY.py (code).")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Who is explained; may be repeated.")] = None,
    images: Annotated[list[str] | None, typer.Option(help="Folder, CSV or built-in data set.")] = None,
    masks: Annotated[str, typer.Option(help="Folder of masks named like the pictures.")] = "",
    methods: Annotated[list[str] | None, typer.Option(help="a,b,c(field=value),file.py:Name; may be repeated.")] = None,
    metrics: Annotated[list[str] | None, typer.Option(help="a,b,c(field=value); may be repeated.")] = None,
    protocols: Annotated[list[str] | None, typer.Option(help="p,q(preset=paper); may be repeated.")] = None,
    out: Out = Path("runs/latest"),
    limit: Annotated[
        int | None, typer.Option(help="Only so many pictures, of each class as many: a sample by the seed.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    target: Annotated[str | None, typer.Option(help="Class explained: predicted or label.")] = None,
    device: Device = "auto",
    workers: Workers = "auto",
    engine: Annotated[
        str | None, typer.Option(help="auto, or reference: slower, the same numbers whatever this machine measured.")
    ] = None,
    trust_pickle: Annotated[bool, typer.Option(help="Load weights that are arbitrary pickles.")] = False,
    trust_code: Annotated[bool, typer.Option("--trust-code", help="Run code that a study.json names.")] = False,
    quiet: Quiet = False,
) -> None:
    """Judge methods on a model and images, under protocols or single metrics; write rows and a report.

    A STUDY.py is code, and runs. A study.json is data: code that it names is refused without --trust-code; --model
    and --images say where its models and pictures are now, if they were moved.
    """
    from heatproof import asking

    before, passes = None, StoredEngine()
    if study is not None:
        moved = {"--model": model, "--images": images}
        given = {
            "--masks": masks or None,
            "--methods": methods,
            "--metrics": metrics,
            "--protocols": protocols,
            "--limit": limit,
            "--seed": seed,
            "--target": target,
            **(moved if study.suffix == ".py" else {}),
        }
        clash = [name for name, value in given.items() if value is not None and value != []]
        if clash:
            usage(f"a study file says everything itself: leave out {', '.join(clash)}")
        from heatproof.study import load

        with readable_errors():
            if trust_code and study.suffix != ".py":
                _list_code(study, models_too=not model)
            studies = load(study, trust_pickle, model or [], images or [], trust_code)
            before, passes = _Before.beside(study, trust_code), StoredEngine.beside(study)
    else:
        with readable_errors():
            studies = asking.studies(
                models=model or [],
                images=images or [],
                masks=masks,
                methods=_joined(methods),
                metrics=_joined(metrics),
                protocols=_joined(protocols),
                trust_pickle=trust_pickle,
                changes={"limit": limit, "seed": seed, "target": target},
            )
    run_and_report(studies, out, device, workers, quiet, before, passes if engine is None else passes.of_kind(engine))


def _list_code(study: Path, models_too: bool) -> None:
    """Say which code a stored study brings, before it runs."""
    from heatproof import stored_study, user_code

    stored = stored_study.read(study)
    for one in [*user_code.named(stored, models_too), *user_code.written_in(stored)]:
        line(f"Trusted to run: {one}", err=True)


def _joined(words: list[str] | None) -> str | None:
    """What was said at once or in several goes."""
    return ",".join(words) if words else None


def report(
    directory: Annotated[Path, typer.Argument(help="A directory that a run wrote.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: DIRECTORY/report.html.")] = None,
) -> None:
    """Draw the report of a run again; no model is needed."""
    from heatproof.report import report as draw
    from heatproof.results import Results

    page = out or directory / "report.html"
    with readable_errors():
        results = Results.load(directory)
        warn_of_later(results)
        try:
            page = draw(results, page)
        except OSError as error:
            usage(f"{page} cannot be written ({error.strerror}): choose another place for it")
    echo(page)


@dataclass(frozen=True)
class _Before:
    """The scores beside a stored study, to be told how far those of its replay are from them."""

    file: Path
    scores: pd.DataFrame
    studies: list[dict[str, Any]]
    methods: list[str]
    trust_code: bool

    @classmethod
    def beside(cls, study: Path, trust_code: bool) -> _Before | None:
        from heatproof import stored_study
        from heatproof.errors import HeatproofError
        from heatproof.results import Results

        file = study.with_name("scores.parquet")
        if study.suffix == ".py" or not file.is_file():
            return None
        try:
            before = Results.load(study.parent)
        except HeatproofError as error:
            echo(f"The replay cannot be compared with its first run: {error}", err=True)
            return None
        # The studies of the file itself: what it names was checked, or trusted.
        return cls(file, before.scores, stored_study.read(study), list(before.info["methods"]), trust_code)

    def apart(self, results: Results, studies: list[Any]) -> str:
        from heatproof import recipe, replay
        from heatproof.errors import HeatproofError

        names: dict[str, dict[str, str]] = {"dataset": {}, "model": {}, "method": {}}
        if len(self.methods) == len(results.info["methods"]):  # else they are of another run; a name may hold a path
            names["method"] = dict(zip(self.methods, results.info["methods"], strict=True))
        for stored, study in zip(self.studies, studies, strict=True):
            names["model"] |= {one["spec"]: now.name for one, now in zip(stored["models"], study.models, strict=True)}
            for one, now in zip(stored["datasets"], study.datasets, strict=True):
                with suppress(HeatproofError):  # known to another file only: then it is called what it was
                    names["dataset"][recipe.label(recipe.build(one, trust_code=self.trust_code))] = recipe.label(now)
        unstable = [label for label, about in results.info["methods"].items() if about.get("unstable")]
        return str(replay.compared(self.scores, results.scores, names, self.file, unstable))


def run_and_report(
    studies: list[Any],
    out: Path,
    device: str,
    workers: str,
    quiet: bool,
    earlier: _Before | None = None,
    passes: StoredEngine = StoredEngine(),  # noqa: B008  # it is frozen
) -> None:
    from heatproof.report import report as draw
    from heatproof.run import run as judge

    count: Any = int(workers) if workers.isdecimal() else workers  # the run knows which words there are
    before = _shown_in(out)
    try:
        with readable_errors(), progress_bar(quiet) as watch:
            results = judge(
                studies, out, device=device, workers=count, watch=watch, engine=passes.kind, choices=passes.choices
            )
            page = draw(results, out / "report.html")
    except KeyboardInterrupt:
        echo(f"\nStopped. Everything finished is kept in {out}; the same command goes on from there.", err=True)
        if _shown_in(out):
            echo(f"What all methods were judged on so far: heatproof report {out}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    for kind, known in before.items():
        gone = sorted(known - set(results.scores[kind]))
        if gone:
            echo(
                f"Not asked for this time, so no longer in the table: {kind} {', '.join(gone)}. The numbers are kept: "
                "name all of them in one command to see them side by side.",
                err=True,
            )
    if earlier is not None:
        echo(earlier.apart(results, studies), err=True)
    for name in results.info.get("damaged", []):
        echo(f"{name} was damaged and has been computed again.", err=True)
    for sentence in pictures_in_words(results.info.get("pictures", []))[:SETTINGS]:
        line(sentence, err=True)
    if not results.complete:
        bad = results.scores[results.scores["status"].isin(["failed", "unreadable"])]
        line(f"{len(bad)} of {len(results.scores)} rows have no score; first: {bad.iloc[0]['note']}", err=True)
    silent = _unscored(results.scores, "metric")
    if silent:
        line(f"Not a single score under {', '.join(silent)}; first reason: {next(iter(silent.values()))}", err=True)
    empty = _unscored(results.scores, "method")
    for method, reason in empty.items() if not silent else ():
        line(f"Not a single score of {method}; first reason: {reason}", err=True)
    judged = [name for name in results.scores["method"].unique() if not (name in empty or results.is_control(name))]
    beside = results.scores.loc[results.scores["method"].isin(empty), "status"].eq("not_applicable").all()
    # A method that does not apply to this network is an answer, as long as another method has one.
    whole = results.complete and not silent and beside and (judged or not empty)
    echo(page)
    raise typer.Exit(COMPLETE if whole else FAILED_ROWS)


def _shown_in(out: Path) -> dict[str, set[str]]:
    """What the table of an earlier run in this directory shows, by kind."""
    from heatproof.errors import HeatproofError
    from heatproof.results import Results

    try:
        earlier = Results.load(out).scores
    except HeatproofError:  # none, or of no use
        return {}
    return {kind: set(earlier[kind]) for kind in ("dataset", "model", "method", "metric")}


def _unscored(scores: pd.DataFrame, kind: str) -> dict[str, str]:
    """Metrics, or methods, without any score in the whole run, with the first reason."""
    empty = scores.groupby(kind, sort=False)["value"].count() == 0
    return {str(name): scores[scores[kind] == name].iloc[0]["note"] for name in empty.index[empty]}

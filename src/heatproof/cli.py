"""The command line. Imports wait until a command needs them: `--help` must not wait for torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

COMPLETE, FAILED_ROWS, BAD_USAGE = 0, 1, 2

app = typer.Typer(
    help="Which heatmaps hold up: judge attribution methods for image classifiers under published protocols.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Listable(StrEnum):
    """What `heatproof list` can list."""

    methods = "methods"
    metrics = "metrics"
    imputers = "imputers"
    segmenters = "segmenters"
    protocols = "protocols"
    datasets = "datasets"
    models = "models"


Out = Annotated[Path, typer.Option("--out", "-o", help="Directory for rows and report; run again to go on.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


@app.command()
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer pictures and methods: under a minute.")] = False,
    out: Out = Path("runs/demo"),
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Judge the first contestants on the embedded models and data, and draw the report."""
    from heatproof.demo import studies

    _run_and_report(studies(quick), out, device, quiet)


@app.command()
def run(
    study: Annotated[Optional[Path], typer.Argument(help="study.json that a run wrote, or STUDY.py.")] = None,
    model: Annotated[Optional[list[str]], typer.Option(help="Who is explained; may be repeated.")] = None,
    images: Annotated[Optional[list[str]], typer.Option(help="Folder, CSV or built-in data set.")] = None,
    methods: Annotated[Optional[str], typer.Option(help="a,b,c(field=value)")] = None,
    metrics: Annotated[Optional[str], typer.Option(help="a,b,c(field=value)")] = None,
    protocols: Annotated[Optional[str], typer.Option(help="p,q(preset=paper)")] = None,
    out: Out = Path("runs/latest"),
    limit: Annotated[Optional[int], typer.Option(help="Only the first so many pictures.")] = None,
    seed: Annotated[Optional[int], typer.Option(help="Seed of everything random.")] = None,
    target: Annotated[Optional[str], typer.Option(help="Class explained: predicted or label.")] = None,
    device: Device = "auto",
    trust_pickle: Annotated[bool, typer.Option(help="Load weights that are arbitrary pickles.")] = False,
    quiet: Quiet = False,
) -> None:
    """Judge methods on a model and images, under protocols or single metrics; write rows and a report."""
    from heatproof import asking

    if study is not None:
        given = {"--model": model, "--images": images, "--methods": methods, "--metrics": metrics, "--protocols": protocols}
        clash = [name for name, value in given.items() if value]
        if clash:
            _usage(f"a study file says everything itself: leave out {', '.join(clash)}")
        from heatproof.study import load

        with _readable_errors():
            studies = load(study)
    else:
        with _readable_errors():
            studies = asking.studies(
                models=model or [],
                images=images or [],
                methods=methods,
                metrics=metrics,
                protocols=protocols,
                trust_pickle=trust_pickle,
                changes={"limit": limit, "seed": seed, "target": target},
            )
    _run_and_report(studies, out, device, quiet)


@app.command("list")
def list_(
    what: Annotated[Listable, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list of objects.")] = False,
) -> None:
    """List what there is, with its fields and its paper."""
    from heatproof import registry

    kind: Any = what.value.removesuffix("s")
    rows = [registry.entry(kind, name).as_dict() for name in registry.names(kind)]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=None)
    cost = kind == "method"
    for heading in ("name", *(["forward", "backward"] if cost else []), "what it is", "fields"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        passes = [f"{row['cost'][side]:g}" if row["cost"] else "?" for side in ("forward", "backward")] if cost else []
        fields = ", ".join(f"{name}={_brief(value)}" for name, value in row["fields"].items())
        table.add_row(row["name"], *passes, row["summary"], fields)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="A directory that a run wrote.")],
    out: Annotated[Optional[Path], typer.Option("--out", "-o", help="Default: DIRECTORY/report.html.")] = None,
) -> None:
    """Draw the report of a run again; no model is needed."""
    from heatproof.report import report as draw
    from heatproof.results import Results

    with _readable_errors():
        path = draw(Results.load(directory), out or directory / "report.html")
    typer.echo(path)


@app.command()
def check(name: Annotated[str, typer.Argument(help="A method, metric, imputer, segmenter, data set or model.")]) -> None:
    """Put a component through the conformance kit and say what holds."""
    from heatproof import testing

    with _readable_errors():
        verdicts = testing.check(name)
    for verdict in verdicts:
        typer.echo(f"{'ok  ' if verdict.holds else 'FAIL'}  {verdict.claim}{'' if verdict.holds else ': ' + verdict.why}")
    raise typer.Exit(COMPLETE if all(verdict.holds for verdict in verdicts) else FAILED_ROWS)


def _run_and_report(studies: list[Any], out: Path, device: str, quiet: bool) -> None:
    from heatproof.report import report as draw
    from heatproof.run import run as judge

    try:
        with _readable_errors(), _progress(quiet) as watch:
            results = judge(studies, out, device=device, watch=watch)
            page = draw(results, out / "report.html")
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. Everything finished is kept in {out}; the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
    for name in results.info.get("damaged", []):
        typer.echo(f"{name} was damaged and has been computed again.", err=True)
    if not results.complete:
        bad = results.scores[results.scores["status"].isin(["failed", "unreadable"])]
        typer.echo(f"{len(bad)} of {len(results.scores)} rows have no score; first: {bad.iloc[0]['note']}", err=True)
    typer.echo(page)
    raise typer.Exit(COMPLETE if results.complete else FAILED_ROWS)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """A bar with rate and time left on a terminal; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", table_column=None),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("preparing", total=None, rate="")

        def watch(done: int, total: int, what: str) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:.1f} units/s" if speed else ""
            bar.update(task, completed=done, total=total, description=what[:40].ljust(40), rate=rate)

        yield watch


@contextmanager
def _readable_errors() -> Iterator[None]:
    """Our own errors are sentences for a person: print them and leave with status 2."""
    from heatproof.errors import HeatproofError

    try:
        yield
    except HeatproofError as error:
        _usage(str(error))


def _usage(sentence: str) -> None:
    typer.echo(f"heatproof: {sentence}", err=True)
    raise typer.Exit(BAD_USAGE)


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return str(next((value[kind] for kind in value if kind != "fields"), "…"))
    return str(value)


def main() -> None:
    app()


if __name__ == "__main__":
    main()

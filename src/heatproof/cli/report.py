"""`report`: draws the page of a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._terminal import Log, echo, readable_errors, usage, warn_of_state


def report(
    directory: Annotated[Path, typer.Argument(help="A directory that a run wrote.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: DIRECTORY/report.html.")] = None,
    log: Log = None,
) -> None:
    """Draw the report of a run again; no model is needed."""
    from heatproof import loggers
    from heatproof.report import report as draw
    from heatproof.results import Results

    page = out or directory / "report.html"
    with readable_errors():
        if log is not None:
            loggers.check(log)
        results = Results.load(directory)
        warn_of_state(results)
        try:
            page = draw(results, page)
        except OSError as error:
            usage(f"{page} cannot be written ({error.strerror}): choose another place for it")
        if log is not None:
            loggers.log(log, results, directory)
    echo(page)

"""`compare`: which scores moved between two runs, and whether that is more than noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._terminal import echo, line, readable_errors, warn_of_state


def compare(
    first: Annotated[Path, typer.Argument(help="A directory that a run wrote.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
    every: Annotated[bool, typer.Option("--all", help="Every cell, not only those that moved.")] = False,
    metric: Annotated[list[str] | None, typer.Option(help="Only this metric; may be repeated.")] = None,
) -> None:
    """Compare two runs: what moved from the first to the second, paired where the pictures are the same."""
    from heatproof.results import Results
    from heatproof.results.comparison import compare as compared
    from heatproof.results.comparison_text import in_markdown

    with readable_errors():
        runs = [Results.load(path) for path in (first, second)]
        for run in runs:
            warn_of_state(run)
        found = compared(*runs, metrics=metric or ())
    for sentence in found.sentences():
        line(sentence)
    shown = found.moves if every else found.moved
    if shown:
        echo("")
        echo(in_markdown(found, shown), nl=False)

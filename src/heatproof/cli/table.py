"""`table`: the results of a run, for a paper or a spreadsheet."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli._help import examples
from heatproof.cli._terminal import echo, line, readable_errors, usage, warn_of_state

EXAMPLES = examples(
    "table runs/latest --format latex --metric srg --metric mif",
    "table runs/latest --pairs --format csv",
)


class Test(StrEnum):
    """How pairs of methods are tested."""

    means = "means"
    signed_ranks = "signed-ranks"


class Form(StrEnum):
    """Output formats of a table."""

    csv = "csv"
    md = "md"
    latex = "latex"
    json = "json"


def table(
    directory: Annotated[Path, typer.Argument(help="A directory that a run wrote.")],
    form: Annotated[
        Form, typer.Option("--format", "-f", help="md, csv, json, or latex: one table for a paper.")
    ] = Form.md,
    metric: Annotated[list[str] | None, typer.Option(help="Only this metric; may be repeated.")] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Every pair of methods, tested, instead of rankings.")] = False,
    luck: Annotated[
        bool, typer.Option("--luck", help="How far random methods depend on the seed, instead of rankings.")
    ] = False,
    test: Annotated[
        Test, typer.Option(help="Of pairs: their mean difference, or Wilcoxon's signed ranks.")
    ] = Test.means,
    correct_only: Annotated[
        bool, typer.Option("--correct-only", help="Only pictures that the model classifies correctly.")
    ] = False,
) -> None:
    """Rankings with 95 % intervals, tests of all pairs of methods, or the luck of random ones, to standard output.

    LaTeX is one table of methods and metrics, as a paper has it, with the best group by the adjusted tests in bold.
    """
    from heatproof.results import Results, latex, tables
    from heatproof.results.until_text import stopped_in_words

    if pairs and luck:
        usage("--pairs and --luck are two tables: take one")
    with readable_errors():
        results = Results.load(directory)
        warn_of_state(results)
        for sentence in stopped_in_words(results.info.until):
            line(sentence, err=True)
        if correct_only:
            every, results = len(results.pictures), results.correct_only()
            echo(
                f"Of {every} pictures and models, the {len(results.pictures)} that are classified correctly.", err=True
            )
        if form is Form.latex and not (pairs or luck):
            written = latex.paper_table(results, metric or ())
        else:
            kind = tables.luck if luck else tables.rankings
            found = tables.pairs(results, metric or (), test.name) if pairs else kind(results, metric or ())
            written = tables.written(found, form.value)
    echo(written, nl=False)

"""The command line. Imports wait until a command needs them: `--help` must not wait for torch."""

from __future__ import annotations

import warnings

import typer

from heatproof.cli import building, concepts, explaining, judging, listing, making, reading, tabling, terminal, verify

app = typer.Typer(
    help="Which heatmaps hold up: judge attribution methods for image classifiers under published protocols.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(judging.demo)
app.command()(judging.run)
app.command()(judging.report)
app.command()(tabling.table)
app.command()(verify.verify)
app.command("list")(listing.list_)
app.command()(listing.check)
app.command()(explaining.explain)
app.command()(reading.consistency)
app.command()(concepts.tcav)
app.command()(making.train)
app.add_typer(building.data, name="data")


def main() -> None:
    warnings.showwarning = terminal.show_warning  # type: ignore[assignment]
    app()

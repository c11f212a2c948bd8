"""The command line. Imports wait until a command needs them: `--help` must not load torch."""

from __future__ import annotations

import logging
import warnings
from typing import Annotated

import typer

from heatproof._version import __version__
from heatproof.cli import _terminal
from heatproof.cli._commands import add, commands
from heatproof.cli._help import EXAMPLES, Grouped

app = typer.Typer(
    cls=Grouped,
    help="Which heatmaps hold up: judge attribution methods for image classifiers under published protocols.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        _terminal.echo(f"heatproof {__version__}")
        raise typer.Exit


@app.callback()
def _heatproof(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


for _name, _found in commands().items():
    add(app, _name, _found)


def main() -> None:
    warnings.showwarning = _terminal.show_warning  # type: ignore[assignment]
    logging.getLogger("heatproof.engine").setLevel(logging.ERROR)  # which passes were taken stands in the report
    app()

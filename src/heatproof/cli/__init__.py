"""The command line. Imports wait until a command needs them: `--help` must not load torch."""

from __future__ import annotations

import warnings

import typer

from heatproof.cli import _terminal
from heatproof.cli._commands import add, commands

app = typer.Typer(
    help="Which heatmaps hold up: judge attribution methods for image classifiers under published protocols.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _command in commands().items():
    add(app, _name, _command)


def main() -> None:
    warnings.showwarning = _terminal.show_warning  # type: ignore[assignment]
    app()

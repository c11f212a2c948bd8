"""The command line's page: the help of every command, as the terminal shows it."""

from __future__ import annotations

from typing import Any

import typer.main
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.cli._help import SECTIONS

WIDTH = "100"
LEAD = "Each command says this of itself with `--help`; `heatproof --install-completion` completes names in your shell."


def page() -> str:
    """One entry per command, in the groups of the terminal's help."""
    parts = ["# Command line", LEAD]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        parts += [_entry(name) for name in names]
    return "\n\n".join(parts) + "\n"


def _entry(name: str) -> str:
    command: Any = vars(typer.main.get_command(app))["commands"][name]
    inner = [_help(name, below) for below in vars(command).get("commands", ())]
    return "\n\n".join([f"### heatproof {name} {{ #{name} }}", _help(name), *inner])


def _help(*words: str) -> str:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": WIDTH, "TERM": "dumb"}, prog_name="heatproof")
    return f"```text\n{shown.output.strip()}\n```"

"""The commands: one module each in this folder, named like the command; plug-ins add theirs by entry point.

A command module holds a function, or a `typer.Typer` with sub-commands, under the module's name (`list_` where the
name is a Python builtin), and may hold `EXAMPLES`, the end of its help page. A package adds a command with an entry
point in the group `heatproof.commands`.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from importlib.metadata import entry_points
from typing import Any

import typer

from heatproof.cli._help import ordered


def commands() -> dict[str, Any]:
    """Every command by name, in the order of the help page."""
    package = importlib.import_module("heatproof.cli")
    names = [found.name for found in pkgutil.iter_modules(package.__path__) if not found.name.startswith("_")]
    ours = {name: _command(importlib.import_module(f"heatproof.cli.{name}"), name) for name in ordered(names)}
    return ours | {name: command for name, command in _of_plugins().items() if name not in ours}


def _command(module: Any, name: str) -> Any:
    return vars(module).get(name) or vars(module)[f"{name}_"]


def _of_plugins() -> dict[str, Any]:
    """Commands of installed packages; a broken one is only a warning."""
    found = {}
    for point in entry_points(group="heatproof.commands"):
        try:
            found[point.name] = point.load()
        except Exception as error:
            warnings.warn(f"command {point.name!r} could not be loaded and is left out: {error}", stacklevel=2)
    return found


def add(app: typer.Typer, name: str, command: Any) -> None:
    """Adds a command to the application."""
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name, epilog=vars(importlib.import_module(command.__module__)).get("EXAMPLES"))(command)

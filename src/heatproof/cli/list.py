"""`list`: the registered components, with fields, papers and costs."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from heatproof.cli._terminal import echo
from heatproof.printable import printable
from heatproof.questions import ASKED


class Listable(StrEnum):
    """What `heatproof list` can list."""

    methods = "methods"
    metrics = "metrics"
    imputers = "imputers"
    segmenters = "segmenters"
    protocols = "protocols"
    datasets = "datasets"
    models = "models"


def list_(
    what: Annotated[Listable, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list of objects.")] = False,
) -> None:
    """List components, with their fields and papers."""
    from heatproof.spec.catalogue import catalogue

    kind: Any = what.value.removesuffix("s")
    rows = catalogue(kind)
    if as_json:
        echo(json.dumps(rows, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=None)
    cost = kind == "method"
    for heading in ("name", *(["forward", "backward", "unstable"] if cost else []), "what it is", "fields"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        passes = [f"{row['cost'][side]:g}" if row["cost"] else "?" for side in ("forward", "backward")] if cost else []
        passes += ["†" if row["unstable"] else ""] if cost else []
        fields = ", ".join(f"{name}={_brief(value)}" for name, value in row["fields"].items())
        about = " ".join([row["summary"], *_refusals(row)])
        table.add_row(*(printable(cell) for cell in (row["name"], *passes, about, fields)))
    blank = [""] * (len(table.columns) - 3)
    for alias, name, about in ((alias, row["name"], about) for row in rows for alias, about in _aliases(row)):
        table.add_row(alias, *blank, f"alias of {name}: {about}", "")
    Console(width=None if sys.stdout.isatty() else 160, markup=False, emoji=False).print(table)
    if any(row.get("unstable") for row in rows):
        echo(
            "† numerically unstable: float noise moves its maps visibly, so only --engine reference repeats its scores"
        )


def _aliases(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Other packages' names for a component, with the differences."""
    return list(row.get("aliases", {}).items())


def _refusals(row: dict[str, Any]) -> list[str]:
    """The kinds of networks that a component does not apply to, with the reasons."""
    return [f"Not for {ASKED[question]}: {reason}." for question, reason in row.get("unfit", {}).items()]


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return str(next((value[kind] for kind in value if kind != "fields"), "…"))
    return str(value)

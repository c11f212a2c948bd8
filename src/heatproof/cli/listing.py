"""`list` and `check`: what there is, and whether it keeps its promises."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from heatproof.cli.terminal import COMPLETE, FAILED_ROWS, echo, readable_errors
from heatproof.parsing import parse
from heatproof.printable import printable


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
    """List what there is, with its fields and its paper."""
    from heatproof import recipe, registry

    kind: Any = what.value.removesuffix("s")
    rows = [recipe.listed(registry.entry(kind, name)) for name in registry.names(kind)]
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
        table.add_row(*(printable(cell) for cell in (row["name"], *passes, row["summary"], fields)))
    others = registry.aliases(kind)
    for name, one in others.items():
        table.add_row(
            name, *[""] * (len(table.columns) - 3), f"alias of {registry.snake(one.make.__name__)}: {one.about}", ""
        )
    Console(width=None if sys.stdout.isatty() else 160, markup=False, emoji=False).print(table)
    if any(row.get("unstable") for row in rows):
        echo(
            "† numerically unstable: float noise moves its maps visibly, so only --engine reference repeats its scores"
        )


def check(
    name: Annotated[
        str, typer.Argument(help="A method, metric, imputer, segmenter, data set or model, or file.py:Name.")
    ],
) -> None:
    """Put a component through the conformance kit and say what holds."""
    from heatproof import registry, testing

    with readable_errors():
        if ".py:" in name:
            component = parse("method", name)
            known = registry.name_of(component)
            metric = hasattr(component, "higher_is_better")
            verdicts = list(testing.check_component(known[0] if known else "metric" if metric else "method", component))
        else:
            verdicts = testing.check(name)
    for verdict in verdicts:
        echo(f"{'ok  ' if verdict.holds else 'FAIL'}  {verdict.claim}{'' if verdict.holds else ': ' + verdict.why}")
    raise typer.Exit(COMPLETE if all(verdict.holds for verdict in verdicts) else FAILED_ROWS)


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return str(next((value[kind] for kind in value if kind != "fields"), "…"))
    return str(value)

"""`list`: the registered components, with fields, papers and costs."""

from __future__ import annotations

import dataclasses
import json
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from heatproof.cli._terminal import echo, readable_errors, usage
from heatproof.printable import printable
from heatproof.questions import IN_WORDS


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
    model: Annotated[
        str | None,
        typer.Option("--for", metavar="MODEL", help="Of methods: which apply to this model, and why others do not."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="With --for, what the model's numbers mean: softmax, sigmoid or regression."),
    ] = None,
    trust_pickle: Annotated[bool, typer.Option(help="With --for: load weights that are arbitrary pickles.")] = False,
) -> None:
    """List components, with their fields and papers."""
    from heatproof.spec.catalogue import catalogue

    if model is not None:
        if what is not Listable.methods:
            usage(f"--for says which methods apply to a model, got {what.value}: heatproof list methods --for {model}")
        _list_for(model, output, trust_pickle, as_json)
        return
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


def _list_for(spec: str, output: str | None, trust_pickle: bool, as_json: bool) -> None:
    """The methods that apply to a model, then the others by the reason why they do not."""
    from heatproof import applies, models

    with readable_errors():
        loaded = models.load(spec, trust_pickle=trust_pickle)
        if output is not None:
            loaded = dataclasses.replace(loaded, output=output, probabilities=None)
        found = dict(applies.methods_for(loaded))
    if as_json:
        rows = [{"name": name, "applies": not reason, "reason": reason} for name, reason in found.items()]
        echo(json.dumps(rows, indent=1))
        return
    fit = [name for name, reason in found.items() if not reason]
    echo(f"{len(fit)} of {len(found)} methods apply to {loaded.name}:")
    echo(f"  {', '.join(fit)}")
    for reason in dict.fromkeys(filter(None, found.values())):
        echo(f"not {', '.join(name for name, why in found.items() if why == reason)}:")
        echo(f"  {reason}")


def _aliases(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Other packages' names for a component, with the differences."""
    return list(row.get("aliases", {}).items())


def _refusals(row: dict[str, Any]) -> list[str]:
    """The kinds of networks that a component does not apply to, with the reasons."""
    return [f"Not for {IN_WORDS[question]}: {reason}." for question, reason in row.get("unfit", {}).items()]


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return str(next((value[kind] for kind in value if kind != "fields"), "…"))
    return str(value)

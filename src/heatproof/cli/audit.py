"""`audit`: can metrics be trusted? A judge's card for each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatproof.cli._terminal import Quiet, echo, progress_bar, readable_errors

if TYPE_CHECKING:
    from heatproof.stats.judges.judge_card import JudgeCard


def audit(
    model: Annotated[str, typer.Argument(help="Who is explained.")],
    images: Annotated[str, typer.Argument(help="Folder, CSV or built-in data set.")],
    metrics: Annotated[list[str] | None, typer.Option(help="a,b,c(field=value); may be repeated.")] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Real methods to be distinguished; may be repeated.")
    ] = None,
    truth: Annotated[
        str, typer.Option(help="Method whose map counts as right; by default the regions, or occlusion without any.")
    ] = "",
    masks: Annotated[str, typer.Option(help="Folder of masks named like the pictures.")] = "",
    limit: Annotated[int, typer.Option(help="Only so many pictures that the model gets right.", min=2)] = 32,
    disturbances: Annotated[
        int, typer.Option(help="Disturbances of pictures and weights, for MetaQuantus's tests; 0: none.", min=0)
    ] = 2,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Directory for cards.json, judges.md and evidence: again, it goes on."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The cards as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Put metrics on trial: truth, noise, degraded and blind maps, other seeds and settings; flag those that fail."""
    from heatproof import data
    from heatproof.audit.judges import panel
    from heatproof.stats.judges import page

    with readable_errors(), progress_bar(quiet) as watch:
        found = panel.audit(
            model,
            data.load(images, masks),
            ",".join(metrics) if metrics else panel.METRICS,
            methods=",".join(methods) if methods else panel.METHODS,
            truth=truth,
            limit=limit,
            disturbances=disturbances,
            seed=seed,
            store=out / "evidence" if out else None,
            watch=watch,
        )
        written = page.write(found, out) if out else []
    if as_json:
        echo(page.as_json(found))
        return
    _print(page.rows(found), found.cards)
    echo(f"{found.pictures} pictures, {found.seconds:.0f} s of processor time")
    for path in written:
        echo(path)


SHOWN = ("metric", "verdict", "agrees", "truth > noise", "dose", "detects", "alpha", "blind", "passes", "s")


def _print(rows: list[dict[str, str]], cards: Sequence[JudgeCard]) -> None:
    """The main columns, then a line for every flag."""
    from rich.console import Console
    from rich.table import Table

    from heatproof.printable import printable

    table = Table(box=None, pad_edge=False)
    for name in SHOWN:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(printable(row[name]) for name in SHOWN))
    Console(width=None if sys.stdout.isatty() else 200, markup=False, emoji=False).print(table)
    for card in cards:
        for flag in card.flags:
            echo(f"{card.metric}, {flag.rule}: {flag.reason}")

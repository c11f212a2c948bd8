"""`consistency`: what a table of pixel-flipping scores over many setups adds up to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from heatproof.cli.terminal import readable_errors, usage


def consistency(
    scores: Annotated[Path, typer.Argument(help="CSV with columns setup…, method, mif, lif[, r_oms].")],
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    paper: Annotated[
        bool, typer.Option(help="nDCG over lists sorted as in the paper (worst first for LIF and SRG).")
    ] = False,
) -> None:
    """Which rankings agree over the setups, and what the disagreement goes with."""
    import pandas as pd

    from heatproof.stats.consistency import consistency as compute

    if not scores.is_file():
        usage(f"there is no file {scores}")
    with readable_errors():
        try:
            table = pd.read_csv(scores)
        except ValueError as error:  # pandas' own parser errors
            usage(f"{scores} must be a CSV table: {error}")
        found = compute(table, lists="paper" if paper else "best_first")
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=1))
        return
    typer.echo(f"{found.n_setups} setups ({', '.join(found.setup_columns)}), {len(found.methods)} methods")
    for measure, rankings in found.rankings.items():
        share = f"the most frequent in {rankings.reference_count}"
        typer.echo(f"{measure:>4}: {rankings.distinct} rankings, {share}: {' > '.join(rankings.reference)}")
    typer.echo("variance over setups")
    for method, row in found.variance.items():
        typer.echo(f"  {method:<24}" + "  ".join(f"{name} {value:.4g}" for name, value in row.items()))
    typer.echo("order depends on the setup")
    for pair in found.order_dependent:
        counts = f"{pair.first_ahead} to {pair.second_ahead}" + (f", {pair.tied} tied" if pair.tied else "")
        typer.echo(f"  {pair.measure}: {pair.first} and {pair.second} ({counts})")

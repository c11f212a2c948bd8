"""`consistency`: how well rankings agree across many pixel-flipping setups."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas as pd

from heatproof.cli._terminal import echo, readable_errors, usage, warn_of_state


def _of_csv(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path)
    except ValueError as error:  # pandas' own parser errors
        usage(f"{path} must be a CSV table: {error}")


def _of_run(path: Path) -> pd.DataFrame:
    """The table of scores over a pixel-flipping run's occlusion strategies."""
    from heatproof.results import Results
    from heatproof.results.protocol_notes import strategies_of
    from heatproof.stats.strategies import compared, setups_table, without_holes

    run = Results.load(path)
    warn_of_state(run)
    strategies = strategies_of(run.info)
    if not strategies:
        usage(f"{path} holds no occlusion strategies to compare: run the protocol pixel_flipping, or name a CSV table")
    whole = without_holes(compared(setups_table(run.scores, strategies), run.is_control))
    for setup in whole.setups:
        echo(f"left out, because no method has all scores in this setup: {setup}", err=True)
    for method in whole.methods:
        echo(f"left out, because it has no score in some setup: {method}", err=True)
    return whole.table


def consistency(
    scores: Annotated[
        Path, typer.Argument(help="CSV with columns setup…, method, mif, lif[, r_oms], or a run's directory.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    paper: Annotated[
        bool, typer.Option(help="nDCG over lists sorted as in the paper (worst first for LIF and SRG).")
    ] = False,
) -> None:
    """Which rankings agree across setups, and which choices explain the disagreement."""
    from heatproof.stats.consistency import consistency as compute
    from heatproof.stats.strategies import random_among

    if not scores.exists():
        usage(f"there is no file or run {scores}")
    with readable_errors():
        table = _of_run(scores) if scores.is_dir() else _of_csv(scores)
        names = [str(name) for name in table["method"].unique()] if "method" in table else []
        found = compute(table, lists="paper" if paper else "best_first", random=random_among(names))
    if as_json:
        echo(json.dumps(found.as_dict(), indent=1))
        return
    echo(f"{found.n_setups} setups ({', '.join(found.setup_columns)}), {len(found.methods)} methods")
    for measure, rankings in found.rankings.items():
        alike = "" if math.isnan(rankings.agreement) else f"mean tau of two {rankings.agreement:.2f}, "
        share = f"{alike}the most frequent in {rankings.reference_count}"
        echo(f"{measure:>4}: {rankings.distinct} rankings, {share}: {' > '.join(rankings.reference)}")
    if found.n_setups == 1:
        echo("one setup cannot be compared: give scores for several (imputers, segments, models)", err=True)
        return
    echo("variance over setups")
    for method, row in found.variance.items():
        echo(f"  {method:<24}" + "  ".join(f"{name} {value:.4g}" for name, value in row.items()))
    echo("order depends on the setup" + ("" if found.order_dependent else ": of no two methods"))
    for pair in found.order_dependent:
        counts = f"{pair.first_ahead} to {pair.second_ahead}" + (f", {pair.tied} tied" if pair.tied else "")
        echo(f"  {pair.measure}: {pair.first} and {pair.second} ({counts})")

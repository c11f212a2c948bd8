"""Small, medium and large regions apart."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from heatproof.errors import HeatproofError
from heatproof.report.charts import Estimate, interval_ranking, small_multiples
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import lower
from heatproof.report.typeset import MINUS, MISSING, counted, escape, plus_minus
from heatproof.results.protocol_notes import SizeStrata
from heatproof.stats.strata import Strata, by_cutoffs, by_percentile, by_stratum, gain

FEWEST = 5  # images: an interval drawn from fewer says more about luck than about the method


def size_strata(reading: Reading, panel: Panel, wanted: SizeStrata) -> str | None:
    """Means by region size with their intervals, and how much each method gains from small to large."""
    sizes = region_shares(reading, panel)
    table = reading.table(panel)
    table = table.loc[table.index.intersection(sizes.index)]
    try:
        strata = strata_of(sizes.loc[table.index], wanted)
        means = by_stratum(table, strata, resamples=1000)
    except HeatproofError as error:
        return f'<p class="hole">No strata by size: {escape(error)}</p>' if len(sizes) else None
    means.loc[means["n"] < FEWEST, ["low", "high"]] = math.nan
    charts = [(_caption(strata, at), _chart(reading, panel, means, name)) for at, name in enumerate(strata.names)]
    cuts = ", ".join(f"{100 * cut:.1f} %" for cut in strata.cutoffs)
    pool = f" of {counted(strata.pool_size, 'picture')}" if strata.pool_size else ""
    caption = f"By the region’s share of the picture, cut at {cuts} ({strata.rule}{pool})."
    if min(strata.n) < FEWEST:
        caption += f" Fewer than {FEWEST} images are too few for an interval."
    gains = _gains(reading, panel, means, strata)
    return f"<h4>By size of the region</h4><p>{escape(caption)}</p>{small_multiples(charts)}{gains}"


def region_shares(reading: Reading, panel: Panel) -> pd.Series[float]:
    """The share of each picture that its region covers, by picture."""
    labels = [label for label, about in reading.info.metrics.items() if about.name == "region_share"]
    scores = reading.scores
    chosen = scores["metric"].isin(labels) & (scores["status"] == "ok")
    chosen &= (scores["dataset"] == panel.dataset) & (scores["model"] == panel.model)
    return scores.loc[chosen].groupby("image", observed=True)["value"].first().astype(float)


def strata_of(sizes: pd.Series[float], wanted: SizeStrata) -> Strata:
    """Strata cut as the protocol specifies: at percentiles of these sizes or of a pool, or at fixed shares."""
    names = ("small", "medium", "large")
    if wanted.cutoffs is None:
        return by_percentile(sizes, wanted.percentiles, names=_names(len(wanted.percentiles), names))
    strata = by_cutoffs(sizes, wanted.cutoffs, names=_names(len(wanted.cutoffs), names))
    if wanted.rule != "percentile of a pool":
        return strata
    return replace(strata, rule=wanted.rule, percentiles=wanted.percentiles, pool_size=wanted.pool_size)


def _names(cuts: int, usual: tuple[str, ...]) -> tuple[str, ...]:
    return usual if cuts == len(usual) - 1 else tuple(f"stratum {at + 1}" for at in range(cuts + 1))


def _caption(strata: Strata, at: int) -> str:
    low = f"over {100 * strata.cutoffs[at - 1]:.1f} %" if at else ""
    high = f"up to {100 * strata.cutoffs[at]:.1f} %" if at < len(strata.cutoffs) else ""
    return f"{strata.names[at]} · {counted(strata.n[at], 'image')} · {' '.join(filter(None, (low, high)))}"


def _chart(reading: Reading, panel: Panel, means: pd.DataFrame, stratum: str) -> str:
    estimates = [
        Estimate(
            str(row["method"]),
            float(row["mean"]),
            float(row["low"]),
            float(row["high"]),
            colour=reading.colours.get(str(row["method"])),
            control=reading.is_control(str(row["method"])),
            note=counted(int(row["n"]), "image"),
        )
        for row in means.loc[means["stratum"] == stratum].to_dict("records")
    ]
    title = f"{panel.metric} on {stratum} regions"
    higher = reading.higher_is_better(panel.metric)
    within = means[["mean", "low", "high"]].to_numpy(dtype=float).ravel().tolist()  # one axis for all strata
    return interval_ranking(estimates, title=title, higher_is_better=higher, within=within)


def _gains(reading: Reading, panel: Panel, means: pd.DataFrame, strata: Strata) -> str:
    first, last = strata.names[0], strata.names[-1]
    relative = gain(means, first, last)
    by_cell = {
        (str(row["method"]), str(row["stratum"])): (float(row["mean"]), float(row["sd"]))
        for row in means.to_dict("records")
    }
    rows = []
    for method in [name for name in reading.methods if name in relative.index]:
        pairs = [by_cell[method, name] for name in strata.names]
        cells = "".join(
            f'<td class="num" data-v="{mean:.6g}">{escape(plus_minus(mean, sd))}</td>' for mean, sd in pairs
        )
        change = float(relative[method])
        percent = round(100 * change) if math.isfinite(change) else 0
        words = (f"{percent:+d} %" if percent else "0 %").replace("-", MINUS) if math.isfinite(change) else MISSING
        kind = ' class="control"' if reading.is_control(method) else ""
        rows.append(
            f'<tr{kind}><th scope="row">{escape(method)}</th>{cells}'
            f'<td class="num" data-v="{change:.6g}">{words}</td></tr>'
        )
    heads = [*strata.names, f"{first} to {last}"]
    mark = lower(not reading.higher_is_better(panel.metric))
    head = "".join(f'<th scope="col" class="num"{mark}><button>{escape(name)}</button></th>' for name in heads)
    return (
        '<figure class="wide"><figcaption>Mean ± standard deviation by size of the region.</figcaption>'
        '<div class="scroll"><table class="board sortable"><thead><tr><th scope="col"><button>method</button>'
        f"</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></figure>"
    )

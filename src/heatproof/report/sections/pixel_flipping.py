"""Pixel flipping: what the model makes of each order, and whether that depends on the paint."""

from __future__ import annotations

from typing import Any

import pandas as pd

from heatproof.report.charts import Ranks, ranks_over, small_multiples
from heatproof.report.reading import Panel, Reading
from heatproof.report.sections.blocks import fold, section
from heatproof.report.typeset import MISSING, breakable, counted, escape, listed, number
from heatproof.stats.bootstrap import interval
from heatproof.stats.consistency import MEASURES, Consistency, Measure, consistency
from heatproof.stats.strategies import PLACE, setups_table, strategies_of, without_holes

PROTOCOL = "pixel_flipping"
NAMES: dict[Measure, str] = {"mif": "MIF", "lif": "LIF", "srg": "SRG"}
ENOUGH = 2  # setups and methods, before agreement means anything


def pixel_flipping(reading: Reading) -> str | None:
    """The gains of every method under the strategy that confuses the model least, then what strategies agree on."""
    strategies = strategies_of(reading.info.get("studies", []))
    table = setups_table(reading.scores, strategies)
    if table.empty:
        return None
    lead = (
        "Segments of a picture are painted over in the order of a map. MIF removes the most influential first (the "
        "answer should fall at once), LIF the least (it should last); SRG = LIF − MIF cancels what the paint itself "
        "does. R-OMS is the answer that random orders leave: where it is low, the model is lost as soon as anything "
        "is hidden, and curves say more about the paint than about the maps."
    )
    return section(PROTOCOL, "Pixel flipping", lead, _gains(reading, strategies, table) + _agreement(reading, table))


def _gains(reading: Reading, strategies: list[Any], table: pd.DataFrame) -> str:
    """Per data set and model, the table of gains under the strategy with the highest R-OMS."""
    pieces = []
    for dataset, model in reading.settings:
        here = table[(table["dataset"] == dataset) & (table["model"] == model)]
        if here.empty:
            continue
        best = here.sort_values("r_oms", ascending=False).iloc[0]
        named = (best["imputer"], best["n_superpixels"])
        strategy = next(one for one in strategies if (one["imputer"], one["n_superpixels"]) == named)
        panel = Panel(str(strategy["srg"]), dataset, model)
        if panel not in reading.panels:
            continue
        rows = here[(here["imputer"] == named[0]) & (here["n_superpixels"] == named[1])].set_index("method")
        pieces.append(_gains_table(reading, panel, rows, counted(len(here) // len(rows), "strategy", "strategies")))
    return "".join(pieces)


def _gains_table(reading: Reading, panel: Panel, rows: pd.DataFrame, of: str) -> str:
    scored = reading.table(panel)
    told = []
    for method in scored.columns:
        found = interval(scored[method].dropna().to_numpy())
        mif, lif, scope = (float(rows[name].get(method, float("nan"))) for name in ("mif", "lif", "r_oms"))
        told.append((found.estimate, found, method, mif, lif, scope))
    told.sort(key=lambda row: -row[0])
    body = "".join(
        f'<tr{" class=" + chr(34) + "control" + chr(34) if reading.is_control(method) else ""}><th scope="row">'
        f'{breakable(method)}</th><td class="num" data-v="{found.estimate:.6g}">{number(found.estimate)}</td>'
        f'<td class="num">[{number(found.low)}, {number(found.high)}]</td>'
        + "".join(f'<td class="num">{_cell(value)}</td>' for value in (scope - mif, lif - scope, mif, lif))
        + "</tr>"
        for _, found, method, mif, lif, scope in told
    )
    head = "".join(
        f'<th scope="col" class="num"><button>{name}</button></th>'
        for name in ("SRG ↑", "95 % interval", "MRG ↑", "LRG ↑", "MIF ↓", "LIF ↑")
    )
    one = rows.iloc[0]
    caption = (
        f"{panel.model} on {panel.dataset}: {one['imputer']} on {one['n_superpixels']} superpixels, R-OMS "
        f"{number(float(one['r_oms']))}" + (f", the highest of {of}." if not of.startswith("1 ") else ".")
    )
    return (
        f'<figure class="wide"><figcaption>{escape(caption)}</figcaption><div class="scroll"><table class="sortable">'
        f'<thead><tr><th scope="col"><button>method</button></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        "</figure>"
    )


def _cell(value: float) -> str:
    return MISSING if value != value else number(value)


def _agreement(reading: Reading, table: pd.DataFrame) -> str:
    """Rank against R-OMS under the three measures, and how many rankings there are."""
    whole, left = without_holes(table)
    setups = len(whole[list(PLACE)].drop_duplicates())
    methods = whole["method"].nunique()
    if setups < ENOUGH or methods < ENOUGH:
        return (
            '<p class="note">One occlusion strategy was asked, so whether the ranking depends on it is not known here: '
            "<code>--protocols &quot;pixel_flipping(preset=paper)&quot;</code> asks forty.</p>"
        )
    random = next((name for name in whole["method"].unique() if name.partition("(")[0] == "random"), "random")
    found = consistency(whole, random=random)
    charts = [
        (
            f"{NAMES[measure]}: {counted(found.rankings[measure].distinct, 'ranking')} in {setups} setups",
            ranks_over(
                found.r_oms,
                [_ranks(reading, found, measure, method) for method in found.rankings[measure].reference],
                title=f"Rank of each method under {NAMES[measure]} against R-OMS",
                x_label="setups in the order of their R-OMS",
            ),
        )
        for measure in MEASURES
    ]
    missing = f" Left out, because some setup has no score of theirs: {escape(listed(left))}." if left else ""
    return (
        f"<h3>Does it depend on the paint?</h3><p>{_said(found)}{missing}</p>{small_multiples(charts)}"
        + fold("R-OMS of every strategy", _scopes(whole))
        + fold("How much each method’s gain varies over setups", _variances(found))
        + fold(f"Pairs whose order depends on the setup: {len(found.order_dependent)}", _pairs(found))
    )


def _ranks(reading: Reading, found: Consistency, measure: Measure, method: str) -> Ranks:
    ranks = [float(order.index(method) + 1) for order in found.rankings[measure].by_setup]
    return Ranks(method, ranks, reading.colours.get(method), reading.is_control(method))


def _said(found: Consistency) -> str:
    distinct = {measure: found.rankings[measure].distinct for measure in MEASURES}
    most = found.rankings["srg"]
    agreed = (
        "SRG agrees with itself more than either"
        if distinct["srg"] < min(distinct["mif"], distinct["lif"])
        else "SRG does not agree with itself more than both of them here"
    )
    separation = ", ".join(
        f"{NAMES[measure]} {MISSING if value != value else number(value, 2)}"
        for measure, value in found.separation_vs_r_oms.items()
    )
    return (
        f"{found.n_setups} setups put {len(found.methods)} methods in {distinct['mif']} different orders under MIF, "
        f"{distinct['lif']} under LIF and {distinct['srg']} under SRG: {agreed}. The most frequent order under SRG "
        f"({most.reference_count} of {found.n_setups}) is {escape(' > '.join(most.reference))}. Correlation of how "
        f"far methods are apart with R-OMS: {separation}."
    )


def _scopes(table: pd.DataFrame) -> str:
    setups = table.drop_duplicates(list(PLACE)).sort_values("r_oms", ascending=False)
    body = "".join(
        f"<tr>{''.join(f'<td>{breakable(row[name])}</td>' for name in PLACE)}"
        f'<td class="num">{number(float(row["r_oms"]))}</td></tr>'
        for row in setups.to_dict("records")
    )
    head = "".join(f"<th>{name}</th>" for name in ("data", "model", "imputer", "superpixels"))
    return f'<table><thead><tr>{head}<th class="num">R-OMS</th></tr></thead><tbody>{body}</tbody></table>'


def _variances(found: Consistency) -> str:
    body = "".join(
        f'<tr><th scope="row">{breakable(method)}</th>'
        + "".join(f'<td class="num">{_cell(row[name])}</td>' for name in ("mrg", "lrg", "srg"))
        + "</tr>"
        for method, row in found.variance.items()
    )
    head = "".join(f'<th class="num">variance of {name}</th>' for name in ("MRG", "LRG", "SRG"))
    return f"<table><thead><tr><th>method</th>{head}</tr></thead><tbody>{body}</tbody></table>"


def _pairs(found: Consistency) -> str:
    body = "".join(
        f"<tr><td>{NAMES[pair.measure]}</td><td>{breakable(pair.first)}</td><td>{breakable(pair.second)}</td>"
        f'<td class="num">{pair.first_ahead} : {pair.second_ahead}</td></tr>'
        for pair in found.order_dependent
    )
    head = '<th>measure</th><th>more often ahead</th><th>behind</th><th class="num">setups</th>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

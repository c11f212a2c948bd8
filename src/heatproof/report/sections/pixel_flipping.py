"""Pixel flipping: the gains of every method, and whether the ranking depends on the occlusion strategy."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from heatproof.report.charts import Ranks, ranks_over, small_multiples
from heatproof.report.run_numbers import Reading
from heatproof.report.sections import section_of
from heatproof.report.sections.blocks import fold, section
from heatproof.report.sections.blocks import table as set_table
from heatproof.report.sections.curves import chart_of
from heatproof.report.sections.matching_imputers import matching_imputers
from heatproof.report.sections.strategy_choices import strategy_choices
from heatproof.report.typeset import MISSING, counted, escape, listed, number
from heatproof.results.protocol_notes import PixelFlippingNotes, strategies_of
from heatproof.stats.bootstrap import interval
from heatproof.stats.consistency import MEASURES, Consistency, Measure, consistency
from heatproof.stats.ranks import FEWEST
from heatproof.stats.strategies import (
    PLACE,
    STRATEGY,
    Strategy,
    compared,
    gains,
    random_among,
    setups_table,
    strategy_name,
    without_holes,
)

PROTOCOL = "pixel_flipping"
NAMES: dict[Measure, str] = {"mif": "MIF", "lif": "LIF", "srg": "SRG"}
GAINS = ("srg", "mrg", "lrg")
NEGLIGIBLE = 0.05  # a difference between two mean taus
ENOUGH = 2  # setups and methods, before agreement means anything


@section_of("pixel_flipping")
def pixel_flipping(reading: Reading) -> str | None:
    """The gains of every method under the strategy that confuses the model least, then what strategies agree on."""
    strategies = strategies_of(reading.info)
    table = setups_table(reading.scores, strategies)
    if table.empty:
        return None
    lead = "Segments of a picture are painted over in the order of a map: the answer should fall at once, or last."
    rest = (
        "MIF removes the most influential first (the "
        "answer should fall at once), LIF the least (it should last); SRG = LIF − MIF cancels what the paint itself "
        "does. R-OMS is the answer that random orders leave: where it is low, the model is lost as soon as anything "
        "is hidden, and curves say more about the paint than about the maps."
    )
    body = _gains(reading, strategies, table) + _donors(reading) + _agreement(reading, table, strategies)
    return section(PROTOCOL, "Pixel flipping", lead, body, picture=_falling(reading, strategies), rest=rest)


def _falling(reading: Reading, strategies: list[Strategy]) -> str:
    """The first curve of the answer while the most influential goes first."""
    labels = {strategy.mif for strategy in strategies}
    panel = next((panel for panel in reading.panels if panel.metric in labels), None)
    return chart_of(reading, panel) if panel else ""


def _donors(reading: Reading) -> str:
    """A note if hidden parts were taken from pictures that are judged themselves; else empty."""
    noted = [study.noted(PixelFlippingNotes).donors for study in reading.info.of_protocol(PROTOCOL)]
    named = list(dict.fromkeys(name for name in noted if name))
    if not named:
        return ""
    takes = "takes" if len(named) == 1 else "take"
    return (
        f'<p class="note">{escape(listed(named))} {takes} hidden parts from the other pictures of the same data set, '
        "as the paper does; pictures that are not judged would be better donors: "
        "<code>train_set(donors=folder)</code>.</p>"
    )


def _gains(reading: Reading, strategies: list[Strategy], table: pd.DataFrame) -> str:
    """Per data set and model, the table of gains under the strategy with the highest R-OMS."""
    pieces = []
    for dataset, model in reading.settings:
        here = table[(table["dataset"] == dataset) & (table["model"] == model)]
        if here.empty:
            continue
        known = here.dropna(subset=["mif", "lif", "r_oms"])  # a strategy without scores shows nothing
        best = (known if len(known) else here).sort_values("r_oms", ascending=False).iloc[0]
        chosen = {name: best[name] for name in STRATEGY}
        strategy = next(one for one in strategies if one.name == tuple(chosen.values()))
        rows = here[(here[list(STRATEGY)] == pd.Series(chosen)).all(axis=1)].set_index("method")
        setups = len(here[list(STRATEGY)].drop_duplicates())
        pieces.append(_gains_table(reading, gains(reading.scores, strategy, dataset, model), rows, setups))
    return "".join(pieces)


def _gains_table(reading: Reading, found: dict[str, pd.DataFrame], rows: pd.DataFrame, setups: int) -> str:
    """`found` are gains by name, images × methods; `rows` are the means of the same images."""
    first = rows.iloc[0]
    where = f"{first['model']} on {first['dataset']}: {strategy_name(*(first[name] for name in STRATEGY))}"
    symmetric = found.get("srg", pd.DataFrame())
    if symmetric.empty:
        return f'<p class="note">{escape(where)}: no picture has both scores, MIF and LIF, of every method.</p>'
    table_rows: list[list[Any]] = []
    for method in symmetric.columns:
        row: list[Any] = [str(method)]
        for name in GAINS:
            row += _estimated(found.get(name, pd.DataFrame()), method)
        table_rows.append([*row, *(float(rows[name].get(method, float("nan"))) for name in ("mif", "lif"))])
    table_rows.sort(key=lambda row: -row[1])
    heads = [head for name in GAINS for head in (f"{name.upper()} ↑", "95 % interval")]
    head = ("method", *heads, "MIF ↓", "LIF ↑")
    caption = f"{where}, R-OMS {number(float(rows['r_oms'].max()))}" + (
        f", the highest of {counted(setups, 'strategy', 'strategies')}" if setups > 1 else ""
    )
    caption += f"; {counted(len(symmetric), 'picture')} that every method was scored on."
    return (
        f'<figure class="wide"><figcaption>{escape(caption)}</figcaption>'
        f"{set_table(head, table_rows, control=reading.is_control)}</figure>"
    )


def _estimated(table: pd.DataFrame, method: str) -> tuple[float, str]:
    """The mean over pictures and its interval in words."""
    if method not in table:
        return float("nan"), MISSING
    found = interval(table[method].to_numpy(), kind="expanded")
    return found.estimate, f"[{number(found.low)}, {number(found.high)}]" if found.n >= FEWEST else MISSING


def _agreement(reading: Reading, table: pd.DataFrame, strategies: list[Strategy]) -> str:
    """Rank against R-OMS under the three measures, and how many rankings there are."""
    table = compared(table, reading.is_control)
    whole, unknown, left = without_holes(table)
    missing = f" Methods left out, because some setup has no score of theirs: {escape(listed(left))}." if left else ""
    if unknown:
        missing += f" Setups left out, because no method has all scores under them: {escape(listed(unknown))}."
    setups = len(whole[list(PLACE)].drop_duplicates())
    if len(table[list(PLACE)].drop_duplicates()) < ENOUGH:
        return (
            '<p class="note">Only one occlusion strategy was run, so this run cannot say if the ranking depends on it: '
            "<code>--protocols &quot;pixel_flipping(preset=paper)&quot;</code> runs forty.</p>"
        )
    if setups < ENOUGH or whole["method"].nunique() < ENOUGH:
        return f'<p class="note">There are too few scores to compare occlusion strategies.{missing}</p>'
    found = consistency(whole, random=random_among(whole["method"].unique()))
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
    return (
        f"<h3>Does it depend on the paint?</h3><p>{_summary(found)}{missing}</p>{small_multiples(charts)}"
        + strategy_choices(reading, found, whole, strategies)
        + matching_imputers(reading, whole)
        + fold("R-OMS of every strategy", _scopes(whole))
        + fold("How much each method’s gain varies over setups", _variances(found))
        + fold(f"Pairs whose order depends on the setup: {len(found.order_dependent)}", _pairs(found))
    )


def _ranks(reading: Reading, found: Consistency, measure: Measure, method: str) -> Ranks:
    ranks = [float(order.index(method) + 1) for order in found.rankings[measure].by_setup]
    return Ranks(method, ranks, reading.colours.get(method), reading.is_control(method))


def _summary(found: Consistency) -> str:
    distinct = {measure: found.rankings[measure].distinct for measure in MEASURES}
    most = found.rankings["srg"]
    alike = {measure: found.rankings[measure].agreement for measure in MEASURES}
    lead = alike["srg"] - max(alike["mif"], alike["lif"])
    agreed = "about as much as" if abs(lead) <= NEGLIGIBLE else "more than" if lead > 0 else "less than"
    taus = listed([f"{number(alike[measure], 2)} under {NAMES[measure]}" for measure in MEASURES])
    compared = "" if math.isnan(lead) else f": SRG agrees with itself {agreed} the better of the others"
    separation = ", ".join(
        f"{NAMES[measure]} {MISSING if value != value else number(value, 2)}"
        for measure, value in found.separation_vs_r_oms.items()
    )
    return (
        f"{found.n_setups} setups put {len(found.methods)} methods in {distinct['mif']} different orders under MIF, "
        f"{distinct['lif']} under LIF and {distinct['srg']} under SRG. The mean Kendall τ of two setups is {taus}"
        f"{compared}. The most frequent order under SRG "
        f"({most.reference_count} of {found.n_setups}) is {escape(' > '.join(most.reference))}. Correlation of how "
        f"far methods are apart with R-OMS: {separation}.{_ties(found)}"
    )


def _ties(found: Consistency) -> str:
    tied = [(NAMES[one], found.rankings[one].tied_setups) for one in MEASURES if found.rankings[one].tied_setups]
    if not tied:
        return ""
    counts = listed([f"{name} in {counted(count, 'setup')}" for name, count in tied])
    return f" Some methods score exactly alike, and then stand in the order of their names: {counts}."


def _scopes(table: pd.DataFrame) -> str:
    setups = table.drop_duplicates(list(PLACE)).sort_values("r_oms", ascending=False)
    rows = [
        [
            str(row["dataset"]),
            str(row["model"]),
            ", ".join(str(row[name]) for name in ("imputer", "variant") if row[name]),
            str(row["n_superpixels"]),
            float(row["r_oms"]),
        ]
        for row in setups.to_dict("records")
    ]
    return set_table(("data", "model", "imputer", "superpixels", "R-OMS"), rows, words=3)


def _variances(found: Consistency) -> str:
    names = ("mrg", "lrg", "srg")
    rows = [[method, *(row[name] for name in names)] for method, row in found.variance.items()]
    return set_table(("method", *(f"variance of {name.upper()}" for name in names)), rows)


def _pairs(found: Consistency) -> str:
    rows = [
        [NAMES[pair.measure], pair.first, pair.second, f"{pair.first_ahead} : {pair.second_ahead}"]
        for pair in found.order_dependent
    ]
    return set_table(("measure", "more often ahead", "behind", "setups"), rows, words=3)

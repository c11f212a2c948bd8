"""What a single threshold would have decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from heatproof.errors import HeatproofError
from heatproof.report.charts import Line, small_multiples
from heatproof.report.charts import curves as draw
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold
from heatproof.report.typeset import counted, escape, fixed, listed, number
from heatproof.stats.significance import smallest_p
from heatproof.stats.threshold_bias import (
    ThresholdBias,
    ThresholdPair,
    ThresholdTests,
    threshold_bias,
    threshold_tests,
)

LOW, HIGH = 0.3, 0.7  # the two single thresholds that are set against each other


def threshold_choice(reading: Reading, panel: Panel, *, paper: bool) -> str | None:
    """Kendall's tau of the ranking at each threshold with the one without, and who overtakes whom where."""
    found = stacked(reading, panel)
    if found is None:
        return None
    methods, grid, iou, free = found
    low, high = (float(grid[np.argmin(np.abs(grid - wanted))]) for wanted in (LOW, HIGH))
    span = float(grid[-1] - grid[0]) if paper else 1.0
    try:
        bias = threshold_bias(iou, free, methods, grid.tolist(), low=low, high=high, span=span)
    except HeatproofError as error:
        return f'<p class="hole">{escape(error)}</p>'
    summary = f"<h4>What a single threshold would have decided</h4><p>{_summary(bias)}</p>"
    tests = threshold_tests(iou, free, methods, grid.tolist(), span=span)
    return f"{summary}{_figure(bias)}{_table(bias)}{_pairs(bias)}{_tests(tests)}"


def stacked(
    reading: Reading, panel: Panel
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
    """Contestants, thresholds, IoU (images, methods, thresholds) and scores (images, methods) of a panel."""
    curves = reading.curves
    if not len(curves):
        return None
    chosen = (curves["metric"] == panel.metric) & (curves["dataset"] == panel.dataset)
    rows = curves.loc[chosen & (curves["model"] == panel.model)]
    table = reading.contenders(panel)
    methods, images = [str(name) for name in table.columns], list(table.index)
    if rows.empty or len(methods) < 2:
        return None
    grid = np.asarray(rows["x"].iloc[0], dtype=np.float64)
    iou = np.full((len(images), len(methods), len(grid)), np.nan)
    place = {image: at for at, image in enumerate(images)}
    column = {method: at for at, method in enumerate(methods)}
    for image, method, y in rows[["image", "method", "y"]].itertuples(index=False):
        if image in place and method in column:
            iou[place[image], column[method]] = np.asarray(y, dtype=np.float64)
    return methods, grid, iou, table.to_numpy(dtype=np.float64)


def _summary(bias: ThresholdBias) -> str:
    tau = bias.thresholds["tau"].to_numpy(dtype=np.float64)
    levels = [float(level) for level in bias.thresholds["threshold"]]
    others = bias.thresholds.loc[bias.thresholds["winner"] != bias.winner]
    taken = {str(name): stretches(where, levels) for name, where in others.groupby("winner", sort=False)["threshold"]}
    level = taken.pop("", None)  # where several methods share the lead
    parts = [f"Without a threshold <strong>{escape(bias.winner)}</strong> is first."]
    if taken:
        winners = [f"<strong>{escape(name)}</strong> {where}" for name, where in taken.items()]
        parts.append(f"With a single one it would have been {listed(winners)}.")
    if level:
        parts.append(f"{level.capitalize()} others are ahead of it, level with each other.")
    if not len(others):
        parts.append("So it is at every single threshold.")
    if np.isfinite(tau).any():
        worst = int(np.nanargmin(tau))
        parts.append(f"The ranking at {levels[worst]:g} agrees with it least (Kendall’s tau {number(tau[worst], 2)}).")
    dropped = f", {bias.dropped_images} left out because a method has no score there" * bool(bias.dropped_images)
    return " ".join(parts) + f" ({counted(bias.n or 0, 'image')}{dropped}.)"


def _figure(bias: ThresholdBias) -> str:
    levels = [float(level) for level in bias.thresholds["threshold"]]
    line = Line("tau", levels, [float(tau) for tau in bias.thresholds["tau"]], colour=0)
    chart = draw([line], title="Agreement of single thresholds", x_label="threshold", y_label="Kendall's tau")
    caption = "Kendall’s tau between the ranking at one threshold and the threshold-free one"
    return small_multiples([(caption, chart)])


def _table(bias: ThresholdBias) -> str:
    heads = (
        "without",
        *(f"IoU at {level:g}" for level in (bias.low, bias.middle, bias.high)),
        *(f"difference at {level:g}, %" for level in (bias.low, bias.middle, bias.high)),
        "swing, points",
        "fold",
    )
    decimals = {
        "free": 3,
        "iou_low": 3,
        "iou_middle": 3,
        "iou_high": 3,
        "difference_low": 1,
        "difference_middle": 1,
        "difference_high": 1,
        "swing": 1,
        "fold": 2,
    }
    head = "".join(f'<th scope="col" class="num"><button>{escape(name)}</button></th>' for name in heads)
    rows = "".join(
        f'<tr><th scope="row">{escape(row["method"])}</th>'
        + "".join(_cell(float(row[name]), digits) for name, digits in decimals.items())
        + "</tr>"
        for row in bias.methods.sort_values("free", ascending=False).to_dict("records")
    )
    caption = (
        "How far a single threshold misleads: the threshold-free height relative to the IoU there, the "
        "swing between the lowest and the highest, and how many times the IoU shrinks from one to the other."
    )
    return (
        f'<figure class="wide"><figcaption>{caption}</figcaption><div class="scroll">'
        '<table class="board sortable"><thead><tr><th scope="col"><button>method</button></th>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div></figure>"
    )


def _cell(value: float, decimals: int) -> str:
    return f'<td class="num" data-v="{value:.6g}">{escape(fixed(value, decimals))}</td>'


def _pairs(bias: ThresholdBias) -> str:
    if not bias.pairs:
        return "<p>No pair of methods changes order at any threshold.</p>"
    levels = [float(level) for level in bias.thresholds["threshold"]]
    items = "".join(f"<li>{_pair(pair, levels)}</li>" for pair in bias.pairs)
    count = len(bias.methods)
    summary = f"{counted(len(bias.pairs), 'pair')} of {count * (count - 1) // 2} change order at some threshold"
    return fold(summary, f"<ul>{items}</ul>")


def _pair(pair: ThresholdPair, levels: Sequence[float]) -> str:
    return (
        f"<strong>{escape(pair.first)}</strong> is ahead of <strong>{escape(pair.second)}</strong>, "
        f"but behind {stretches(pair.thresholds, levels)}"
    )


def _tests(tests: ThresholdTests) -> str:
    """Where a method's own score would be another at one threshold than without."""
    levels = [float(level) for level in tests.frame["threshold"].unique()]
    items = []
    for method, rows in tests.frame.groupby("method", sort=False):
        where = [float(level) for level in rows.loc[rows["significant"], "threshold"]]
        spared = [level for level in levels if level not in where]
        if not where:
            words = "differs at none"
        elif not spared:
            words = "differs at all"
        else:
            words = f"differs but not {stretches(spared, levels)}"
        items.append(f"<li><strong>{escape(method)}</strong> {words}</li>")
    family, found = len(tests.frame), int(tests.frame["significant"].sum())
    summary = (
        f"At {found} of {family} methods × thresholds the IoU differs from the same method’s threshold-free height"
    )
    how = (
        f"Signed-rank tests over the images, height against height; Holm-adjusted over all {family}, "
        f"p&nbsp;&lt;&nbsp;{tests.alpha:g}."
    )
    most = int(tests.frame["n"].max())
    if smallest_p(most) * family >= tests.alpha:
        how += f" {counted(most, 'image')} are too few to show any difference."
    return fold(summary, f"<p>{how}</p><ul>{''.join(items)}</ul>")


def stretches(some: Iterable[float], levels: Sequence[float]) -> str:
    """`from 0.05 to 0.4 and at 0.95`: which of the levels these are, neighbours drawn together."""
    wanted = set(some)
    runs: list[list[float]] = [[]]
    for level in levels:
        if level in wanted:
            runs[-1].append(level)
        elif runs[-1]:
            runs.append([])
    return listed([f"from {run[0]:g} to {run[-1]:g}" if len(run) > 1 else f"at {run[0]:g}" for run in runs if run])

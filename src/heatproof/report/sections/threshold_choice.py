"""What a single threshold would have decided."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heatproof.errors import HeatproofError
from heatproof.report.charts import Line, small_multiples
from heatproof.report.charts import curves as draw
from heatproof.report.reading import Panel, Reading
from heatproof.report.sections.blocks import fold
from heatproof.report.typeset import MISSING, counted, escape, listed, number
from heatproof.stats.threshold_bias import ThresholdBias, ThresholdPair, threshold_bias

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
    told = f"<h4>What one threshold would have said</h4><p>{_said(bias)}</p>"
    return f"{told}{_figure(bias)}{_table(bias)}{_pairs(bias)}"


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


def _said(bias: ThresholdBias) -> str:
    tau = bias.thresholds["tau"].to_numpy(dtype=np.float64)
    levels = bias.thresholds["threshold"].to_numpy(dtype=np.float64)
    others = bias.thresholds.loc[bias.thresholds["winner"] != bias.winner]
    parts = [f"Without a threshold <strong>{escape(bias.winner)}</strong> is first."]
    if len(others):
        names = listed([f"<strong>{escape(name)}</strong>" for name in others["winner"].unique()])
        where = ", ".join(f"{float(level):g}" for level in others["threshold"])
        parts.append(f"At {where} it would have been {names}.")
    else:
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
        f"IoU at {bias.low:g}",
        f"IoU at {bias.high:g}",
        f"difference at {bias.low:g}, %",
        f"difference at {bias.high:g}, %",
        "swing, points",
        "fold",
    )
    columns = ("free", "iou_low", "iou_high", "difference_low", "difference_high", "swing", "fold")
    head = "".join(f'<th scope="col" class="num"><button>{escape(name)}</button></th>' for name in heads)
    rows = "".join(
        f'<tr><th scope="row">{escape(row["method"])}</th>'
        + "".join(_cell(float(row[name])) for name in columns)
        + "</tr>"
        for row in bias.methods.sort_values("free", ascending=False).to_dict("records")
    )
    caption = (
        "How far a single threshold leads away: the threshold-free height relative to the IoU there, the "
        "swing between the two, and how many times the IoU shrinks from one to the other."
    )
    return (
        f'<figure class="wide"><figcaption>{caption}</figcaption><div class="scroll">'
        '<table class="board sortable"><thead><tr><th scope="col"><button>method</button></th>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div></figure>"
    )


def _cell(value: float) -> str:
    shown = MISSING if np.isnan(value) else number(value)
    return f'<td class="num" data-v="{value:.6g}">{shown}</td>'


def _pairs(bias: ThresholdBias) -> str:
    if not bias.pairs:
        return "<p>No pair of methods changes order at any threshold.</p>"
    items = "".join(f"<li>{_pair(pair)}</li>" for pair in bias.pairs)
    count = len(bias.methods)
    told = f"{counted(len(bias.pairs), 'pair')} of {count * (count - 1) // 2} change order at some threshold"
    return fold(told, f"<ul>{items}</ul>")


def _pair(pair: ThresholdPair) -> str:
    levels = ", ".join(f"{level:g}" for level in pair.thresholds)
    return (
        f"<strong>{escape(pair.first)}</strong> is ahead of <strong>{escape(pair.second)}</strong>, "
        f"but behind at {levels}"
    )

"""In-distribution faithfulness: FUD beside its controls, and how far each evaluation leaves the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections import section_of
from heatproof.report.sections.blocks import section, table
from heatproof.report.sections.ranking import panel_chart
from heatproof.report.typeset import MISSING, breakable, counted, escape, fixed
from heatproof.results.protocol_notes import AuditPart, InDistributionNotes
from heatproof.stats.falling import mean_curve_tau
from heatproof.stats.out_of_distribution import alike, auroc, fpr95

PROTOCOL = "in_distribution"
CONTROLS = ("random", "no_guidance", "guidance_only", "prior_only")  # details of FUD
BESIDE = (
    "method",
    "FUD",
    "random order",
    "FUD − random",
    "without guidance",
    "guidance alone",
    "prior alone",
    "untouched",
)
AFTER_TAU = ("random", "inverted", "scope")  # details of smoothness
QUALITY = {
    "psnr": "PSNR ↑",
    "psnr_masked": "PSNR, removed pixels ↑",
    "ssim": "SSIM ↑",
    "ms_ssim": "MS-SSIM ↑",
    "fsim": "FSIM ↑",
    "gmsd": "GMSD ↓",
    "haarpsi": "HaarPSI ↑",
    "vsi": "VSI ↑",
}


@section_of("in_distribution")
def in_distribution(reading: Reading) -> str | None:
    """The controls of FUD by method, and the audit of every evaluation."""
    parts = [part for part in (_controls(reading), _audit(reading)) if part]
    if not parts:
        return None
    main = [panel for panel in reading.main if _name(reading, panel) == "fud"]
    picture = _unfamiliar_pictures(reading) + (panel_chart(reading, main[0]) if main else "")
    lead = "FUD keeps what a map marks as important and lets a diffusion model redraw the rest."
    rest = (
        "FUD keeps what a map marks as important, lets a diffusion model redraw the rest, and measures the "
        "confidence that is left. The guidance that keeps the class from being painted back is also an attack on "
        "the model, so read every score beside its controls."
    )
    return section(PROTOCOL, "Within the data", lead, "".join(parts), picture=picture, rest=rest)


def _name(reading: Reading, panel: Panel) -> str:
    return reading.info.metric(panel.metric).name


def _unfamiliar_pictures(reading: Reading) -> str:
    """A warning where the embedded prior, trained on the embedded scenes only, draws into other pictures."""
    for study in reading.info.of_protocol(PROTOCOL):
        if study.noted(InDistributionNotes).prior == "embedded" and set(study.dataset_names) - {"two_factor"}:
            return (
                '<p class="warning"><strong>The prior has never seen such pictures.</strong> The embedded diffusion '
                "model was trained on the embedded scenes, so what it draws here may be as strange to the model as "
                "paint would be. Give a prior of such pictures, which heatproof train prior --images makes: "
                "in_distribution(prior='trained:FOLDER').</p>"
            )
    return ""


def _drawn_smaller(reading: Reading, areas: list[str]) -> str:
    """What the pictures lost where the prior draws another size than theirs."""
    found = [reading.detail(panel, "drawn_at") for panel in reading.panels if panel.metric in areas]
    sides = sorted({int(side) for frame in found if len(frame) for side in np.unique(frame.to_numpy()) if side == side})
    if not sides:
        return ""
    size = " and ".join(f"{side}×{side}" for side in sides)
    return (
        f'<p class="warning"><strong>Drawn at {size} pixels and enlarged.</strong> The prior knows only this size: '
        "hidden pixels carry no finer detail, kept pixels are the picture’s own. Read “prior alone” beside "
        "“untouched”: the gap is what this costs.</p>"
    )


def _controls(reading: Reading) -> str | None:
    """Per method its area, and the areas of its controls, mean over images."""
    areas = [
        label
        for label in reading.metrics
        if (about := reading.info.metric(label)).name == "fud" and about.fields.get("score") != "gain"
    ]
    pieces = []
    for panel in (each for each in reading.panels if each.metric in areas[:1]):
        rows = [_beside(reading, panel, str(method)) for method in reading.table(panel).columns]
        rows.sort(key=lambda row: row[1], reverse=True)
        table_html = table(BESIDE, rows, control=reading.is_control)
        pieces.append(f"<h4>{escape(panel.model)} on {breakable(panel.dataset)}</h4>{table_html}")
    explanation = (
        "Read the gain over the random order, not the area: a prior that fills in well leaves high "
        "confidence under any order. “Guidance alone” and “prior alone” remove nothing: the gap between the untouched "
        "picture and “prior alone” is the prior’s own error, the gap between “prior alone” and “guidance alone” is the "
        "attack."
    )
    body = f"<p>{explanation}</p>{_drawn_smaller(reading, areas[:1])}{''.join(pieces)}"
    return f"<h3>FUD and its controls</h3>{body}" if pieces else None


def _beside(reading: Reading, panel: Panel, method: str) -> list[Any]:
    """A row of the table: method, FUD and what it is to be read against, means over the same pictures."""
    scored = reading.table(panel)[method].dropna()
    area = float(scored.mean())
    chance, *others, untouched = (
        float(reading.detail(panel, name).reindex(scored.index).get(method, pd.Series(dtype=float)).mean())
        for name in (*CONTROLS, "clean")
    )
    return [method, area, chance, area - chance, *others, untouched]


def _rows(reading: Reading, panel: Panel) -> pd.DataFrame:
    scores = reading.scores
    chosen = (scores["metric"] == panel.metric) & (scores["dataset"] == panel.dataset)
    return scores[chosen & (scores["model"] == panel.model) & (scores["status"] == "ok")]


def _audit(reading: Reading) -> str | None:
    """Evaluations × statistics, of each data set and model by itself."""
    parts = audited(reading)
    scores, curves = (
        frame[frame["metric"].isin(parts)] if len(frame) else frame for frame in (reading.scores, reading.curves)
    )
    met = [frame[["dataset", "model"]] for frame in (scores, curves) if len(frame)]
    places = list(pd.concat(met).drop_duplicates().itertuples(index=False, name=None)) if met else []
    if not parts or not places:
        return None
    pieces: list[str] = []
    counts: set[int] = set()
    for dataset, model in places:
        here, lines = (
            frame[(frame["dataset"] == dataset) & (frame["model"] == model)] if len(frame) else frame
            for frame in (scores, curves)
        )
        details = {
            label: reading.details_of(Panel(label, str(dataset), str(model))).groupby("detail")["value"].mean()
            for label in parts
        }
        head, rows, numbers = _evaluations(parts, here[here["status"] == "ok"], lines, details)
        counts |= set(numbers)
        title = f"<h4>{escape(model)} on {breakable(dataset)}</h4>" if len(places) > 1 else ""
        pieces.append(title + table(head, rows))
    explanation = (
        "AUROC and FPR95 say how well the model’s energy score separates an evaluation’s samples from the "
        f"originals, mean over levels.{_by_chance(sorted(counts))}{_reference(parts)} Quality measures compare each "
        "sample with its original: an evaluation that changes little does well, except by PSNR of the removed "
        "pixels, which does not count those that stayed. τ says how steadily confidence falls, picture by picture "
        "(that of the mean curve is near 1 for almost anything), beside the random and the inverted order: where these "
        "are as high, smoothness says nothing about the maps. R-OMS is the confidence that a random order leaves."
    )
    return f"<h3>How far each evaluation leaves the data</h3><p>{explanation}</p>{''.join(pieces)}"


def _evaluations(
    parts: Mapping[str, AuditPart],
    scores: pd.DataFrame,
    curves: pd.DataFrame,
    details: Mapping[str, pd.Series[Any]],
) -> tuple[list[str], list[list[Any]], list[int]]:
    """Heads and rows of the table, and the numbers of pictures it rests on."""
    evaluations = list(dict.fromkeys(about.evaluation for about in parts.values()))
    statistics = dict.fromkeys(about.statistic for about in parts.values())
    quality = [one for one in QUALITY if one in statistics]
    seen = {one: pictures(curves, _label(parts, one, "energy")) for one in evaluations}
    counts = sorted({n for found in seen.values() for n in found})
    uneven = len(counts) > 1  # then each row says how many pictures it rests on
    rows: list[list[Any]] = []
    for evaluation in evaluations:
        labels = {about.statistic: label for label, about in parts.items() if about.evaluation == evaluation}
        area, passing = separation(curves, labels.get("energy"))
        smooth = scores[scores["metric"] == labels.get("tau")]
        beside = details.get(labels.get("tau", ""), pd.Series(dtype=float))
        taus = [float(smooth["value"].mean()), _of_mean_curves(curves, labels.get("tau"))]
        taus += [float(beside.get(one, math.nan)) for one in AFTER_TAU]
        rest = [float(scores.loc[scores["metric"] == labels.get(one), "value"].mean()) for one in quality]
        rests = _rests(seen[evaluation]) if uneven else []
        rows.append([evaluation, *map(_rounded, (area, passing)), *rests, *map(_rounded, [*rest, *taus])])
    bracket = f" ({alike(counts[0]).fpr95:.2f})" if len(counts) == 1 else ""
    head = ["evaluation", "AUROC (0.5)", f"FPR95{bracket}", *["if alike", "pictures"] * uneven]
    return (
        [*head, *(QUALITY[one] for one in quality), "τ", "τ of the mean curve", "τ random", "τ inverted", "R-OMS"],
        rows,
        counts,
    )


def _rests(counts: list[int]) -> list[Any]:
    """The FPR95 of samples indistinguishable from this many originals, and the number of originals."""
    if not counts:
        return [float("nan"), MISSING]
    chance = float(np.mean([alike(n).fpr95 for n in counts]))
    return [_rounded(chance), "–".join(str(n) for n in dict.fromkeys((min(counts), max(counts))))]


def _by_chance(counts: list[int]) -> str:
    """AUROC and FPR95 of samples indistinguishable from the originals, with their range by chance."""
    if not counts:
        return ""
    few = counts[0]
    found = alike(few)
    (low, high), (least, most) = found.fpr95_range, found.auroc_range
    return (
        f" Samples indistinguishable from the originals have an AUROC of 0.5 and, on {counted(few, 'picture')}, an "
        f"FPR95 of {found.fpr95:.2f} on average (0.95 only on very many); by chance alone one level’s AUROC then lies "
        f"anywhere from {least:.2f} to {most:.2f} and its FPR95 from {low:.2f} to {high:.2f}, 95 times in 100."
    )


def _reference(parts: Mapping[str, AuditPart]) -> str:
    """What the row of natural pictures is for, where there is one."""
    name = next((about.evaluation for about in parts.values() if about.reference), "")
    if not name:
        return ""
    return (
        f" “{escape(name[0].upper() + name[1:])}” are intact and as natural as the originals: their energy differs "
        "only by what they show. As much of an evaluation’s difference may have the same cause, since its samples have "
        "lost their object."
    )


def _rounded(value: float) -> float | tuple[str, float]:
    """Two decimals below 10, one above: few pictures support no more."""
    return value if math.isnan(value) else (fixed(value, 2 if abs(value) < 10 else 1), value)


def _label(parts: Mapping[str, AuditPart], evaluation: str, statistic: str) -> str | None:
    wanted = (evaluation, statistic)
    return next((label for label, about in parts.items() if (about.evaluation, about.statistic) == wanted), None)


def audited(reading: Reading) -> Mapping[str, AuditPart]:
    """The metric labels that belong to the audit, with evaluation and statistic, as the protocol noted them."""
    noted = (study.noted(InDistributionNotes).audit for study in reading.info.of_protocol(PROTOCOL))
    return next(filter(None, noted), {})


def separation(curves: pd.DataFrame, label: str | None) -> tuple[float, float]:
    """AUROC and FPR95 from curves that begin at the original: per method and level, then the mean."""
    if label is None or not len(curves):
        return float("nan"), float("nan")
    areas, passing = [], []
    for _, part in curves[curves["metric"] == label].groupby(["dataset", "model", "method"], observed=True):
        energies = np.array([list(y) for y in part["y"]], np.float64)
        for level in range(1, energies.shape[1]):
            areas.append(auroc(energies[:, 0], energies[:, level]))
            passing.append(fpr95(energies[:, 0], energies[:, level]))
    return (float(np.mean(areas)), float(np.mean(passing))) if areas else (float("nan"), float("nan"))


def _of_mean_curves(curves: pd.DataFrame, label: str | None) -> float:
    """Kendall's τ of each method's mean curve, then the mean."""
    if label is None or not len(curves):
        return float("nan")
    lines = curves[curves["metric"] == label].groupby(["dataset", "model", "method"], observed=True)
    taus = [mean_curve_tau(list(part["x"]), list(part["y"])) for _, part in lines]
    return float(np.mean(taus)) if taus else float("nan")


def pictures(curves: pd.DataFrame, label: str | None) -> list[int]:
    """How many pictures each data set, model and method gave to `separation`."""
    if label is None or not len(curves):
        return []
    groups = curves[curves["metric"] == label].groupby(["dataset", "model", "method"], observed=True)
    return [len(part) for _, part in groups]

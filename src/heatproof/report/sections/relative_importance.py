"""Relative importance: its premises, model contrast, the k-series, input dependence and independence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from heatproof.report.charts import Bar, bars, small_multiples
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections import section_of
from heatproof.report.sections.blocks import section, table
from heatproof.report.sections.iir_thresholds import iir_thresholds
from heatproof.report.sections.paired_maps import paired_maps
from heatproof.report.sections.ranking import panel_chart
from heatproof.report.sections.series import series
from heatproof.report.typeset import counted, escape, listed, number
from heatproof.results.protocol_notes import RelativeImportanceNotes, Variant
from heatproof.stats import bootstrap
from heatproof.stats.relative_importance import unknown, violations

PROTOCOL = "relative_importance"
Part = tuple[RelativeImportanceNotes, list[str]]  # of one study, and the models it judged
TITLES = {
    "mcs": (
        "Model contrast (MCS)",
        "How much hotter the object is for the object model than for the scene model. A blind map scores 0.",
    ),
    "idr": (
        "Input dependence (IDR)",
        "The share of pictures in which the object is colder, for the scene model, than the scene it covers. What a "
        "random region scores is the level to pass; it is not ½, because maps are scaled by their own hottest pixels.",
    ),
    "iir": (
        "Input independence (IIR)",
        "The share of pictures whose map hardly changes under a patch that does not change the answer. A map that "
        "never changes scores 1: only methods that also pass model contrast deserve it.",
    ),
}

# What a column beside the score measures, by the region or the rule it differs in.
COLUMNS = {
    "moved": "“moved region” scores the object’s shape at another place of the picture",
    "permuted": "“permuted region” scores the region of another picture (where the data set does not define which, of "
    "one in the same shard, so that another size of shards gives another number)",
    "pixels": "“pixels region” scores as many pixels, chosen at random",
    "rank": "“by rank” puts the rank of each pixel in place of its heat, so that no scale matters",
    "mass": "“by mass” takes the region’s share of all the heat",
}

LEAD = "Models and pictures in which something is known to matter more in one than in the other."
REST = (
    "How important a pixel is cannot be known, but which of two matters more can be built in. Only pictures classified "
    "correctly on both sides of a comparison are judged. Intervals resample objects and scenes, not pictures; grey "
    "names are blind controls."
)


@section_of("relative_importance")
def relative_importance(reading: Reading) -> str | None:
    """Premises first; then each question with its baselines."""
    studies = reading.info.of_protocol(PROTOCOL)
    if not studies:
        return None
    notes = [study.noted(RelativeImportanceNotes) for study in studies]
    own = list(zip(notes, (study.model_names for study in studies), strict=True))
    parts = [premises(notes), columns_explained(notes), *(question(reading, own, name) for name in TITLES)]
    parts += [
        iir_thresholds(reading, notes),
        series(reading, notes),
        _robustness(reading, own),
        paired_maps(reading, notes),
    ]
    body = "".join(f'<div class="metric">{part}</div>' for part in parts if part)
    main = [panel for panel in reading.main if any(panel.metric in one.metrics for one in notes)]
    picture = panel_chart(reading, main[0]) if main else ""
    return section(PROTOCOL, "Relative importance", LEAD, body, picture=picture, rest=REST)


def premises(noted: list[RelativeImportanceNotes]) -> str:
    """The accuracies the design rests on, and a warning where it does not hold."""
    notes = next((one for one in noted if one.accuracy), None)
    if notes is None:
        return ""
    rows = [
        [
            notes.roles.get(role, role),
            *(_percent(found.get(what)) for what in ("composite", "without", "grey")),
            *([_percent(notes.rises.get(role))] if notes.rises else []),
        ]
        for role, found in notes.accuracy.items()
    ]
    broken = violations(notes.accuracy, notes.classes, notes.pictures)
    unmeasured = unknown(notes.accuracy)
    if broken:
        verdict = _warning("What follows rests on premises that do not hold here.", " ".join(broken))
    elif not unmeasured:
        verdict = "<p>They hold: the object model needs objects alone, and the scene model does not need them.</p>"
    else:
        verdict = ""
    if unmeasured:
        verdict += _warning(
            "Whether the premises hold is not known.", f"No accuracy could be measured of {listed(unmeasured)}."
        )
    if notes.twins:
        verdict += f"<p>{escape(notes.twins)}</p>"
    head = (
        f"accuracy on {counted(notes.pictures, 'picture')}",
        *("object on scene", "scene alone", "object alone"),
        *(["more confident without the object"] if notes.rises else []),
    )
    return f"<h3>The premises</h3>{verdict}{table(head, rows)}"


def _warning(strong: str, message: str) -> str:
    return f'<p class="warning"><strong>{escape(strong)}</strong> {escape(message)}</p>'


def question(reading: Reading, noted: list[Part], name: str) -> str:
    """One metric's bars beside its random region, for every data set and model with scores."""
    notes, own = next((one for one in noted if one[0].part == name), (RelativeImportanceNotes(), []))
    main = next((label for label, one in notes.metrics.items() if _usual(one)), None)
    if main is None:
        return ""
    moved = next((label for label, one in notes.metrics.items() if one.region == "moved"), None)
    charts, tables = [], []
    for panel in reading.panels:
        if panel.metric != main or panel.model not in own or panel.dataset not in notes.datasets:
            continue
        scored = reading.table(panel)
        baseline = _means(reading, moved, panel)
        rows = []
        share = bootstrap.is_share(scored)
        for method in scored.columns:
            span = clustered(scored[method], notes.clusters, share)
            rows.append(
                Bar(
                    method,
                    span.estimate,
                    span.low,
                    span.high,
                    baseline.get(method, math.nan),
                    reading.colours.get(method),
                    reading.is_control(method),
                )
            )
        rows.sort(key=lambda bar: (bar.control, -bar.value if math.isfinite(bar.value) else math.inf))
        title, _ = TITLES[name]
        charts.append(
            (f"{panel.model} on {panel.dataset}", bars(rows, title=title, baseline_label="random region (moved)"))
        )
        tables.append(_table(reading, panel, notes) + _remarked(reading, panel) + _left_out(reading, panel))
    if not charts:
        return ""
    title, question = TITLES[name]
    return f"<h3>{escape(title)}</h3><p>{escape(question)}</p>{small_multiples(charts)}{''.join(tables)}"


def _usual(variant: Variant) -> bool:
    return variant.region == "object" and variant.rule == "paper" and not variant.is_change


def clustered(values: pd.Series[Any], ids: Mapping[str, Sequence[int]], share: bool = False) -> bootstrap.Interval:
    """The mean with an interval over scenes and objects where these are known, else over pictures."""
    numbers = values.to_numpy(dtype=np.float64)
    if all(image in ids for image in values.index) and ids:
        columns = list(zip(*(ids[image] for image in values.index), strict=True))
        kept = np.isfinite(numbers)
        several = [np.asarray(column) for column in columns if len(set(np.asarray(column)[kept])) > 1]
        return bootstrap.interval(numbers, clusters=several, resamples=1000, share=share)
    return bootstrap.interval(numbers, resamples=1000, share=share)


def _means(reading: Reading, label: str | None, panel: Panel) -> dict[str, float]:
    if label is None:
        return {}
    beside = Panel(label, panel.dataset, panel.model)
    if not reading.has(beside):
        return {}
    return {str(name): float(value) for name, value in reading.table(beside).mean().items()}


def _table(reading: Reading, panel: Panel, notes: RelativeImportanceNotes) -> str:
    """Methods × variants: the score, its random regions, its scale-free form, the tie rate and blindness."""
    labels = [label for label in notes.metrics if reading.has(Panel(label, panel.dataset, panel.model))]
    means = {label: _means(reading, label, panel) for label in labels}
    scored = reading.table(panel)
    ties = reading.detail(panel, "tie")
    rows = []
    share = bootstrap.is_share(scored)
    own = _means(reading, panel.metric, panel)
    tied = reading.info.metric(panel.metric).name == "idr"  # the others know no ties
    for method in sorted(scored.columns, key=lambda one: (reading.is_control(one), -own[one])):
        span = clustered(scored[method], notes.clusters, share)
        judged = scored[method].dropna().index
        cells: list[Any] = [_within(span)]
        cells += [means[label].get(method, math.nan) for label in labels if label != panel.metric]
        cells += [_percent(float(ties[method].reindex(judged).mean()))] if tied else []
        rows.append([method, *cells, str(span.n)])
    head = ["method", "score", *(_variant(notes.metrics[label]) for label in labels if label != panel.metric)]
    head += [*(["ties"] if tied else []), "pictures"]
    return table(head, rows, control=reading.is_control)


def _variant(variant: Variant) -> str:
    words = ["mean relative change"] if variant.is_change else []
    words += [f"{variant.region} region"] if variant.region != "object" else []
    words += [f"by {variant.rule}"] if variant.rule != "paper" else []
    return ", ".join(words) or "score"


def columns_explained(notes: list[RelativeImportanceNotes]) -> str:
    """What the columns beside a score mean, once for all tables: those that some table has."""
    variants = [variant for one in notes for variant in one.metrics.values()]
    met = {name for variant in variants for name in (variant.region, variant.rule)}
    meanings = [words for name, words in COLUMNS.items() if name in met]
    return f"<p>In the tables below, {escape(', '.join(meanings))}.</p>" if meanings else ""


def _remarked(reading: Reading, panel: Panel) -> str:
    """What is known beyond a score: the layers a concept was found in, the share of patches that were verified."""
    details = reading.details_of(panel)
    sentences = []
    for method, part in details.groupby("method", sort=False, observed=True):
        layers = {role: _layers(part, role) for role in ("model", "contrast")}
        if any(layers.values()):
            sentences.append(
                f"{method} counts these layers of {panel.model}: {listed(layers['model']) or 'none'}; of the contrast "
                f"model: {listed(layers['contrast']) or 'none'}."
            )
    if reading.info.metric(panel.metric).name == "iir":
        verified = details[details["detail"] == "verified"].groupby("image", observed=True)["value"].min()
        total, good = len(verified), int(verified.sum())
        share = _percent(good / total) if total else "none"
        sentences.append(
            f"Patches verified after rounding to 8 bits (logits within tolerance, same class): {good} of "
            f"{total}, {share}. Only these are scored."
        )
    return "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in sentences)


def _layers(details: pd.DataFrame, role: str) -> list[str]:
    """The layers of one model in which a concept was found."""
    start = f"{role} layer "
    return [str(name).removeprefix(start) for name in details["detail"].unique() if str(name).startswith(start)]


def _left_out(reading: Reading, panel: Panel) -> str:
    """How many pictures were not judged, and why, counted once per picture."""
    scores = reading.scores
    here = (scores["metric"] == panel.metric) & (scores["dataset"] == panel.dataset) & (scores["model"] == panel.model)
    rows = scores[here]
    undefined = rows[rows["status"] == "undefined"]
    counts = undefined.drop_duplicates(["image", "note"])["note"].value_counts()
    total = rows["image"].nunique()
    out = undefined["image"].nunique()
    if not out:
        return f'<p class="note">All {counted(total, "picture")} could be judged.</p>'
    why = listed([f"{word} ({count})" for word, count in counts.items()])
    return f'<p class="note">{counted(out, "picture")} of {total} left out for some method: {escape(why)}.</p>'


def _robustness(reading: Reading, noted: list[Part]) -> str:
    """MCS and IDR again with objects of another size and place."""
    rows = []
    for notes, own in noted:
        if notes.part != "robustness":
            continue
        main = next((label for label, one in notes.metrics.items() if _usual(one)), None)
        moved = next((label for label, one in notes.metrics.items() if one.region == "moved"), None)
        for panel in reading.panels:
            if panel.dataset in notes.datasets and panel.model in own and panel.metric == main:
                rows += _beside(reading, panel, moved, notes.clusters)
    if not rows:
        return ""
    head = ("metric", "method", "as above", "changed", "random region, changed", "pictures")
    return (
        "<h3>With objects of another size and place</h3><p>The same questions about smaller objects in other places: "
        f"scores that depend on the size or the place of objects will change.</p>{table(head, rows, words=2)}"
    )


def _beside(reading: Reading, panel: Panel, moved: str | None, ids: Mapping[str, Sequence[int]]) -> list[list[Any]]:
    usual = next(
        (p for p in reading.panels if p.metric == panel.metric and p.model == panel.model and p != panel), None
    )
    before = _means(reading, panel.metric, usual) if usual else {}
    baseline = _means(reading, moved, panel)
    scored, own = reading.table(panel), _means(reading, panel.metric, panel)
    rows, share = [], bootstrap.is_share(scored)
    for method in sorted(scored.columns, key=lambda one: (reading.is_control(one), -own[one])):
        named = f"{method} (blind)" if reading.is_control(method) else method
        span = clustered(scored[method], ids, share)
        beside = [before.get(method, math.nan), _within(span), baseline.get(method, math.nan)]
        rows.append([panel.metric, named, *beside, str(span.n)])
    return rows


def _within(span: bootstrap.Interval) -> str:
    return f"{number(span.estimate)} [{number(span.low)}, {number(span.high)}]"


def _percent(share: float | None) -> str:
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"

"""In-distribution faithfulness: FUD beside its controls, and how far each evaluation leaves the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from heatproof.report.reading import Panel, Reading
from heatproof.report.sections.blocks import section, table
from heatproof.report.typeset import breakable, escape
from heatproof.stats.out_of_distribution import auroc, fpr95

PROTOCOL = "in_distribution"
CONTROLS = ("random", "no guidance", "guidance only")
AFTER_TAU = ("random", "inverted", "scope")  # in the notes on smoothness
_NOTED = re.compile(r"([a-z][a-z ]*?) (-?\d+(?:\.\d+)?)(?:,|$)")
QUALITY = {
    "psnr": "PSNR ↑",
    "ssim": "SSIM ↑",
    "ms_ssim": "MS-SSIM ↑",
    "fsim": "FSIM ↑",
    "gmsd": "GMSD ↓",
    "haarpsi": "HaarPSI ↑",
    "vsi": "VSI ↑",
}


def in_distribution(reading: Reading) -> str | None:
    """The controls of FUD by method, and the audit of every evaluation."""
    parts = [part for part in (_controls(reading), _audit(reading)) if part]
    if not parts:
        return None
    lead = (
        "FUD keeps what a map calls important, lets a diffusion model draw the rest again and reads the "
        "confidence that is left. The term that keeps the class from being painted back is an attack on "
        "the model too, so no score stands without its controls."
    )
    return section(PROTOCOL, "Within the data", lead, _stranger(reading) + "".join(parts))


def _stranger(reading: Reading) -> str:
    """A warning where the embedded prior, which knows the embedded scenes only, draws into other pictures."""
    for study in reading.info.get("studies", []):
        named = [one.get("dataset", "another") for one in study.get("datasets", [])]
        if study.get("notes", {}).get("prior") == "embedded" and set(named) - {"two_factor"}:
            return (
                '<p class="warning"><strong>The prior has never seen such pictures.</strong> The embedded diffusion '
                "model was trained on the embedded scenes, so what it draws here may be as strange to the model as "
                "paint would be. Give a prior of such pictures: in_distribution(prior='diffusers:FOLDER').</p>"
            )
    return ""


def noted(note: str) -> dict[str, float]:
    """`random 0.61, no guidance 0.70` as numbers."""
    return {name.strip(): float(value) for name, value in _NOTED.findall(note)}


def _controls(reading: Reading) -> str | None:
    """Per method its area, and the areas of its controls, mean over images."""
    named = reading.info.get("metrics", {})
    label = next((one for one in reading.metrics if named.get(one, {}).get("name") == "fud"), None)
    if label is None:
        return None
    pieces = []
    for panel in (one for one in reading.panels if one.metric == label):
        rows: list[list[Any]] = []
        for method in reading.table(panel).columns:
            scores = _rows(reading, panel).query("method == @method")
            beside = pd.DataFrame([noted(str(note)) for note in scores["note"]])
            area = float(scores["value"].mean())
            means = [float(beside[one].mean()) if one in beside else float("nan") for one in CONTROLS]
            gap = area - means[0]
            rows.append([method, area, *means, gap])
        rows.sort(key=lambda row: row[1], reverse=True)
        head = ["method", "FUD", "random order", "without guidance", "guidance alone", "FUD − random"]
        told = table(head, rows, control=reading.is_control)
        pieces.append(f"<h4>{escape(panel.model)} on {breakable(panel.dataset)}</h4>{told}")
    said = (
        "Read the gain over the random order, not the area: a prior that fills in well leaves much "
        "confidence to any order. “Guidance alone” removes nothing; what it falls short of the clean "
        "confidence is the attack."
    )
    return f"<h3>FUD and its controls</h3><p>{said}</p>{''.join(pieces)}" if pieces else None


def _rows(reading: Reading, panel: Panel) -> pd.DataFrame:
    scores = reading.scores
    chosen = (scores["metric"] == panel.metric) & (scores["dataset"] == panel.dataset)
    return scores[chosen & (scores["model"] == panel.model) & (scores["status"] == "ok")]


def _audit(reading: Reading) -> str | None:
    """Evaluations × statistics."""
    told = audited(reading)
    if not told:
        return None
    evaluations = list(dict.fromkeys(about["evaluation"] for about in told.values()))
    statistics = dict.fromkeys(about["statistic"] for about in told.values())
    quality = [one for one in QUALITY if one in statistics]
    rows = []
    for evaluation in evaluations:
        labels = {about["statistic"]: label for label, about in told.items() if about["evaluation"] == evaluation}
        area, passing = separation(reading.curves, labels.get("energy"))
        smooth = _of(reading, labels.get("tau"))
        beside = pd.DataFrame([noted(str(note)) for note in smooth["note"]])
        taus = [float(smooth["value"].mean())]
        taus += [float(beside[one].mean()) if one in beside else float("nan") for one in AFTER_TAU]
        rest = [float(_of(reading, labels.get(one))["value"].mean()) for one in quality]
        rows.append([evaluation, area, passing, *rest, *taus])
    head = ["evaluation", "AUROC (0.5)", "FPR95 (0.95)", *(QUALITY[one] for one in quality)]
    head += ["τ", "τ random", "τ inverted", "R-OMS"]
    said = (
        "AUROC and FPR95 say how well the model’s energy score tells an evaluation’s samples from the "
        "originals; in brackets the values where it cannot. Quality measures compare each sample with its"
        " original: an evaluation that changes little does well. τ says how orderly confidence falls, "
        "beside the random and the inverted order: where these are as high, smoothness says nothing about"
        " the maps. R-OMS is the confidence that a random order leaves."
    )
    return f"<h3>How far each evaluation leaves the data</h3><p>{said}</p>{table(head, rows)}"


def audited(reading: Reading) -> Mapping[str, Mapping[str, str]]:
    """Which metric labels are parts of the audit, as the protocol noted them."""
    for study in reading.info.get("studies", []):
        notes = study.get("notes", {})
        if study.get("protocol") == PROTOCOL and "audit" in notes:
            told: Mapping[str, Mapping[str, str]] = notes["audit"]
            return told
    return {}


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


def _of(reading: Reading, label: str | None) -> pd.DataFrame:
    scores = reading.scores
    return scores[(scores["metric"] == label) & (scores["status"] == "ok")]

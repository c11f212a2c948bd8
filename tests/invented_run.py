"""A finished run of invented numbers and drawn pictures, with controls, holes, failures and hostile names."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from heatproof.results.results import Picture, Results
from heatproof.results.run_info import RunInfo, run_info

HOSTILE = "<script>window.hacked=1;alert(1)</script>.jpg"
METHODS = {
    "lrp": (0.46, {"signed": True}),
    "integrated_gradients": (0.44, {"signed": True}),
    "grad_cam": (0.37, {"signed": False}),
    "smoothgrad": (0.30, {"signed": False}),
    "input_x_gradient": (0.24, {"signed": True}),
    "saliency": (0.22, {"signed": False}),
    "bcos<img src=x onerror=alert(2)>": (0.33, {"signed": True}),
    "oracle": (0.62, {"control": True}),
    "edges": (0.12, {"control": True}),
    "random": (0.0, {"control": True}),
}
METRICS = {
    "srg": (
        1.0,
        0.0,
        True,
        "How much faster the model fails when the most relevant goes first; 0 is chance.",
    ),
    "mif": (-0.5, 0.5, False, "The model's answer while the most relevant is removed first."),
    "pointing_game": (0.9, 0.3, True, "How often the highest pixel lies in the object."),
}


def invented_scores(models: list[str], images: list[str], seed: int = 0) -> pd.DataFrame:
    """Methods differ by their level, images by theirs, pointing_game disagrees a little with the others."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for metric, (slope, start, _, _) in METRICS.items():
            difficulty = rng.normal(0, 0.08, len(images))
            for at, (method, (level, _)) in enumerate(METHODS.items()):
                twist = 0.1 * np.sin(3.1 * at) if metric == "pointing_game" else 0.0
                values = start + slope * (level + twist) + difficulty + rng.normal(0, 0.09, len(images))
                for image, value in zip(images, values, strict=True):
                    status, note = "ok", ""
                    if method.startswith("bcos") and metric == "mif":
                        status, note = "not_applicable", "bcos explains B-cos networks only"
                    elif method == "smoothgrad" and image == HOSTILE:
                        status, note = "failed", f"RuntimeError: no gradient for {HOSTILE}"
                    elif metric == "pointing_game" and image == images[3]:
                        status, note = "undefined", "the region is empty"
                    worth = value if status == "ok" else np.nan
                    rows.append(("two_factor", model, method, metric, image, worth, status, note, 0.01))
    columns = ["dataset", "model", "method", "metric", "image", "value", "status", "note", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def invented_curves(models: list[str], images: list[str], seed: int = 1) -> pd.DataFrame:
    """Falling curves that all end at the same answer, on slightly different grids."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for method, (level, _) in METHODS.items():
            for image in images[:24]:
                x = np.concatenate([[0.0], np.sort(rng.uniform(0.02, 0.98, 19)), [1.0]])
                y = 0.1 + 0.85 * (1 - x) ** (0.8 + 5 * level) + rng.normal(0, 0.02, x.size) * x * (1 - x) * 4
                rows.append(("two_factor", model, method, "mif", image, x, y))
    return pd.DataFrame(rows, columns=["dataset", "model", "method", "metric", "image", "x", "y"])


def drawn_picture(at: int, side: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """A striped sky with a shaded disc, and the disc's region."""
    y, x = np.mgrid[0:side, 0:side] / side
    centre = 0.35 + 0.08 * at, 0.6 - 0.05 * at
    distance = np.hypot(x - centre[0], y - centre[1])
    region = distance < 0.24
    sky = np.stack([0.35 + 0.3 * y, 0.5 + 0.2 * np.sin(20 * y + 3 * x + at), 0.75 - 0.3 * y], -1)
    ball = np.stack([0.9 - 2 * distance, 0.5 - distance, 0.2 + 0 * x], -1)
    return (np.where(region[..., None], ball, sky).clip(0, 1) * 255).astype(np.uint8), region


def invented_gallery(models: list[str], images: list[str], seed: int = 2) -> list[Picture]:
    """Maps between the region and noise, signed or not as the method is."""
    rng = np.random.default_rng(seed)
    exhibits = []
    for model in models:
        for at, image in enumerate(images[:4]):
            picture, region = drawn_picture(at)
            maps = {}
            for method, (level, traits) in METHODS.items():
                heat = level * region + (0.7 - level) * rng.normal(0, 0.6, region.shape)
                if method == "oracle":
                    heat = region.astype(float)
                maps[method] = heat if traits.get("signed") else np.abs(heat)
            exhibits.append(Picture("two_factor", model, image, picture, region, f"star & <b>{at}</b>", maps))
    return exhibits


def invented_info() -> RunInfo:
    """What was run."""
    stored = {
        "studies": [{"seed": 7, "notes": {"note": "</pre><script>window.hacked=2</script>"}, "limit": 48}],
        "versions": {"heatproof": "0.1.0", "python": "3.11.9", "torch": "2.13.0"},
        "started": "2026-01-02 03:04:05",
        "seconds": 187.4,
        "engine": {"embedded:object": {"backend": "eager", "batch": 16}},
        "protocols": ["pixel_flipping"],
        "metrics": {
            name: {"higher_is_better": higher, "summary": summary, "name": name, "paper": "arXiv 2401.12345"}
            for name, (_, _, higher, summary) in METRICS.items()
        },
        "methods": {
            name: {"summary": f"What {name} does.", "paper": "https://arxiv.org/abs/1703.01365", **traits}
            for name, (_, traits) in METHODS.items()
        },
    }
    return run_info(stored)


def invent(models: list[str], images: list[str]) -> Results:
    """The whole run. Its gallery is put where `Results` would remember it after reading it from disk."""
    results = Results(invented_scores(models, images), invented_curves(models, images), None, invented_info())
    results.__dict__["gallery"] = invented_gallery(models, images)
    return results


def with_info(results: Results, **stored: Any) -> Results:
    """The same run with other run information, given as it is stored."""
    changed = dataclasses.replace(results, info=run_info({**results.info.plain(), **stored}))
    if "gallery" in results.__dict__:
        changed.__dict__["gallery"] = results.gallery
    return changed

"""What the page can be asked: pictures, maps, scores, curves and flip-books as compact data for its script."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from heatproof.report.answers import answers
from heatproof.report.heat import scaled, shrunk
from heatproof.report.run_numbers import Exhibit, Panel, Reading
from heatproof.results.flip_book import Flips

BYTES = 1_700_000  # of data on a page: of further pictures there is nothing
FRAMES = 0.3  # of these, in frames of flip-books
MAP, PHOTO, FRAME = 112, 224, 96  # pixels on the longer side of a map, a picture, a frame
LEVELS = 31  # of heat on each side of zero: more cannot be seen, and would not compress
POINTS = 21  # of a curve
CURVED = 8  # metrics whose curves are kept: those with flip-books first, then the main ones
COARSE = 14  # a side of the maps whose orders are compared


def explorer_data(reading: Reading, most: int = BYTES) -> str:
    """JSON for a script element, of at most so many bytes or one picture: no `<` in it, so that no name can end the
    element. Empty where nothing was kept.
    """
    if not reading.gallery:
        return ""
    methods = list(dict.fromkeys([*answers(reading).methods, *reading.methods]))
    metrics = [panel.metric for panel in reading.panels]
    metrics = list(dict.fromkeys(metrics))
    pictures: list[dict[str, Any]] = []
    in_turn = _in_turn(reading)
    weight = painted = 0
    for exhibit in in_turn:
        found = _picture(reading, exhibit, methods, metrics, frames=painted < FRAMES * most)
        weight += len(json.dumps(found))
        if pictures and weight > most:
            break
        painted += sum(len(page) for books in found["flips"].values() for book in books for page in book.get("f", ()))
        pictures.append(found)
    data = {
        "methods": [
            {
                "name": method,
                "label": reading.info.method(method).label or method,
                "control": reading.is_control(method),
                "signed": reading.info.method(method).signed,
            }
            for method in methods
        ],
        "metrics": [
            {
                "name": name,
                "higher": reading.higher_is_better(name),
                "main": any(panel.metric == name for panel in reading.main),
                "answer": reading.info.metric(name).drawn_axes[1] or name,
            }
            for name in metrics
        ],
        "pictures": pictures,
        "left": len(in_turn) - len(pictures),
    }
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _in_turn(reading: Reading) -> list[Exhibit]:
    """The kept pictures, those of each data set and model in turn, so that what is left out is left out of each."""
    places: dict[tuple[str, str], list[Exhibit]] = {}
    for exhibit in reading.gallery:
        places.setdefault((exhibit.dataset, exhibit.model), []).append(exhibit)
    known = sorted(places, key=lambda one: reading.settings.index(one) if one in reading.settings else len(places))
    longest = max(map(len, places.values()))
    return [places[place][at] for at in range(longest) for place in known if at < len(places[place])]


def _picture(
    reading: Reading, exhibit: Exhibit, methods: Sequence[str], metrics: Sequence[str], *, frames: bool
) -> dict[str, Any]:
    there = [method for method in methods if method in exhibit.maps]
    contestants = [method for method in there if not reading.is_control(method)]
    height, width = exhibit.picture.shape[:2]
    known = reading.pictures
    rows = known[
        (known["dataset"] == exhibit.dataset) & (known["model"] == exhibit.model) & (known["image"] == exhibit.image)
    ]
    right = None if rows.empty or rows.iloc[0]["right"] is None else bool(rows.iloc[0]["right"])
    places = [Panel(metric, exhibit.dataset, exhibit.model) for metric in metrics]
    booked = [metric for books in exhibit.flips.values() for metric in books]
    curved = list(dict.fromkeys([*booked, *(panel.metric for panel in reading.main), *metrics]))[:CURVED]
    return {
        "id": exhibit.image,
        "where": f"{exhibit.model} on {exhibit.dataset}",
        "target": exhibit.target,
        "right": right,
        "label": "" if rows.empty else _word(rows.iloc[0]["label"]),
        "predicted": "" if rows.empty else _word(rows.iloc[0]["predicted"]),
        "size": [width, height],
        "photo": _jpeg(exhibit.picture, PHOTO, 82),
        "region": None if exhibit.region is None else _png(_fit(np.asarray(exhibit.region, np.uint8) * 255, MAP)),
        "maps": {methods.index(method): _map(exhibit.maps[method]) for method in there},
        "scores": {at: _scores(reading, panel, exhibit.image, methods) for at, panel in enumerate(places)},
        "curves": {
            at: found
            for at, panel in enumerate(places)
            if panel.metric in curved and (found := _curves(reading, panel, exhibit.image, methods))
        },
        "flips": {
            methods.index(method): [
                _flips(book, metrics.index(metric), frames=frames and not reading.is_control(method))
                for metric, book in exhibit.flips.get(method, {}).items()
                if metric in metrics
            ]
            for method in there
        },
        "apart": _disagreement([exhibit.maps[method] for method in contestants]),
    }


def _word(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def _map(values: NDArray[Any]) -> dict[str, Any]:
    """A map as grey levels around 128, and what the level of full heat is worth."""
    height, width = values.shape
    share = min(1.0, MAP / max(height, width))
    small = shrunk(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), round(width * share), round(height * share))
    heat = scaled(small)
    top = float(np.abs(small).max() / max(np.abs(heat).max(), 1e-12)) if np.abs(heat).max() > 0 else 0.0
    if np.abs(heat).max() >= 1:
        top = float(np.percentile(np.abs(small), 99.0)) or float(np.abs(small).max())
    levels = 128 + np.round(heat * LEVELS) * (124 // LEVELS)
    return {"png": _png(levels.astype(np.uint8)), "top": float(f"{top:.3g}")}


def _scores(reading: Reading, panel: Panel, image: str, methods: Sequence[str]) -> dict[int, float]:
    if not reading.has(panel) or image not in reading.table(panel).index:
        return {}
    row = reading.table(panel).loc[image]
    return {
        methods.index(str(name)): float(f"{value:.4g}")
        for name, value in zip(row.index, row.to_numpy(dtype=float), strict=True)
        if str(name) in methods and math.isfinite(value)
    }


def _curves(reading: Reading, panel: Panel, image: str, methods: Sequence[str]) -> dict[int, list[list[float]]]:
    part = _of(reading, panel)
    if part is None:
        return {}
    found = {}
    for method, x, y in part.loc[part["image"] == image, ["method", "x", "y"]].itertuples(index=False):
        if str(method) in methods and len(x):
            keep = np.arange(len(x)) if len(x) <= POINTS else np.linspace(0, len(x) - 1, POINTS).round().astype(int)
            found[methods.index(str(method))] = [
                [round(float(value), 3) for value in np.asarray(side, dtype=float)[keep]] for side in (x, y)
            ]
    return found


def _of(reading: Reading, panel: Panel) -> pd.DataFrame | None:
    curves = reading.curves
    if not len(curves):
        return None
    shown = {exhibit.image for exhibit in reading.gallery}
    here = (curves["metric"] == panel.metric) & (curves["dataset"] == panel.dataset)
    return curves.loc[here & (curves["model"] == panel.model) & curves["image"].isin(shown)]


def _flips(book: Flips, metric: int, *, frames: bool) -> dict[str, Any]:
    """A flip-book: the step of each pixel, and either the wholly hidden picture or some frames."""
    found: dict[str, Any] = {"m": metric, "gone": _png(_fit(book.gone, PHOTO))}
    if book.hidden is not None:
        colours = np.unique(book.hidden.reshape(-1, 3), axis=0)
        found["hidden"] = list(map(int, colours[0])) if len(colours) == 1 else _jpeg(book.hidden, PHOTO, 80)
    elif book.frames is not None and frames:
        found["f"] = [_jpeg(page, FRAME, 70) for page in book.frames]
        found["at"] = list(book.at)
    return found


def _disagreement(maps: Sequence[NDArray[Any]]) -> float:
    """One less the mean rank correlation of the maps, by pairs, on a coarse grid; 0 where there are no two."""
    ranked = []
    for values in maps:
        image = Image.fromarray(np.nan_to_num(np.asarray(values, dtype=np.float32)))
        coarse = np.asarray(image.resize((COARSE, COARSE), Image.Resampling.BOX)).ravel()
        if np.ptp(coarse) > 0:
            ranked.append(pd.Series(coarse).rank().to_numpy())
    taus = [float(np.corrcoef(first, second)[0, 1]) for first, second in combinations(ranked, 2)]
    return round(1 - float(np.mean(taus)), 3) if taus else 0.0


def _fit(values: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """No larger than so many pixels on a side, without mixing values."""
    image = Image.fromarray(values)
    share = min(1.0, side / max(image.size))
    size = max(1, round(image.width * share)), max(1, round(image.height * share))
    return np.asarray(image.resize(size, Image.Resampling.NEAREST))


def _png(values: NDArray[np.uint8]) -> str:
    buffer = io.BytesIO()
    Image.fromarray(values, "L").save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _jpeg(picture: NDArray[np.uint8], side: int, quality: int) -> str:
    image = Image.fromarray(np.ascontiguousarray(picture))
    share = min(1.0, side / max(image.size))
    size = max(1, round(image.width * share)), max(1, round(image.height * share))
    buffer = io.BytesIO()
    image.resize(size, Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=quality, optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")

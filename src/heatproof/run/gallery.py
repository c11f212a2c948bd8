"""The first pictures of each data set and their maps, kept beside the rows so that the report needs no model.

A folder is named by all that decides what is seen in it: pictures, model, seed, target. Coming back to an earlier
setting finds the earlier pictures again; `gallery.json` lists which maps belong to the last run, with their hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from zipfile import BadZipFile
from zlib import error as BadStream

import numpy as np
import torch

from heatproof.occlusion.flip_book import FlipBook
from heatproof.results.gallery import GalleryFolder
from heatproof.run.findings import Maps, Pictures
from heatproof.run.store import Store
from heatproof.spec import recipe
from heatproof.storage.atomic_file import sha256_of
from heatproof.types import Attribution, Batch

PICTURES = 16
Show = Callable[[Attribution], FlipBook]


def pictures_of(file: str, about: GalleryFolder, batch: Batch) -> Pictures:
    """The first pictures, to be stored beside the maps in this file."""
    few = batch.select(range(min(PICTURES, len(batch))))
    arrays = {"images": (few.images.cpu() * 255).round().byte().numpy(), "targets": few.targets.cpu().numpy()}
    if few.regions is not None:
        arrays["regions"] = few.regions.cpu().numpy()
    return Pictures(file.rpartition("/")[0], replace(about, ids=tuple(few.ids)), arrays)


def maps_of(file: str, batch: Batch, method: str, attribution: Attribution | None) -> Maps:
    """A method's maps of the first pictures, to be stored in this file; none where it has none."""
    few = batch.ids[:PICTURES]
    maps, ids = np.zeros((0, *batch.images.shape[2:]), dtype="float16"), np.array([], dtype=np.str_)
    if attribution is not None:
        rows = [row for row, identity in enumerate(attribution.batch.ids) if identity in few]
        maps = attribution.maps[rows].cpu().numpy().astype("float16" if _fits(attribution.maps) else "float32")
        ids = np.array([attribution.batch.ids[row] for row in rows], dtype=np.str_)
    return Maps(file, {"maps": maps, "ids": ids, "method": np.array(method, dtype=np.str_)})


def book_of(file: str, metric: str, attribution: Attribution, show: Show) -> Maps | None:
    """What the model sees of the first pictures along a metric’s curve, to be stored; None where it cannot be shown."""
    few = range(min(PICTURES, len(attribution.batch)))
    part = replace(attribution, batch=attribution.batch.select(few), maps=attribution.maps[: len(few)])
    try:
        book = show(part)
    except Exception:  # only to be looked at: the score beside it stands by itself, and says what is wrong
        return None
    arrays = {"gone": book.gone.numpy(), "ids": np.array(part.batch.ids, dtype=np.str_)}
    for name, pictures in (("hidden", book.hidden), ("frames", book.frames)):
        if pictures is not None:
            arrays[name] = (pictures * 255).round().clamp(0, 255).byte().numpy()
    if book.at is not None:
        arrays["at"] = book.at.numpy()
    arrays["method"] = np.array(recipe.label(attribution.method), dtype=np.str_)
    arrays["metric"] = np.array(metric, dtype=np.str_)
    return Maps(book_file(file, metric), arrays)


def book_file(maps: str, metric: str) -> str:
    """Beside a method's maps, where the flip-book of one metric is kept."""
    return f"{maps.removesuffix('.npz')}.{recipe.key(metric)[:12]}.flips.npz"


def _fits(maps: torch.Tensor) -> bool:
    """Half precision is plenty for a picture, unless the map's units fall out of its range."""
    largest = float(maps.abs().max())
    return largest == 0 or 1e-2 < largest < 1e4


def shown_files(store: Store, maps: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The files behind these maps that are there, each with its hash: pictures of each folder, its maps, flip-books.

    `maps` has the metrics of each; a damaged flip-book is left out.
    """
    files: dict[str, str] = {}
    for name, metrics in maps.items():
        folder = name.rpartition("/")[0]
        books = [book_file(name, metric) for metric in metrics]
        sound = [book for book in books if _is_sound(store, book, ("gone", "ids", "method", "metric"))]
        for file in (f"{folder}/about.json", f"{folder}/pictures.npz", name, *sound):
            if file not in files and (store.root / file).is_file():
                files[file] = sha256_of(store.root / file)
    return files


def is_kept(store: Store, file: str) -> bool:
    """Whether a method's maps and the pictures beside them are there and sound; what is damaged is set aside."""
    folder = file.rpartition("/")[0]
    return (
        store.get_json(f"{folder}/about.json") is not None
        and _is_sound(store, f"{folder}/pictures.npz", ("images", "targets"))
        and _is_sound(store, file, ("maps", "ids", "method"))
    )


def _is_sound(store: Store, name: str, wanted: Sequence[str]) -> bool:
    path = store.root / name
    if not path.is_file():
        return False
    try:
        with (
            path.open("rb") as file,
            np.load(file, allow_pickle=False) as arrays,
        ):  # a zip archive: each member carries a checksum
            return all(len(np.atleast_1d(arrays[key])) >= 0 for key in wanted)
    # A flipped bit may ask for a compression method or an encryption that zipfile does not know.
    except (OSError, ValueError, LookupError, BadZipFile, BadStream, EOFError, NotImplementedError, RuntimeError):
        store.set_aside(path)
        return False

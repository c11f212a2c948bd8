"""The pictures that a run kept for its report, with their maps, read back from its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from heatproof.results import run_state
from heatproof.results.flip_book import Flips, coloured, flips_of
from heatproof.storage import sealed_json


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of the gallery and the maps of it, by method."""

    dataset: str
    model: str
    image: str
    picture: np.ndarray[Any, Any]  # (H, W, 3) uint8
    region: np.ndarray[Any, Any] | None  # (H, W) bool
    target: str
    maps: dict[str, np.ndarray[Any, Any]]  # (H, W) float
    flips: Mapping[str, Mapping[str, Flips]] = field(default_factory=dict)  # by method and metric


@dataclass(frozen=True)
class GalleryFiles:
    """`gallery.json`: the files behind the gallery with their hashes, in its order."""

    files: run_state.FileHashes


@dataclass(frozen=True)
class GalleryFolder:
    """`about.json` beside kept pictures: what they are and what they explain."""

    dataset: str
    model: str
    ids: tuple[str, ...]
    classes: tuple[str, ...] = ()


def gallery_files(payload: bytes, root: Path) -> Mapping[str, str]:
    """The files that a `gallery.json` lists, with their hashes; `Damaged` if it is not one."""
    where = root / "gallery.json"
    return sealed_json.typed(GalleryFiles, sealed_json.read(payload, where), where).files


def kept_pictures(root: Path, files: Mapping[str, str]) -> list[Picture]:
    """The pictures that the last run kept with their maps, in its order; `files` are those of its results."""
    with run_state.opened(root, "gallery.json", files) as listed:
        hashes = gallery_files(listed.read(), root)
    if wrong := run_state.changed(root, hashes):
        raise sealed_json.Damaged(
            f"pictures kept in {root} were damaged or removed ({', '.join(wrong)}): {run_state.AGAIN}"
        )
    folders: dict[Path, list[Path]] = {}
    for name in hashes:
        maps = folders.setdefault((root / name).parent, [])
        if Path(name).name not in ("about.json", "pictures.npz"):
            maps.append(root / name)
    return [picture for folder, maps in folders.items() for picture in _pictures(folder, maps)]


def _pictures(folder: Path, files: Sequence[Path]) -> Iterator[Picture]:
    where = folder / "about.json"
    about = sealed_json.typed(GalleryFolder, sealed_json.read(where.read_bytes(), where), where)
    with (folder / "pictures.npz").open("rb") as kept, np.load(kept) as arrays:
        images, targets = arrays["images"], arrays["targets"]
        regions = arrays.get("regions")
    maps: dict[str, dict[str, np.ndarray[Any, Any]]] = {identity: {} for identity in about.ids}
    flips: dict[str, dict[str, dict[str, Flips]]] = {identity: {} for identity in about.ids}
    for file in files:
        with file.open("rb") as kept, np.load(kept) as arrays:
            if "gone" in arrays:
                for identity, book in flips_of(arrays):
                    by_metric = flips.get(identity, {}).setdefault(str(arrays["method"]), {})
                    by_metric[str(arrays["metric"])] = book
                continue
            for identity, values in zip(arrays["ids"].tolist(), arrays["maps"], strict=True):
                if identity in maps:  # else they are of a run that kept more pictures
                    maps[identity][str(arrays["method"])] = values.astype(np.float32)
    for i, identity in enumerate(about.ids):
        target = int(targets[i])
        yield Picture(
            about.dataset,
            about.model,
            identity,
            coloured(images[i]),
            None if regions is None else regions[i],
            about.classes[target] if target < len(about.classes) else str(target),
            maps[identity],
            flips[identity],
        )

"""The registered components as plain data, cached so that listing them needs no imports while nothing has changed.

A listing depends on heatproof's own files, on Python and on the installed packages; it is cached under a hash of all
three. With a plug-in installed nothing is cached: what it registers may depend on anything.
"""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from heatproof import registry
from heatproof.spec import recipe
from heatproof.storage.atomic_file import StoreFull, write_atomically
from heatproof.storage.cache import cache_directory, sealed, unsealed

# Data sets and models may depend on the user's files.
KEPT: tuple[registry.Kind, ...] = ("method", "metric", "imputer", "segmenter", "protocol")

Row = dict[str, Any]


def catalogue(kind: registry.Kind) -> list[Row]:
    """The registered components of a kind, by name."""
    if kind not in KEPT or registry.loaded() or entry_points(group=registry.PLUGINS):
        return _listed(kind)
    name = _state()
    place = cache_directory() / "catalogue" / f"{kind}-{name[:32]}.json"
    found = _read(f"catalogue {kind} {name}".encode(), place)
    if found is None:
        found = _listed(kind)
        content = sealed(f"catalogue {kind} {name}".encode(), json.dumps(found).encode())
        try:
            write_atomically(place, content)
        except (OSError, StoreFull):  # a cache that cannot be written only costs time
            return found
    return found


def _listed(kind: registry.Kind) -> list[Row]:
    return [recipe.listed(registry.entry(kind, name)) for name in registry.names(kind)]


def _read(name: bytes, place: Path) -> list[Row] | None:
    try:
        content = unsealed(name, place.read_bytes())
    except OSError:
        return None
    rows: list[Row] | None = None if content is None else json.loads(content)
    return rows


def _state() -> str:
    """A hash of what a listing depends on: files by size and time, to the nanosecond."""
    home = Path(__file__).parents[1]
    files = sorted(file for file in home.rglob("*") if file.suffix != ".pyc" and file.is_file())
    # Installing or removing a package changes these folders.
    folders = sorted({sysconfig.get_path(name) for name in ("purelib", "platlib")})
    seen = [
        (str(path), path.stat().st_size, path.stat().st_mtime_ns)
        for path in (*files, *map(Path, folders))
        if path.exists()
    ]
    return hashlib.sha256(json.dumps([sys.version, sys.executable, seen]).encode()).hexdigest()

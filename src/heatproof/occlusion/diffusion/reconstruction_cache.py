"""The reconstruction cache on disk: a rerun, or one more method, pays only for what is new."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from heatproof.storage.cache import cache_directory, sealed, unsealed

LARGEST = 2 * 2**30  # bytes; beyond, the oldest quarter is deleted


def find(keys: Iterable[bytes]) -> dict[bytes, bytes]:
    """The stored values of the keys that are in the cache."""
    found: dict[bytes, bytes] = {}
    wanted = list(keys)
    with _opened() as base:
        for start in range(0, len(wanted), 500):
            few = wanted[start : start + 500]
            marks = ",".join("?" * len(few))
            for key, value in base.execute(f"SELECT key, value FROM kept WHERE key IN ({marks})", few):
                content = unsealed(key, value)
                if content is not None:
                    found[key] = content
    return found


def keep(drawn: Mapping[bytes, bytes]) -> None:
    """Stores these; a cache that cannot be written costs time but does not fail the run."""
    if not drawn:
        return
    with _opened() as base:
        base.executemany(
            "INSERT OR REPLACE INTO kept VALUES (?, ?)", ((key, sealed(key, value)) for key, value in drawn.items())
        )
        base.commit()
        (pages,) = base.execute("PRAGMA page_count").fetchone()
        (size,) = base.execute("PRAGMA page_size").fetchone()
        (spare,) = base.execute("PRAGMA freelist_count").fetchone()
        if (pages - spare) * size > LARGEST:
            base.execute(
                "DELETE FROM kept WHERE rowid IN "
                "(SELECT rowid FROM kept ORDER BY rowid LIMIT (SELECT count(*) / 4 FROM kept))"
            )
            base.commit()


def path() -> Path:
    return cache_directory() / "diffusion-2.sqlite"


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    """The database on disk, or an empty one in memory where the file cannot be used."""
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        base = sqlite3.connect(path(), timeout=30)
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB)")
    except (OSError, sqlite3.Error):
        base = sqlite3.connect(":memory:")
        base.execute("CREATE TABLE kept (key BLOB PRIMARY KEY, value BLOB)")
    try:
        yield base
    except sqlite3.Error:  # damaged or full: everything is drawn again
        return
    finally:
        base.close()

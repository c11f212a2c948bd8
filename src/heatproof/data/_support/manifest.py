"""A manifest of picture hashes for each folder, in the cache: a file that did not change is not read again to know it.

A file is known again by its size, inode, and times of change of content and of metadata; setting the first time by hand
moves the second. The reference engine has an empty cache, and so reads every file.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from os import stat_result
from pathlib import Path

from heatproof.storage import cache

SETTLED = 2.0  # seconds since a file was changed, after which another change shows in its times
Entry = tuple[list[int], str]  # the state of a file and the hash of its content


@dataclass
class Manifest:
    """The files of one folder, by name."""

    folder: Path
    known: dict[str, Entry]
    new: int = 0

    @classmethod
    def of(cls, folder: Path) -> Manifest:
        content = cache.kept(_place(folder))
        return cls(folder, {} if content is None else json.loads(content))

    def keep(self) -> None:
        if self.new:
            cache.keep(_place(self.folder), json.dumps(self.known).encode())
            self.new = 0


@dataclass
class Manifests:
    """Those of the folders that were looked at, of one cache directory."""

    where: Path = field(default_factory=cache.cache_directory)
    read: dict[Path, Manifest] = field(default_factory=dict)

    def hash_of(self, path: Path) -> bytes:
        """The SHA-256 of a file's content, from its folder's manifest if the file did not change."""
        before = path.stat()
        # A file just written may change again without another time.
        settled = time.time() - max(before.st_mtime, before.st_ctime) > SETTLED
        if path.parent not in self.read:
            self.read[path.parent] = Manifest.of(path.parent)
        manifest, state = self.read[path.parent], _state(before)
        known = manifest.known.get(path.name)
        if settled and known is not None and known[0] == state:
            return bytes.fromhex(known[1])
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").digest()
        if settled:
            manifest.known[path.name] = (state, found.hex())
            manifest.new += 1
        return found

    def keep(self) -> None:
        """Write the manifests to which something was added."""
        for manifest in self.read.values():
            manifest.keep()


_current: list[Manifests] = []


def manifests() -> Manifests:
    """Those of the cache directory that is in use."""
    if not _current or _current[0].where != cache.cache_directory():
        _current[:] = [Manifests()]
    return _current[0]


def _state(found: stat_result) -> list[int]:
    return [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]


def _place(folder: Path) -> Path:
    name = hashlib.sha256(str(folder.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return cache.cache_directory() / "pictures" / f"{name}.sealed"

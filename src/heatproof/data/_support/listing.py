"""The picture files of a folder, at any depth: every folder is read once, whatever links lead to it."""

from __future__ import annotations

import os
import warnings
from collections import deque
from pathlib import Path

from heatproof.data._support.pictures import SUFFIXES
from heatproof.errors import BadInput


def pictures_under(folder: Path) -> list[Path]:
    """All picture files at any depth, sorted; links are followed, hidden files and folders passed over.

    A folder reached in several ways is read once, under its own name if that lies below: duplicate pictures would make
    every interval too narrow. A warning names what was left out for that reason.
    """
    found: list[Path] = []
    read: dict[Path, Path] = {}  # real folder -> the name it was read under
    again: list[Path] = []
    waiting = deque([folder])
    try:
        while waiting:
            linked = waiting.popleft()
            if not _read_tree(linked, found, read, waiting):
                again.append(linked)
    except OSError as error:
        raise BadInput(f"{folder} cannot be listed ({error.strerror}): check its permissions") from error
    _warn_of_links(again, read, folder)
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def _read_tree(top: Path, found: list[Path], read: dict[Path, Path], links: deque[Path]) -> bool:
    """Add the pictures below a folder, unless it was read before; links to folders wait: real names come first."""
    real = top.resolve()
    if real in read:
        return False
    inner = [(top, real)]
    while inner:
        folder, real = inner.pop()
        if real in read:
            continue
        read[real] = folder
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
        for entry in inside:
            path = folder / entry.name
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append((path, real / entry.name))
            elif entry.is_symlink() and path.is_dir():
                links.append(path)
            elif path.suffix.lower() in SUFFIXES:
                found.append(path)
    return True


def _warn_of_links(again: list[Path], read: dict[Path, Path], folder: Path) -> None:
    if again:
        first, more = again[0], f" (and {len(again) - 1} more)" if len(again) > 1 else ""
        warnings.warn(
            f"{first.relative_to(folder)}{more} links to {read[first.resolve()]}, whose pictures are listed already: "
            "they are counted once, under that name",
            stacklevel=3,
        )

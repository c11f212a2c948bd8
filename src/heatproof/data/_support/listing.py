"""The picture files of a folder, at any depth: every folder is read once, whatever links lead to it."""

from __future__ import annotations

import os
import warnings
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

from heatproof.data._support.pictures import is_picture
from heatproof.errors import BadInput

# Files that are expected beside pictures and say nothing of a picture that is missing.
BESIDE = frozenset(
    (".txt", ".md", ".csv", ".tsv", ".json", ".xml", ".yaml", ".yml", ".html", ".py", ".log", ".ini", ".db")
)


def pictures_under(folder: Path) -> list[Path]:
    """All picture files at any depth, sorted; links are followed, hidden files and folders passed over.

    A folder reached in several ways is read once, under its own name if that lies below: duplicate pictures would make
    every interval too narrow. A warning names what was left out for that reason.
    """
    found: list[Path] = []
    others: list[Path] = []
    read: dict[Path, Path] = {}  # real folder -> the name it was read under
    again: list[Path] = []
    waiting = deque([folder])
    try:
        while waiting:
            linked = waiting.popleft()
            if not _read_tree(linked, found, others, read, waiting):
                again.append(linked)
    except OSError as error:
        raise BadInput(f"{folder} cannot be listed ({error.strerror}): check its permissions") from error
    _warn_of_links(again, read, folder)
    if found and (passed := in_words(others)):
        warnings.warn(f"{folder} also holds files that are not read as pictures: {passed}", stacklevel=2)
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def check_any(folder: Path, pictures: Sequence[Path], kind: str) -> None:
    """`BadInput` for a folder without a single picture, with what is there instead."""
    if pictures:
        return
    there = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    passed = f" (there are {words})" if (words := in_words(there)) else ""
    raise BadInput(f"{folder} holds no {kind} (.jpg, .png, …){passed}: name the folder they are in, or convert them")


def in_words(others: Sequence[Path]) -> str:
    """What is not read, by ending: `12 .dcm, 3 .heic`. Notes and tables lie beside many pictures and do not count."""
    endings = Counter(path.suffix.lower() for path in others if path.suffix.lower() not in BESIDE)
    return ", ".join(f"{count} {ending or 'without an ending'}" for ending, count in endings.most_common(6))


def _read_tree(top: Path, found: list[Path], others: list[Path], read: dict[Path, Path], links: deque[Path]) -> bool:
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
            elif is_picture(path):
                found.append(path)
            else:
                others.append(path)
    return True


def _warn_of_links(again: list[Path], read: dict[Path, Path], folder: Path) -> None:
    if again:
        first, more = again[0], f" (and {len(again) - 1} more)" if len(again) > 1 else ""
        warnings.warn(
            f"{first.relative_to(folder)}{more} links to {read[first.resolve()]}, whose pictures are listed already: "
            "they are counted once, under that name",
            stacklevel=3,
        )

"""Paths from arbitrary text: folders of this machine or of an object store, and names that no file can have.

A name that no file can have counts as missing, not as an error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

from heatproof.errors import Missing

URL = re.compile(r"(?P<store>[a-z][a-z0-9+.-]+):/+(?P<path>.*)", re.DOTALL)  # `C:` is a drive


def folder(text: str | Path) -> Path:
    """A folder of this machine, or of a store named like `s3://bucket/runs`, which has the methods of a path."""
    if not isinstance(text, str | Path):
        return text  # in a store already
    url = URL.fullmatch(str(text))  # a Path has made one slash of two
    if url is None:
        return Path(text)
    try:
        from upath import UPath
    except ImportError as error:
        raise Missing.package("universal-pathlib", "remote", f"reading and writing {url['store']}://") from error
    return cast("Path", UPath(f"{url['store']}://{url['path']}"))


def is_remote(path: Path) -> bool:
    """Whether a path is in a store, where files are put whole, and not on a disk."""
    return not isinstance(path, Path)


def expanded(text: str | Path) -> Path:
    """The path with its home directory in place of `~`; the `~` of an unknown user stays."""
    try:
        return Path(text).expanduser()
    except (RuntimeError, ValueError):
        return Path(text)


def is_file(path: str | Path) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, not readable, or not a valid name
        return False


def is_dir(path: str | Path) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def exists(path: str | Path) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False

"""Path checks for arbitrary text: a name that no file can have counts as missing, not as an error."""

from __future__ import annotations

from pathlib import Path


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

"""Imports user files as modules, so that what they define is found again by path and name."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from heatproof import torchvision_import
from heatproof.errors import BadInput, HeatproofError, UnknownName, UntrustedCode
from heatproof.storage import any_path

# User code on the command line: path/to/file.py:Name, with or without fields.
IN_FILE = re.compile(r"(?P<file>[^()\n]*\.py):(?P<name>[^\W\d]\w*)\s*(?P<fields>\(.*\))?", re.DOTALL)


_refused: ContextVar[bool] = ContextVar("_refused", default=False)


@contextmanager
def no_user_code() -> Iterator[None]:
    """No user file is run in this context: a second safeguard behind the list of what a stored study names."""
    token = _refused.set(True)
    try:
        yield
    finally:
        _refused.reset(token)


def imported(where: str) -> Any:
    """The object that `package.module:Name` or `path/to/file.py:Name` names."""
    place, _, name = where.rpartition(":")
    try:
        module = read_once(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UnknownName(
            f"{where} could not be found ({error}): user code can be replayed only from a module "
            "or a file, not from a notebook or the command line"
        ) from error
    return found


def read_once(path: Path) -> Any:
    """The file as a module, read again only if it changed: several components of a study may come from one file."""
    return _read(str(path), path.stat().st_mtime_ns if any_path.is_file(path) else 0)


@functools.lru_cache(16)
def _read(path: str, changed: int) -> Any:
    return own_file(Path(path))


class _AsItIs(SourceFileLoader):
    """Always compiles the source: Python's cache misses an edit within the same second that keeps the file's length."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def from_file(path: Path) -> Any:
    """A Python file as a module, named by its path, so that a recipe can find what it defines.

    Files beside it can be imported, while it is loaded and later by its functions, as if Python ran it directly.
    """
    if _refused.get():
        raise UntrustedCode(f"{path} is code that a stored study names: read it, then pass --trust-code to run it")
    if not any_path.is_file(path):
        raise BadInput(f"there is no file {path}")
    path = path.absolute()
    torchvision_import.mend()  # which the file may import
    spec = importlib.util.spec_from_file_location(str(path), path, loader=_AsItIs(str(path), str(path)))
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} must be a Python file")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    before = sys.modules.get(str(path))
    sys.modules[str(path)] = module  # where dataclasses look up their annotations
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if before is None:
            del sys.modules[str(path)]
        else:
            sys.modules[str(path)] = before
        raise
    return module


def own_file(path: Path) -> Any:
    """A Python file as a module; errors in it are reported with their line."""
    try:
        return from_file(path)
    except HeatproofError:
        raise
    except (Exception, SystemExit) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise BadInput(f"{path}, line {_line(error, path)}: {type(error).__name__}: {reason}") from error


def _line(error: BaseException, path: Path) -> int | str:
    """The line of the file that raised the error, or that cannot be parsed."""
    file = str(path.absolute())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    return next((line for line in reversed(lines) if line), "?")

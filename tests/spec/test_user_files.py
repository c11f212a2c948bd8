"""Files of one's own as modules: read once, and again when they were edited."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from heatproof.spec.parse import parse
from heatproof.spec.user_files import imported, read_once

SECOND = 1_700_000_000 * 10**9  # in nanoseconds


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "mine.py"


def _written(file: Path, width: int, when: int) -> None:
    """A file of one length whatever the width, edited at this time."""
    file.write_text(
        "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Ours:\n"
        f"    width: int = {width}\n\n    def __call__(self, model, batch): ...\n"
    )
    os.utime(file, ns=(when, when))


def test_a_file_is_read_once_as_long_as_it_is_not_edited(file: Path) -> None:
    _written(file, 1, SECOND)
    assert read_once(file) is read_once(file)
    assert imported(f"{file}:Ours") is type(parse("method", f"{file}:Ours"))


@pytest.mark.parametrize("later", [60 * 10**9, 10**6], ids=["a minute later", "within the same second"])
def test_an_edited_file_is_read_again(file: Path, later: int) -> None:
    """Also in the same second and at the same length, when Python would take the old compiled code for the new."""
    for width, when in enumerate((SECOND, SECOND + later, SECOND + 2 * later), start=1):
        _written(file, width, when)
        assert parse("method", f"{file}:Ours").width == width
        assert imported(f"{file}:Ours")().width == width
        assert parse("method", f"inverted(method={file}:Ours)").method.width == width

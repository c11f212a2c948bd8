"""Paths from texts that may be anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from heatproof.storage import any_path

NO_NAMES = ["a" * 5000, "a\0b", "\ud800", "~nobody-of-this-name/a", "~a\0b", ""]


@pytest.mark.parametrize("text", NO_NAMES)
def test_a_name_that_no_file_can_have_is_no_file(text: str) -> None:
    found = any_path.expanded(text)
    assert not any_path.is_file(found)
    assert any_path.is_dir(found) == any_path.exists(found) == (text == "")


def test_what_is_there_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a").touch()
    assert any_path.is_file(any_path.expanded("~/a"))
    assert any_path.exists(tmp_path / "a")
    assert any_path.is_dir(any_path.expanded("~"))

"""The README's own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heatproof import registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_ten_lines_of_python_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert "brightness" in capsys.readouterr().out
    assert (tmp_path / "runs" / "first" / "report.html").is_file()


def test_every_method_and_protocol_is_named() -> None:
    for name in registry.names("method"):
        assert f"`{name}`" in README, name
    for name in registry.names("protocol"):
        assert f"`{name}`" in README, name


def test_named_commands_exist() -> None:
    from heatproof.cli import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    spoken = set(re.findall(r"^heatproof (\w+)", README, re.M)) | set(re.findall(r"`heatproof (\w+)", README))
    groups = {group.name for group in app.registered_groups}
    assert spoken <= known | groups


def test_pictures_in_the_readme_are_there() -> None:
    for path in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / path).is_file(), path

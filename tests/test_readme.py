"""The README's own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = (ROOT / "docs" / "how_to" / "command_line.md").read_text("utf-8")
OWN_NETWORK = (ROOT / "docs" / "how_to" / "own_network.md").read_text("utf-8")


def test_the_ten_lines_of_python_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert "mine" in capsys.readouterr().out
    assert (tmp_path / "runs" / "latest" / "report.html").is_file()


def test_named_commands_exist() -> None:
    from heatproof.cli import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    both = README + COMMANDS
    spoken = set(re.findall(r"^heatproof (\w+)", both, re.M)) | set(re.findall(r"`heatproof (\w+)", both))
    groups = {group.name for group in app.registered_groups}
    assert spoken == known | groups


def test_directories_that_commands_read_are_written_by_others() -> None:
    written = {"runs/latest"} | set(re.findall(r"--out (runs/\w+)", COMMANDS))
    read = set(re.findall(r"^heatproof (?:run|consistency|report|table) (runs/\w+)", README + COMMANDS, re.M))
    assert read
    assert read <= written


def test_the_network_of_the_documentation_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from heatproof import models

    (code,) = re.findall(r"^```text\n(def factory\(\).*?)^```", OWN_NETWORK, re.S | re.M)
    network = "torch.nn.Sequential(torch.nn.Conv2d(3, 4, 5, 4), torch.nn.Flatten(), torch.nn.Linear(900, 3))"
    made = code.replace("MyNetwork()", network)
    monkeypatch.chdir(tmp_path)
    torch.save(eval(network, {"torch": torch}).state_dict(), "weights.pt")
    Path("mine.py").write_text(f"import torch\n{made}")
    model = models.load("mine.py:factory")
    assert (model.view, model.mean, model.classes[0]) == ((64, None, "bilinear"), (0.5, 0.5, 0.5), "circle")


def test_pictures_in_the_readme_are_there() -> None:
    for path in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / path).is_file(), path

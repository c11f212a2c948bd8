"""The README's own words."""

from __future__ import annotations

import re
import textwrap
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


def test_directories_that_commands_read_are_written_by_others() -> None:
    written = set(re.findall(r"--out (runs/\w+)", README)) | set(re.findall(r"writes (runs/\w+)/", README))
    read = set(re.findall(r"^heatproof (?:run|consistency|report) (runs/\w+)", README, re.M))
    assert read
    assert read <= written


def test_the_network_of_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from heatproof import models

    code = README[README.index("    def factory():") : README.index("It may answer")]
    network = "torch.nn.Sequential(torch.nn.Conv2d(3, 4, 5, 4), torch.nn.Flatten(), torch.nn.Linear(900, 3))"
    made = code.replace("MyNetwork()", network)
    monkeypatch.chdir(tmp_path)
    torch.save(eval(network, {"torch": torch}).state_dict(), "weights.pt")
    Path("mine.py").write_text("import torch\n" + textwrap.dedent(made))
    model = models.load("mine.py:factory")
    assert (model.view, model.mean, model.classes[0]) == ((64, None, "bilinear"), (0.5, 0.5, 0.5), "circle")


def test_pictures_in_the_readme_are_there() -> None:
    for path in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / path).is_file(), path

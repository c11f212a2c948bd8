"""Every block of code in the documentation: Python is run, commands are parsed with the options they name."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
import pytest
import typer.main
from PIL import Image

from heatproof import registry
from heatproof.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "bash", "sh", "yaml", "toml", "json", "text", "html", ""}

# What how-tos take for granted: a network, images and a small study.
GRANTED = """
import torch
import heatproof
network = torch.nn.Sequential(torch.nn.Conv2d(3, 1, 5, 4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
images = torch.rand(2, 3, 32, 32)
methods = ["saliency", "input_x_gradient"]
study = heatproof.Study(["embedded:object"], ["two_factor(count=20)"], methods, ["pointing_game"])
def factory(): return network
"""


def blocks(page: Path, *languages: str) -> list[str]:
    found = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)
    return [code for language, code in found if language in languages]


def pages_with(*languages: str) -> list[Any]:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if blocks(page, *languages)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with what the pages take for granted: photos and their masks."""
    for folder in ("photos", "masks"):
        (tmp_path / folder).mkdir()
        for place in range(4):
            pixels = np.random.default_rng(place).integers(0, 255, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / folder / f"{place}.png")
    monkeypatch.chdir(tmp_path)
    registry.names("method")
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    return tmp_path


# The README's have a test of their own.
@pytest.mark.parametrize("page", [page for page in pages_with("python") if page.id != "README.md"])
def test_python_runs(page: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after another, as a reader would type them."""
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # dataclasses look their module up
    exec(GRANTED, vars(module))
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), vars(module))


def commands(page: Path) -> list[list[str]]:
    """The command lines of heatproof on a page, without comments, and with continued lines joined."""
    found = []
    for code in blocks(page, "bash", "sh"):
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line.replace("$", r"\$") if "'" not in line else line, comments=True)
            if words and words[0] == "heatproof":
                found.append(words[1:])
    return found


@pytest.mark.parametrize("page", pages_with("bash", "sh"))
def test_commands_take_the_options_that_are_named(page: Path) -> None:
    group = typer.main.get_command(app)
    for words in commands(page):
        written = " ".join(words)
        context: Any = click.Context(group, info_name="heatproof")  # type: ignore[arg-type]
        command: Any = group
        rest = [word for word in words if word not in ("…", "...")]
        while isinstance(command, click.Group) or hasattr(command, "commands"):
            if not rest or rest[0].startswith("-"):
                break
            command = command.commands[rest.pop(0)]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        named = {word.split("=")[0] for word in rest if word.startswith("--")}
        assert named <= known | {"--help", "--version", "--install-completion"}, (written, context.info_name)


def test_every_block_says_its_language() -> None:
    for page in PAGES:
        for language in re.findall(r"^```(\w*)[^\n]*\n.*?^```", page.read_text("utf-8"), re.S | re.M):
            assert language in LANGUAGES, (page, language)

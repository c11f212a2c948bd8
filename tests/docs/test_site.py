"""The site: every page is in the navigation, every component in a catalogue, every protocol has a page and a figure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from heatproof import registry
from heatproof.cli import app

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from docs_site import catalogue, command_line, maps, protocol_figures  # noqa: E402

ELSEWHERE = {"all": "judging.md", "judges": "judges.md"}  # protocols whose page is of another kind
PROTOCOLS = [name for name in registry.names("protocol") if name not in ELSEWHERE]


def entries(navigation: Any) -> Iterator[str]:
    for entry in navigation if isinstance(navigation, list) else navigation.values():
        if isinstance(entry, str):
            yield entry
        else:
            yield from entries(entry)


def test_every_written_page_is_in_the_navigation() -> None:
    settings = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), yaml.BaseLoader)
    named = set(entries(settings["nav"]))
    pages = {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    assert {str(page) for page in pages if str(page.parent) not in named} <= named  # or its whole folder is


@pytest.mark.parametrize("kind", list(catalogue.KINDS))
def test_every_component_has_an_entry(kind: registry.Kind) -> None:
    page = catalogue.page(kind)
    for name in registry.names(kind):
        assert f"{{ #{name} }}" in page
    for paper in re.findall(r"^\*Paper: .*", page, re.M):
        assert paper.endswith("*")


def test_every_kind_that_can_be_listed_has_a_catalogue_or_a_page() -> None:
    assert set(registry.KINDS) - set(catalogue.KINDS) <= {"model", "part"}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_has_a_page_with_question_picture_dangers_and_commands(name: str) -> None:
    page = (ROOT / "docs" / "protocols" / f"{name}.md").read_text("utf-8")
    for part in ("## How it is computed", "## How it can mislead", "## On your data", f"protocols/{name}.svg"):
        assert part in page, part
    assert name in protocol_figures.DRAWN


def test_the_other_protocols_have_pages_too() -> None:
    for name, page in ELSEWHERE.items():
        assert f"protocols {name}" in (ROOT / "docs" / page).read_text("utf-8")


def test_a_figure_is_drawn_from_the_embedded_models() -> None:
    svg = protocol_figures.pixel_flipping()
    assert svg == protocol_figures.pixel_flipping()  # no dates, no random ids
    assert b"share of segments hidden" in svg


def test_a_map_is_drawn_or_the_method_is_one_that_needs_more_than_a_picture() -> None:
    named = ["saliency", "lrp", "attention_rollout", "precomputed"]
    assert [name for name, _ in maps.maps(named)] == named[:3]


def test_the_command_line_page_has_every_command() -> None:
    page = command_line.page()
    for command in app.registered_commands:
        assert f"### heatproof {command.name}" in page
    assert "--until" in page


def test_the_site_is_built_strictly_and_without_a_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "site" / "images" / "methods").glob("*.png"))) > 50

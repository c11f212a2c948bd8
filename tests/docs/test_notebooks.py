"""The notebooks run from top to bottom: on fewer pictures by default, as they are among the slow tests."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
assert spec is not None
assert spec.loader is not None
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def reduced(code: str) -> str:
    """The cell on fewer pictures."""
    return re.sub(r"images\[:\d+\]", "images[:5]", re.sub(r"count=\d+", "count=6", code)).replace(
        "range(96)", "range(6)"
    )


def cells(path: Path) -> list[Any]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_on_few_pictures(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", module)
    with mpl.rc_context({"backend": "agg"}):
        for cell in cells(path):
            exec(compile(reduced(cell.source), path.name, "exec"), vars(module))
    assert list(tmp_path.rglob("study.json"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_as_it_is(path: Path, tmp_path: Path) -> None:
    tool.executed(path, tmp_path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_kept_small_and_name_no_directory(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text) < tool.MOST
    assert any(cell.outputs for cell in cells(path))
    assert not re.search(r"/home/|/root/|/tmp/|site-packages", json.dumps(text))

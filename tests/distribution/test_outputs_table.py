"""docs/outputs.md says of every component what it declares."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from heatproof import registry

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("outputs_table", ROOT / "tools" / "outputs_table.py")
assert spec is not None
assert spec.loader is not None
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)


def test_the_page_has_the_tables_of_today() -> None:
    text = made.PAGE.read_text(encoding="utf-8")
    assert made.page(text, made.tables()) == text, "run: python tools/outputs_table.py --write"


def test_the_tables_name_every_method_and_metric() -> None:
    for kind in ("method", "metric"):
        lines = made.table(kind, made.rows(kind)).splitlines()
        assert len(lines) == 2 + len(registry.names(kind))
        assert any(made.YES in line and "value has no" in line for line in lines) or kind == "metric"

"""Which methods and metrics apply to which kind of network, from what they declare; the tables of docs/outputs.md.

python tools/outputs_table.py            # prints the tables
python tools/outputs_table.py --write    # writes them into the page
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heatproof import registry
from heatproof.spec import recipe

PAGE = Path(__file__).parent.parent / "docs" / "outputs.md"
BEGIN, END = "<!-- tables: python tools/outputs_table.py --write -->", "<!-- end of tables -->"
COLUMNS = {"classes": "classes", "yes_no": "yes or no, each label", "value": "value"}
YES = "✓"


def rows(kind: registry.Kind) -> list[Mapping[str, Any]]:
    """The registered components of a kind, as they are listed, without plug-ins."""
    return [recipe.listed(registry.entry(kind, name)) for name in registry.names(kind)]


def table(kind: str, listed: Iterable[Mapping[str, Any]]) -> str:
    """One row per component: a tick, or why it does not apply."""
    lines = [f"| {kind} | {' | '.join(COLUMNS.values())} |", f"|---{'|---' * len(COLUMNS)}|"]
    for row in listed:
        cells = [row["unfit"].get(question, "") for question in COLUMNS]
        lines.append(f"| `{row['name']}` | {' | '.join(cell or YES for cell in cells)} |")
    return "\n".join(lines)


def tables() -> str:
    """Both tables, methods and metrics."""
    return "\n\n".join(f"### {kind.capitalize()}s\n\n{table(kind, rows(kind))}" for kind in ("method", "metric"))


def page(text: str, made: str) -> str:
    """The page with these tables in their place."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")
    else:
        sys.stdout.write(f"{tables()}\n")

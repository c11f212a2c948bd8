"""docs/claims.md, from the rows and what was measured."""

from __future__ import annotations

from pathlib import Path

from ledger.measured import Measured, Store
from ledger.number import VERDICTS, Finding
from ledger.recipe import Recipe
from ledger.rows import PAPERS, RECIPES, ROWS, Paper, Row

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"
LEAD = """# Claims of the papers, and what was measured here

One section per paper and one row per claim: what the paper says, how it is tested, what came out, and whether the claim
held. “Not held” means in this setting, not that the paper is wrong in its own.

`python benchmarks/claims.py` writes this page: every number on it was read off a run. It runs each recipe
(`--only NAME` runs some, `--scale quick` a small form; a stopped one goes on), keeps what it found in
`benchmarks/ledger/measured.json`, and `--check` says which numbers have left their intervals since.

Intervals are 95 %. Pictures that share an object or a scene are not independent, and intervals allow for it: they speak
for new objects and scenes, too. Where a row rests on several differences, these share the 5 %. *Detectable* is the
smallest difference that as many pictures would have shown four times in five, for the widest interval that the verdict
rests on. *Held* and *not held* are said where the intervals say so and *cannot tell* otherwise; a difference that was
not shown is no evidence that there is none.

Photos are a thousand photos of four ImageNet classes (two mountain dogs, tabby, sports car), which are not part of this
package; their masks were made by a small salient-object network and are unchecked, so no row that uses them speaks of
true regions.
"""


def page(store: Store) -> str:
    """The whole page."""
    return LEAD + _summary(store) + "".join(_section(short, about, store) for short, about in PAPERS.items())


def _summary(store: Store) -> str:
    """How many claims there are of each verdict, how many were measured in short, and how many wait."""
    found = {name: measured for name in ROWS if (measured := store.best(name))}
    verdicts = [measured.finding.verdict for measured in found.values()]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS)
    quick = sum(measured.command != ROWS[name].recipe.shown("full") for name, measured in found.items())
    short = (
        f" {quick} of them so far in their quick form only, on few pictures: most of these cannot tell."
        if quick
        else ""
    )
    waiting = len(ROWS) - len(found)
    return f"\n{len(found)} claims measured: {counts}.{short}" + (
        f" {waiting} not measured yet.\n" if waiting else "\n"
    )


def _section(short: str, about: Paper, store: Store) -> str:
    rows = [row for row in ROWS.values() if row.paper == short]
    found = {row: measured for row in rows if (measured := store.best(row.name))}
    used = [one for one in RECIPES.values() if any(row.recipe is one for row in rows)]
    recipes = "".join(_recipe(one, {measured.command for measured in found.values()}) for one in used)
    head = "\n| claim | how it is tested | measured | n | detectable | held |\n|---|---|---|---|---|---|\n"
    table = (head + "".join(_row(row, measured) for row, measured in found.items())) if found else ""
    notes = f"{about.notes}\n\n" if about.notes else ""
    return f"\n## {about.heading}\n\n{notes}{recipes}{table}" + _waiting([row for row in rows if row not in found])


def _waiting(rows: list[Row]) -> str:
    """The rows that were not measured, by recipe."""
    lines = []
    for recipe in dict.fromkeys(row.recipe for row in rows):
        claims = " · ".join(row.claim.rstrip(".") for row in rows if row.recipe is recipe)
        lines.append(f"\nNot measured yet (*{recipe.name}*): {claims}.\n")
    return "".join(lines)


def _recipe(recipe: Recipe, shown: set[str]) -> str:
    """What a recipe is and its command; also the quick one, where rows come from it."""
    quick = recipe.shown("quick") if "quick" in recipe.words else ""
    small = f"\n  Quick: `{quick}`" if quick in shown else ""
    return f"* **{recipe.name}**: {recipe.about}\n  `{recipe.shown('full')}`{small}\n"


def _row(row: Row, measured: Measured) -> str:
    finding = measured.finding
    quick = "" if measured.command == row.recipe.shown("full") else ", quick"
    how = f"{row.how} (*{row.recipe.name}{quick}*)"
    return _line(row.claim, how, _numbers(finding), str(finding.n), finding.detectable, finding.verdict)


def _numbers(finding: Finding) -> str:
    return "; ".join(str(number) for number in finding.numbers)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

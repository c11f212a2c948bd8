"""The registry of recipes and claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heatproof.errors import UnknownName
from ledger.number import Finding
from ledger.recipe import Recipe, Scale
from ledger.sample import Sample

Judge = Callable[[Sample], Finding]
RECIPES: dict[str, Recipe] = {}
ROWS: dict[str, Row] = {}
PAPERS: dict[str, Paper] = {}  # by short name, in the order of the page


@dataclass(frozen=True)
class Paper:
    """A section of the page."""

    heading: str
    notes: str = ""  # what to know beside the rows; no measured number


@dataclass(frozen=True)
class Row:
    """One claim of a paper."""

    name: str
    claim: str
    how: str
    recipe: Recipe
    judge: Judge
    quick: bool = True  # whether the quick form of the recipe has what this row needs

    def judged_at(self, scale: Scale) -> bool:
        return scale in self.recipe.words and (self.quick or scale != "quick")

    @property
    def paper(self) -> str:
        return self.name.partition(".")[0]


def paper(short: str, heading: str, notes: str = "") -> None:
    """Register a section of the page."""
    PAPERS[short] = Paper(heading, notes)


def recipe(name: str, about: str, *, full: str, quick: str = "") -> Recipe:
    """Register a recipe: the words after `heatproof run`."""
    words: dict[Scale, str] = {"full": full}
    if quick:
        words["quick"] = quick
    RECIPES[name] = Recipe(name, about, words)
    return RECIPES[name]


def row(name: str, of: Recipe, claim: str, how: str, *, quick: bool = True) -> Callable[[Judge], Judge]:
    """Register a claim with the function that judges it."""

    def registered(judge: Judge) -> Judge:
        ROWS[name] = Row(name, claim, how, of, judge, quick)
        return judge

    return registered


def chosen(only: str) -> list[Row]:
    """The rows whose name, paper or recipe is among these; all of them if none is named."""
    named = [name for name in only.split(",") if name]
    known = {name for row in ROWS.values() for name in (row.name, row.paper, row.recipe.name)}
    for name in named:
        if name not in known:
            raise UnknownName.among("row, paper or recipe", name, sorted(known))
    return [row for row in ROWS.values() if not named or {row.name, row.paper, row.recipe.name} & set(named)]

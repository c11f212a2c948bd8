"""The claims of the papers, measured again: runs recipes, judges rows, writes docs/claims.md.

    python benchmarks/claims.py [--only NAME,…] [--scale quick|full] [--photos FOLDER --masks FOLDER]
    python benchmarks/claims.py --read        # judge the runs that are there; run nothing
    python benchmarks/claims.py --check       # run, and say which numbers left their intervals; write nothing

A name is that of a row, a recipe or a paper (`--list`). A recipe that was stopped goes on, `--workers` work side by
side. What was measured is kept in benchmarks/ledger/measured.json; rows that are not computed again stay as they are.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import ledger.papers  # noqa: F401 registers the claims
from ledger.check import drifted
from ledger.measured import Store
from ledger.page import PAGE, page
from ledger.recipe import SCALES, Folders, Recipe, Scale
from ledger.rows import ROWS, Row, chosen
from ledger.sample import Sample

from heatproof.errors import HeatproofError


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows, recipes or papers")
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims"))
    parser.add_argument("--photos", type=Path, help="a folder with a sub-folder per ImageNet class")
    parser.add_argument("--masks", type=Path, help="a folder of masks named like the photos")
    parser.add_argument("--workers", default="auto")
    parser.add_argument("--read", action="store_true", help="run nothing, judge the runs that are there")
    parser.add_argument("--check", action="store_true", help="compare with what is stored, write nothing")
    parser.add_argument("--list", action="store_true", help="name rows and recipes")
    return parser.parse_args()


def recipes_of(rows: list[Row], scale: Scale, folders: Folders) -> list[Recipe]:
    """The recipes of these rows that can be run here; says why others cannot."""
    found = []
    for recipe in dict.fromkeys(row.recipe for row in rows):
        lacking = [name for name in recipe.needs if getattr(folders, name) is None]
        if scale not in recipe.words:
            print(f"{recipe.name}: has no {scale} form, left as it was")
        elif lacking:
            print(f"{recipe.name}: needs --{' and --'.join(lacking)}, left as it was")
        else:
            found.append(recipe)
    return found


def measure(rows: list[Row], scale: Scale, runs: Path, store: Store, check: bool) -> bool:
    """Judge every row of which there is a run; whether none left its interval."""
    same = True
    samples: dict[str, Sample] = {}
    for row in rows:
        place = row.recipe.place(runs, scale)
        if not row.judged_at(scale) or not (place / "info.json").exists():
            continue
        if row.recipe.name not in samples:
            samples[row.recipe.name] = Sample.load(place)
        finding = row.judge(samples[row.recipe.name])
        before = store.get(row.name, scale)
        moved = drifted(before.finding, finding) if before else []
        for sentence in moved:
            print(f"{row.name}: {sentence}")
        same &= not moved
        if not check:
            store.put(row, scale, finding)
            print(f"{row.name}: {finding.verdict}")
    return same


def main() -> int:
    given = arguments()
    if given.list:
        print("\n".join(f"{row.name}  ({row.recipe.name})  {row.claim}" for row in ROWS.values()))
        return 0
    try:
        rows = chosen(given.only)
    except HeatproofError as error:
        print(error, file=sys.stderr)
        return 2
    folders, store = Folders(given.photos, given.masks), Store()
    if not given.read:
        for recipe in recipes_of(rows, given.scale, folders):
            status = recipe.run(given.runs, given.scale, folders, given.workers)
            print(f"{recipe.name}: exit status {status}", flush=True)
    same = measure(rows, given.scale, given.runs, store, given.check)
    if given.check:
        return 0 if same else 1
    store.write(list(ROWS))
    PAGE.write_text(page(store))
    return 0


if __name__ == "__main__":
    sys.exit(main())

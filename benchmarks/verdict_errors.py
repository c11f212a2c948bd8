"""Error rates of the verdict, measured: identical methods are judged by the functions the report uses.

    python benchmarks/verdict_errors.py                      # all cells; finished ones are kept, so it can be stopped
    python benchmarks/verdict_errors.py --cells 'n=60 .*M=1' # those whose name matches
    python benchmarks/verdict_errors.py --write              # the tables of docs/statistics.md from what is there

Scores are z = picture + group effects + noise per method, as they are (normal), exponentiated (lognormal) or cut at a
threshold (hit or miss). A replicate is wrong if any pair on the page is reported to "beat" the other. Limits are
Clopper–Pearson's (95 %).
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from heatproof.stats.decisions import look
from heatproof.stats.groups import Groups
from heatproof.stats.looks import look_steps
from heatproof.stats.mean_interval import mean_intervals
from heatproof.stats.page import HOLDS, Card, page_tests
from heatproof.stats.sequential import empirical_bernstein, mixture_scale, t_mixture
from heatproof.stats.significance import compare_pairs

METHODS = 8
LEVELS = 10
PICTURE = 0.7  # of a standard deviation: what all methods find hard in a picture
RESAMPLES = 399
CACHE = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[1] / "docs" / "statistics.md"
Found = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    situation: str  # independent, fixed, beyond, sampled (10 groups), sampled40
    shape: str  # normal, lognormal, hits
    n: int
    cards: int = 1
    unequal: bool = False
    shift: bool = False  # method 0 is better: power instead of errors

    @property
    def name(self) -> str:
        spread = "unequal" if self.unequal else "equal"
        kind = "power" if self.shift else "errors"
        return f"{kind} {self.situation} {self.shape} {spread} n={self.n} M={self.cards}"


def scores(cell: Cell, rng: np.random.Generator) -> tuple[list[pd.DataFrame], Groups | None]:
    """One study: a table (pictures × methods) per card, and the groups of the pictures."""
    labels = _labels(cell, rng)
    tables = [pd.DataFrame(_card(cell, labels, rng)) for _ in range(cell.cards)]
    kind = "sampled" if cell.situation.startswith("sampled") else "fixed"
    frame = pd.DataFrame(labels)
    return tables, Groups(frame, dict.fromkeys(labels, kind)) if labels else None  # type: ignore[arg-type]


def _labels(cell: Cell, rng: np.random.Generator) -> dict[str, np.ndarray]:
    if cell.situation == "independent":
        return {}
    if cell.situation == "fixed":
        groups = 4 if cell.n < 6 * LEVELS else LEVELS
        return {"class": np.arange(cell.n) % groups}
    if cell.situation.startswith("sampled"):
        return {"patient": rng.integers(0, _levels(cell), cell.n)}
    return {name: rng.integers(0, LEVELS, cell.n) for name in ("scene", "object")}


def _levels(cell: Cell) -> int:
    return 40 if cell.situation == "sampled40" else LEVELS


def _card(cell: Cell, labels: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    shares = {"class": 0.5, "patient": 0.5, "scene": 0.5, "object": 0.1}
    spread = np.linspace(0.5, 1.5, METHODS) if cell.unequal else np.ones(METHODS)
    effect = np.zeros((cell.n, METHODS))
    for name, group in labels.items():
        levels = rng.normal(size=(_levels(cell), METHODS))
        if name == "class":  # every method has the same means of groups, dealt to the groups in another order
            own = rng.normal(size=int(group.max()) + 1)
            levels = np.stack([rng.permutation(own) for _ in range(METHODS)], axis=1)
            if cell.shape == "normal":
                levels = levels - levels.mean(axis=0)
        effect += np.sqrt(shares[name]) * levels[group]
    noise = np.sqrt(1 - sum(shares[name] for name in labels))
    within = noise * rng.normal(size=(cell.n, METHODS)) + PICTURE * rng.normal(size=(cell.n, 1))
    z = effect + within
    if cell.shift:
        z[:, 0] += 1.5 if cell.situation in ("sampled", "sampled40", "beyond") else 4.6 / np.sqrt(cell.n)
    if cell.shape == "hits":
        return (z > 0.5 * np.sqrt(1 + PICTURE**2)).astype(np.float64)
    if cell.shape == "normal":
        return z * spread
    size = 0.7 * spread
    if cell.situation == "fixed":  # of these groups, all methods have the same mean
        return np.exp(size * z - size**2 * (noise**2 + PICTURE**2) / 2) / np.exp(size * effect).mean(axis=0)
    return np.exp(size * z - size**2 * (1 + PICTURE**2) / 2)


def study(cell: Cell, seed: int, reps: int) -> Found:
    """How many of the replicates have a wrong "beats"; with a shift, the share of true ones that is found."""
    wrong, power, signed = 0, [], []
    for rep in range(reps):
        rng = np.random.default_rng([seed, rep])
        tables, groups = scores(cell, rng)
        cards = {at: Card(table) for at, table in enumerate(tables)}
        page = page_tests(cards, {} if groups is None else {"": groups}, resamples=RESAMPLES, seed=rep)
        solid = pd.concat([_solid(cell, tests.frame) for tests in page.tests.values()], ignore_index=True)
        if cell.shift:
            power.append(solid["solid"][solid["method_a"] == "0"].mean())
            old = compare_pairs(tables[0], resamples=1).frame
            signed.append((old["significant"] & (old["winner"] == "0"))[old["method_a"] == "0"].mean())
        else:
            wrong += bool(solid["solid"].any())
    if cell.shift:
        return {"reps": reps, "power": float(np.mean(power)), "signed_ranks": float(np.mean(signed))}
    return {"reps": reps, "wrong": wrong}


def _solid(cell: Cell, frame: pd.DataFrame) -> pd.DataFrame:
    solid = frame["beyond"] == HOLDS if cell.situation == "beyond" else frame["significant"]
    if cell.shift:
        solid &= frame["winner"] == "0"
    return frame.assign(solid=solid)


def coverage(shape: str, n: int, what: str, reps: int, seed: int = 0) -> Found:
    """How often the 95 % interval of a mean, of one method or of a paired difference, holds it."""
    rng = np.random.default_rng([seed, n])
    draw: dict[str, Callable[[], np.ndarray]] = {
        "normal": lambda: rng.normal(size=n),
        "beta(½, 3)": lambda: rng.beta(0.5, 3, size=n),
        "lognormal": lambda: np.exp(0.7 * rng.normal(size=n) * np.sqrt(1 + PICTURE**2)),
        "hits": lambda: (rng.random(n) < 0.3).astype(np.float64),
    }
    true = {"normal": 0, "beta(½, 3)": 1 / 7, "lognormal": np.exp(0.49 * (1 + PICTURE**2) / 2), "hits": 0.3}[shape]
    if what == "difference":
        true = 0.0
    held = flagged = 0
    for rep in range(reps):
        values = draw[shape]() - (draw[shape]() if what == "difference" else 0.0)
        found = mean_intervals(pd.DataFrame({"a": values}), resamples=799, seed=rep, share=False).iloc[0]
        held += bool(found["low"] <= true <= found["high"])
        flagged += bool(found["skewed"])
    return {"reps": reps, "held": held, "flagged": flagged}


STOPPING = {
    "looks": "looks, tests of the page",
    "t-mixture": "t-mixture, means of 20 pictures",
    "bernstein": "empirical Bernstein",
}


def sequence(cell: Cell, kind: str, reps: int, gap: float = 0.0, shard: int = 20) -> Found:
    """How many runs have a wrong "beats" at any look, however many; with a gap, pictures until the best one is clear.

    The gap is in standard deviations of a paired difference and sets method 0 above the others.
    """
    wrong, pictures = 0, []
    for rep in range(reps):
        (table,), groups = scores(cell, np.random.default_rng([17, rep]))
        values = table.to_numpy(copy=True)
        values[:, 0] += gap * np.std(values[:, 1:] - values[:, :1])
        frame = pd.DataFrame(values, index=table.index)
        when = _looks(frame, groups, rep, not gap) if kind == "looks" else _sequence(values, kind)
        wrong += bool(np.isfinite(when).any())
        pictures.append(np.minimum(when[: METHODS - 1], cell.n).mean())
    return {"reps": reps, "pictures": float(np.mean(pictures))} if gap else {"reps": reps, "wrong": wrong}


def _looks(table: pd.DataFrame, groups: Groups | None, seed: int, once: bool) -> np.ndarray:
    """Pictures after which each pair is separated; `once`: the first separation is enough."""
    when = np.full(METHODS * (METHODS - 1) // 2, np.inf)
    known = {} if groups is None else {"": groups}
    for number, step in enumerate(look_steps(len(table) // 20), 1):
        page = look({0: Card(table.iloc[: 20 * step])}, known, number, alpha=0.05, seed=seed)
        solid = page.tests[0].frame["significant"].to_numpy()
        when = np.where(solid & np.isinf(when), 20 * step, when)
        if once and solid.any():
            break
    return when


def _sequence(values: np.ndarray, kind: str) -> np.ndarray:
    a, b = np.triu_indices(METHODS, 1)
    level = 0.05 / len(a)
    differences = values[:, a] - values[:, b]
    if kind == "bernstein":
        centre, half = empirical_bernstein(differences, level, -1, 1)
    else:
        units = differences.reshape(len(values) // 20, 20, -1).mean(axis=1)
        centre, half = t_mixture(units, level, mixture_scale(30, level))
    clear = np.abs(centre) > half
    return np.where(clear.any(axis=0), (clear.argmax(axis=0) + 1) * (1 if kind == "bernstein" else 20), np.inf)


Measured = tuple[str, Callable[[int], Found], int]  # name, what to run, replicates


def cells() -> Iterator[Measured]:
    """Everything that is measured."""
    yield from _error_cells()
    yield from _power_cells()
    yield from _coverage_cells()
    yield from _sequence_cells()


def _error_cells() -> Iterator[Measured]:
    for n in (16, 60, 200, 1000):
        for cards in (1, 12):
            for situation in ("independent", "fixed", "beyond", "sampled", "sampled40"):
                if situation == "sampled40" and n == 16:
                    continue
                for shape, unequal in (("normal", False), ("lognormal", False), ("hits", False), ("lognormal", True)):
                    cell = Cell(situation, shape, n, cards, unequal)
                    reps = 2000 if cards == 1 else 1000 if n < 1000 else 400
                    yield cell.name, lambda reps, cell=cell: study(cell, 1, reps), reps


def _power_cells() -> Iterator[Measured]:
    for n in (16, 60, 200):
        for situation in ("independent", "fixed", "beyond", "sampled", "sampled40"):
            for shape in ("normal", "lognormal", "hits"):
                cell = Cell(situation, shape, n, shift=True)
                if situation == "sampled40" and n == 16:
                    continue
                yield cell.name, lambda reps, cell=cell: study(cell, 2, reps), 500


def _coverage_cells() -> Iterator[Measured]:
    for what in ("mean", "difference"):
        for shape in ("normal", "beta(½, 3)", "lognormal", "hits"):
            for n in (16, 60, 200):
                name = f"coverage {what} {shape} n={n}"
                yield name, lambda reps, one=(shape, n, what): coverage(*one, reps), 2000


def _sequence_cells() -> Iterator[Measured]:
    for kind in STOPPING:
        for situation in ("independent", "fixed", "sampled", "sampled40"):
            for shape, unequal in (("normal", False), ("lognormal", False), ("hits", False), ("lognormal", True)):
                if kind != "looks" and (situation != "independent" or (kind == "bernstein" and shape != "hits")):
                    continue
                spread = "unequal" if unequal else "equal"
                cell = Cell(situation, shape, 1000, unequal=unequal)
                name = f"sequence {kind} errors {situation} {shape} {spread}"
                yield name, lambda reps, one=(cell, kind): sequence(*one, reps), 400
                if situation == "independent" and kind != "bernstein" and shape != "hits":
                    for gap in (0.3, 0.6, 1.0):
                        name = f"sequence {kind} pictures {shape} {spread} gap={gap}"
                        yield name, lambda reps, one=(cell, kind), gap=gap: sequence(*one, reps, gap), 60


def limits(wrong: int, reps: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % limits of a share."""
    low = float(stats.beta.ppf(0.025, wrong, reps - wrong + 1)) if wrong else 0.0
    high = float(stats.beta.ppf(0.975, wrong + 1, reps - wrong)) if wrong < reps else 1.0
    return low, high


def tables(found: dict[str, Found]) -> str:
    """Everything measured, as Markdown."""
    return "\n\n".join(part for part in (_errors(found), _power(found), _coverage(found), _sequences(found)) if part)


WORDS = {
    "independent": "no groups",
    "fixed": "fixed groups, these groups",
    "beyond": "fixed groups (10 × 10 crossed), groups not seen",
    "sampled": "sampled groups (10)",
    "sampled40": "sampled groups (40)",
}


def _errors(found: dict[str, Found]) -> str:
    rows = []
    for cards in (1, 12):
        for situation, words in WORDS.items():
            for shape, spread in (
                ("normal", "equal"),
                ("lognormal", "equal"),
                ("hits", "equal"),
                ("lognormal", "unequal"),
            ):
                name = f"errors {situation} {shape} {spread} n={{}} M={cards}"
                measured = [found.get(name.format(n)) for n in (16, 60, 200, 1000)]
                if any(measured):
                    message = shape + (", unequal spread" if spread == "unequal" else "")
                    rows.append(f"| {words} | {cards} | {message} | {' | '.join(map(_share, measured))} |")
    head = "| for whom | metrics | scores | n = 16 | n = 60 | n = 200 | n = 1,000 |\n|---|---|---|---|---|---|---|\n"
    return (
        "**A wrong “beats” anywhere on the page**, % of null studies [95 % limits] (replicates), eight methods; "
        f"bold: the upper limit is above 7 %\n\n{head}" + "\n".join(rows)
        if rows
        else ""
    )


def _share(found: Found | None) -> str:
    if found is None:
        return "–"
    low, high = limits(found["wrong"], found["reps"])
    message = f"{100 * found['wrong'] / found['reps']:.1f} [{100 * low:.1f}, {100 * high:.1f}] ({found['reps']})"
    return f"**{message}**" if high > 0.07 else message


def _replicates(found: dict[str, Found], kind: str) -> str:
    counts = sorted({one["reps"] for name, one in found.items() if name.startswith(kind)})
    return f"{' to '.join(f'{count:,}' for count in dict.fromkeys((counts[0], counts[-1])))} replicates"


def _power(found: dict[str, Found]) -> str:
    rows = []
    for situation, words in WORDS.items():
        for shape in ("normal", "lognormal", "hits"):
            measured = [found.get(f"power {situation} {shape} equal n={n} M=1") for n in (16, 60, 200)]
            if any(measured):
                message = [
                    "–" if one is None else f"{100 * one['power']:.1f} ({100 * one['signed_ranks']:.1f})"
                    for one in measured
                ]
                rows.append(f"| {words} | {shape} | {' | '.join(message)} |")
    head = "| for whom | scores | n = 16 | n = 60 | n = 200 |\n|---|---|---|---|---|\n"
    return (
        "**Power**: share of the seven true pairs that are found, %, and in brackets by Wilcoxon’s signed ranks with "
        f"Holm’s adjustment, which takes all pictures for independent ({_replicates(found, 'power')})\n\n{head}"
        + "\n".join(rows)
        if rows
        else ""
    )


def _coverage(found: dict[str, Found]) -> str:
    rows = []
    for what in ("mean", "difference"):
        for shape in ("normal", "beta(½, 3)", "lognormal", "hits"):
            measured = [found.get(f"coverage {what} {shape} n={n}") for n in (16, 60, 200)]
            if any(measured):
                message = [
                    "–"
                    if one is None
                    else f"{100 * one['held'] / one['reps']:.1f} ({100 * one['flagged'] / one['reps']:.0f})"
                    for one in measured
                ]
                rows.append(f"| {what} | {shape} | {' | '.join(message)} |")
    head = "| interval of | scores | n = 16 | n = 60 | n = 200 |\n|---|---|---|---|---|\n"
    return (
        "**Coverage** of 95 % intervals, %, and in brackets how many of them carry the warning that the scores are "
        f"skewed, % ({_replicates(found, 'coverage')})\n\n{head}" + "\n".join(rows)
        if rows
        else ""
    )


def _sequences(found: dict[str, Found]) -> str:
    shapes = (("normal", "equal"), ("lognormal", "equal"), ("hits", "equal"), ("lognormal", "unequal"))
    rows = []
    for kind, words in STOPPING.items():
        for situation in ("independent", "fixed", "sampled", "sampled40"):
            measured = [found.get(f"sequence {kind} errors {situation} {shape} {spread}") for shape, spread in shapes]
            if any(measured):
                rows.append(f"| {words} | {WORDS[situation]} | {' | '.join(map(_share, measured))} |")
    head = "| rule | for whom | normal | lognormal | hits | lognormal, unequal spread |\n|---|---|---|---|---|---|\n"
    errors = (
        "**Stopping**: any wrong “beats” at any look, % of runs [95 % limits] (replicates), eight identical methods, "
        f"looks until 1,000 pictures\n\n{head}" + "\n".join(rows)
        if rows
        else ""
    )
    return "\n\n".join(part for part in (errors, _needed(found)) if part)


def _needed(found: dict[str, Found]) -> str:
    """Pictures until the best method is clear of another one."""
    rows = []
    for kind, words in STOPPING.items():
        for shape, spread in (("normal", "equal"), ("lognormal", "equal"), ("lognormal", "unequal")):
            measured = [found.get(f"sequence {kind} pictures {shape} {spread} gap={gap}") for gap in (0.3, 0.6, 1.0)]
            if any(measured):
                cells = " | ".join("–" if one is None else f"{one['pictures']:.0f}" for one in measured)
                rows.append(f"| {words} | {shape}{', unequal spread' if spread == 'unequal' else ''} | {cells} |")
    head = "| rule | scores | d = 0.3 | d = 0.6 | d = 1 |\n|---|---|---|---|---|\n"
    return (
        "**Pictures** until the best of eight methods is separated from another one, on average (1,000 where not); "
        "d: its lead in standard deviations of the paired differences\n\n" + head + "\n".join(rows)
        if rows
        else ""
    )


BEGIN, END = "<!-- measured by benchmarks/verdict_errors.py -->", "<!-- end of what was measured -->"


def written(page: str, found: dict[str, Found]) -> str:
    """The page with its tables replaced."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{tables(found)}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="", help="a regular expression: only cells whose name holds it")
    parser.add_argument("--reps", type=float, default=1.0, help="so many times the usual replicates")
    parser.add_argument("--again", action="store_true", help="measure cells again that are there")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--write", action="store_true", help="only write the tables into docs/statistics.md")
    chosen = parser.parse_args()
    found: dict[str, Found] = json.loads(chosen.cache.read_text()) if chosen.cache.exists() else {}
    if chosen.write:
        PAGE.write_text(written(PAGE.read_text(), found))
        return
    for name, run, reps in cells():
        if not re.search(chosen.cells, name) or (name in found and not chosen.again):
            continue
        start = time.perf_counter()
        one = run(max(1, round(reps * chosen.reps)))
        found[name] = one
        chosen.cache.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n")
        print(name, one, f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()

"""The verdict of the pairwise tests in plain sentences, for the top of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from heatproof.stats.bootstrap_t import FEWEST
from heatproof.stats.cluster_robust import FEWEST_CLUSTERS
from heatproof.stats.page import (
    CONSTANT,
    CROSSED,
    FEW,
    FEW_GROUPS,
    HOLDS,
    IDENTICAL,
    NOT_SHOWN,
    Basis,
    PairTests,
    compare_means,
    plural,
)
from heatproof.stats.ranks import check_table, complete

PAIRS = 6  # equivalent pairs that are named; the others are counted


@dataclass(frozen=True)
class _Outcome:
    """The tests as look-ups: who beats whom, and at which adjusted p."""

    winners: dict[frozenset[str], str]  # pairs that differ only
    p: dict[frozenset[str], float]
    effect: dict[frozenset[str], float]  # sizes, in standard deviations of the paired differences
    same: frozenset[frozenset[str]]  # pairs with equal scores on every image
    near: frozenset[frozenset[str]]  # pairs that were shown to differ by less than the margin
    margin: float

    def beats(self, a: str, b: str) -> bool:
        return self.winners.get(frozenset((a, b))) == a

    def p_words(self, pairs: Sequence[tuple[str, str]]) -> str:
        """`p = 0.003, effect 0.7`, or of several the largest p and the least effect: `p ≤ 0.003, effects ≥ 0.7`."""
        worst = max(self.p[frozenset(pair)] for pair in pairs)
        least = min(self.effect[frozenset(pair)] for pair in pairs)
        p = "p < 0.001" if worst < 0.001 else f"p {'=' if len(pairs) == 1 else '≤'} {_number(worst)}"
        return f"{p}, effect{'' if len(pairs) == 1 else 's ≥'} {least:.2g}"

    def alike(self, tier: Sequence[str]) -> str:
        """What holds of methods no two of which are separated."""
        pairs = {frozenset(pair) for pair in combinations(tier, 2)}
        if pairs <= self.same:
            return "score the same on every image"
        return f"differ by less than {self.margin:g}" if pairs <= self.near else "are not separated"

    def separated(self, a: str, b: str) -> bool:
        return frozenset((a, b)) in self.winners


def verdict(
    table: pd.DataFrame, higher_is_better: bool = True, alpha: float = 0.05, tests: PairTests | None = None
) -> list[str]:
    """Sentences: which methods beat which, which are not separated, for which pictures, and what n is too small for.

    `table` is (images × methods); methods are named in the order of their mean over the common images. Without `tests`,
    those of a page, the table is judged by itself.
    """
    table = check_table(table)
    part = complete(table)
    means = part.table.mean()
    order = [str(m) for m in means.sort_values(ascending=not higher_is_better, kind="stable").index]
    few = {name: int(table[name].notna().sum()) for name in part.sparse_methods}
    notes = _left_out(part.unscored_methods, few, part.dropped_images, len(table))
    if len(order) < 2:
        return [f"{order[0]} is the only method with scores: there is nothing to compare it with.", *notes]
    if tests is None:
        scores = table.drop(columns=list(part.unscored_methods))
        tests = compare_means(scores, higher_is_better=higher_is_better, alpha=alpha)
    rows = tests.among(order)
    outcome = _outcome(rows, tests.margin)
    n = int(rows["n"].max())
    if len(outcome.same) == len(rows):
        return [f"{_list(order)} score the same on every image.", *notes]
    if (rows["reason"] != "").all():
        return [_no_test(rows, tests.basis, n, len(order)), _by_mean(order), *notes]
    equivalent = _equivalent(rows, tests.margin, [] if not outcome.winners else _alike_tiers(order, outcome))
    if not outcome.winners:
        return [_nothing_separated(order, rows, n), *equivalent, _by_mean(order), *notes]
    return [
        *_tiers(order, outcome),
        *_upside_down(order, outcome),
        *_constant(rows),
        *equivalent,
        *_beyond(rows, tests.basis),
        *_worth(rows, tests.basis, n),
        *notes,
    ]


def reach(tests: PairTests) -> str:
    """For whom the verdict speaks, as a sentence; empty where it is any new pictures like these."""
    basis, solid = tests.basis, tests.frame.loc[tests.frame["significant"], "beyond"]
    if not (basis.fixed or basis.sampled):
        return ""
    text = f"They speak for {basis.words()}"
    if basis.fixed and len(solid) and not solid.isin((HOLDS, NOT_SHOWN)).any():
        why = "three kinds of groups cross" if (solid == CROSSED).any() else f"{FEWEST_CLUSTERS} are needed"
        text += f"; whether they hold beyond these {_counted(basis)} is not tested: {why}"
    return f"{text}."


def _outcome(rows: pd.DataFrame, margin: float) -> _Outcome:
    pairs = [frozenset(pair) for pair in zip(rows["method_a"], rows["method_b"], strict=True)]
    winners = {
        pair: winner for pair, winner, solid in zip(pairs, rows["winner"], rows["significant"], strict=True) if solid
    }
    same = frozenset(pair for pair, reason in zip(pairs, rows["reason"], strict=True) if reason == IDENTICAL)
    shown = rows["outcome"] == "equivalent" if "outcome" in rows else [False] * len(pairs)
    near = frozenset(pair for pair, alike in zip(pairs, shown, strict=True) if alike)
    p, effect = (dict(zip(pairs, values, strict=True)) for values in (rows["p_adjusted"], rows["effect"].abs()))
    return _Outcome(winners, p, effect, same, near, margin)


def _grouped(order: list[str], outcome: _Outcome) -> list[list[str]]:
    """Runs of methods no two of which are separated."""
    tiers: list[list[str]] = []
    for method in order:
        if tiers and not any(outcome.separated(method, other) for other in tiers[-1]):
            tiers[-1].append(method)
        else:
            tiers.append([method])
    return tiers


def _alike_tiers(order: list[str], outcome: _Outcome) -> list[list[str]]:
    """Those whose methods were all shown to differ by less than the margin."""
    pairs = [(tier, {frozenset(pair) for pair in combinations(tier, 2)}) for tier in _grouped(order, outcome)]
    return [tier for tier, inside in pairs if inside and inside <= outcome.near]


def _tiers(order: list[str], outcome: _Outcome) -> list[str]:
    """What the methods of each run beat."""
    tiers = _grouped(order, outcome)
    sentences = []
    for at, tier in enumerate(tiers):
        below = [method for later in tiers[at + 1 :] for method in later]
        beaten = [method for method in below if all(outcome.beats(one, method) for one in tier)]
        sentences += _tier(tier, beaten, everything=at == 0 and beaten == below and len(below) > 1, outcome=outcome)
        sentences += _single_wins(tier, below, beaten, outcome)
        sentences += _open_pairs(tier, below, outcome)
    return sentences


def _tier(tier: list[str], beaten: list[str], everything: bool, outcome: _Outcome) -> list[str]:
    """That the methods of a tier are not separated, and what all of them beat."""
    subject, parts = _list(tier), []
    if len(tier) > 1:
        parts.append(f"{subject} {outcome.alike(tier)}")
    if beaten:
        p = outcome.p_words([(one, method) for one in tier for method in beaten])
        who = f"{subject} beats" if len(tier) == 1 else "both beat" if len(tier) == 2 else "all of them beat"
        parts.append(f"{who} {'everything else' if everything else _list(beaten)} ({p})")
    return ["; ".join(parts) + "."] if parts else []


def _single_wins(tier: list[str], below: list[str], beaten: list[str], outcome: _Outcome) -> list[str]:
    """What single methods of a tier beat besides."""
    also = {one: [m for m in below if m not in beaten and outcome.beats(one, m)] for one in tier}
    return [
        f"{one} also beats {_list(methods)} ({outcome.p_words([(one, m) for m in methods])})."
        for one, methods in also.items()
        if methods
    ]


def _open_pairs(tier: list[str], below: list[str], outcome: _Outcome) -> list[str]:
    """Methods of later tiers that single methods are not separated from."""
    level = {one: [m for m in below if not outcome.separated(one, m)] for one in tier}
    return [f"Nothing here separates {one} from {_list(methods, 'or')}." for one, methods in level.items() if methods]


def _upside_down(order: list[str], outcome: _Outcome) -> list[str]:
    """Pairs whose order reverses when images that only these two methods share are included."""
    return [
        f"{a} has the better mean on the images that all methods have, yet {b} beats it on those that both have "
        f"({outcome.p_words([(a, b)])})."
        for i, a in enumerate(order)
        for b in order[i + 1 :]
        if outcome.beats(b, a)
    ]


def _constant(rows: pd.DataFrame) -> list[str]:
    pairs = rows[rows["reason"] == CONSTANT]
    return [
        f"{a} and {b} differ by the same amount on every image: there is no variance to test that by."
        for a, b in zip(pairs["method_a"], pairs["method_b"], strict=True)
    ]


def _equivalent(rows: pd.DataFrame, margin: float, tiers: Sequence[Sequence[str]]) -> list[str]:
    """The pairs that were shown to differ by less than the margin, in a run that stopped when it was solid.

    Those of `tiers` are left out: another sentence says that they are alike.
    """
    if "outcome" not in rows:
        return []
    found = rows[rows["outcome"] == "equivalent"]
    named = zip(found["method_a"], found["method_b"], strict=True)
    pairs = [f"{a} and {b}" for a, b in named if not any({a, b} <= set(tier) for tier in tiers)]
    if not pairs:
        return []
    shown = pairs if len(pairs) <= PAIRS else [*pairs[: PAIRS - 1], f"{len(pairs) - PAIRS + 1} further pairs"]
    return [f"Shown to differ by less than {margin:g}: {'; '.join(shown)}."]


def _worth(rows: pd.DataFrame, basis: Basis, n: int) -> list[str]:
    """How many independent images those of sampled groups are worth: the median over the pairs with a test."""
    tested = rows.loc[rows["reason"] == "", "n_effective"]
    if not basis.sampled or tested.empty:
        return []
    return [f"These {_images(n)} are worth about {tested.median():.0f} independent ones."]


def _beyond(rows: pd.DataFrame, basis: Basis) -> list[str]:
    """The second mark: what also holds for groups that were not seen; empty where that is not tested."""
    solid = rows[rows["significant"]]
    if not basis.fixed or not solid["beyond"].isin((HOLDS, NOT_SHOWN)).any():
        return []
    held = int((solid["beyond"] == HOLDS).sum())
    if held == len(solid):
        return [f"All of it would also hold beyond these {_counted(basis)}."]
    if not held:
        return [f"Solid here, not shown beyond these {_counted(basis)}."]
    return [f"Of these {len(solid)} differences {held} would also hold beyond these {_counted(basis)}."]


def _counted(basis: Basis) -> str:
    """The fixed groups with their numbers: `10 scenes and 10 objects`."""
    return _list([f"{basis.sizes.get(name, 0)} {plural(name)}" for name in basis.fixed])


def _no_test(rows: pd.DataFrame, basis: Basis, n: int, methods: int) -> str:
    what = "the two methods cannot be separated" if methods == 2 else "no two methods can be separated"
    reasons = set(rows["reason"]) - {IDENTICAL}
    if FEW_GROUPS in reasons:
        names = _list([f"{basis.sizes.get(name, 0)} {plural(name)}" for name in basis.sampled])
        return f"With {names} {what}: at least {FEWEST_CLUSTERS} are needed, none with more than half of the images."
    if CROSSED in reasons:
        return f"On images that fall into {len(basis.sampled)} crossed kinds of groups {what}: nothing here tests that."
    if FEW in reasons:
        if n < FEWEST:
            return f"With {_images(n)} {what}: at least {FEWEST} are needed."
        return f"On these {_images(n)} {what}: they differ on fewer than {FEWEST} of them."
    return f"On these {_images(n)} {what}: they differ by the same amount on every image, without any variance."


def _nothing_separated(order: list[str], rows: pd.DataFrame, n: int) -> str:
    lead = (
        f"Nothing here separates {order[0]} from {order[1]}"
        if len(order) == 2
        else f"Nothing here separates any two of the {len(order)} methods"
    )
    least = float(rows.loc[rows["reason"] == "", "p_adjusted"].min())
    return f"{lead} ({_images(n)}, smallest adjusted p = {_number(least)})."


def _by_mean(order: list[str]) -> str:
    return f"By mean alone the order is {', '.join(order)}, best first; take it as a hint."


def _left_out(unscored: tuple[str, ...], few: dict[str, int], dropped: int, n: int) -> list[str]:
    notes = []
    for method, scored in few.items():
        notes.append(f"{method} has scores on {scored} of {_images(n)} only and is not ranked with the others.")
    if unscored:
        verb = "has no scores and is" if len(unscored) == 1 else "have no scores and are"
        notes.append(f"{_list(list(unscored))} {verb} not compared.")
    if dropped:
        verb = "lacks" if dropped == 1 else "lack"
        notes.append(f"{dropped} of {_images(n)} {verb} a score from some method: each pair uses the images it has.")
    return notes


def _list(names: list[str], last: str = "and") -> str:
    if len(names) < 3:
        return f" {last} ".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def _images(n: int) -> str:
    return f"{n} image" if n == 1 else f"{n} images"


def _number(p: float) -> str:
    """Three significant digits, so that 0.125 stays 0.125; more where they would reach a limit p stays below."""
    if p < 1e-4:
        return f"{p:.0e}"
    digits = next((d for d in range(3, 17) if (float(f"{p:.{d}g}") < 0.05) == (p < 0.05)), 17)
    return f"{p:.{digits}g}"

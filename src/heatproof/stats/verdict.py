"""What the pairwise tests say, in plain words, for the top of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from heatproof.stats.ranks import check_table, complete
from heatproof.stats.significance import compare_pairs, smallest_p


@dataclass(frozen=True)
class _Outcome:
    """The tests as look-ups: who beats whom, and at which adjusted p."""

    winners: dict[frozenset[str], str]  # significant pairs only
    p: dict[frozenset[str], float]
    same: frozenset[frozenset[str]]  # pairs with equal scores on every image

    def beats(self, a: str, b: str) -> bool:
        return self.winners.get(frozenset((a, b))) == a

    def said_p(self, pairs: Sequence[tuple[str, str]]) -> str:
        """`Holm p = 0.003`, or the largest of several as `Holm p ≤ 0.003`."""
        name = "Holm p" if len(self.p) > 1 else "p"
        worst = max(self.p[frozenset(pair)] for pair in pairs)
        if worst < 0.001:
            return f"{name} < 0.001"
        return f"{name} {'=' if len(pairs) == 1 else '≤'} {_number(worst)}"

    def separated(self, a: str, b: str) -> bool:
        return frozenset((a, b)) in self.winners


def verdict(table: pd.DataFrame, higher_is_better: bool = True, alpha: float = 0.05) -> list[str]:
    """Sentences: which methods beat which (Wilcoxon, Holm-adjusted), which are not separated, what n cannot tell.

    `table` is (images x methods); methods are named in the order of their mean over the common images.
    """
    table = check_table(table)
    part = complete(table)
    scores = table.drop(columns=list(part.unscored_methods))
    means = part.table.mean()
    order = [str(m) for m in means.sort_values(ascending=not higher_is_better, kind="stable").index]
    few = {name: int(table[name].notna().sum()) for name in part.sparse_methods}
    said = _left_out(part.unscored_methods, few, part.dropped_images, len(table))
    if len(order) < 2:
        return [f"{order[0]} is the only method with scores: there is nothing to compare it with.", *said]
    tests = compare_pairs(scores, higher_is_better=higher_is_better, alpha=alpha, resamples=1)
    frame = tests.frame
    rows = frame[frame["method_a"].isin(order) & frame["method_b"].isin(order)].to_dict("records")
    outcome = _Outcome(
        {frozenset((r["method_a"], r["method_b"])): r["winner"] for r in rows if r["significant"]},
        {frozenset((r["method_a"], r["method_b"])): r["p_holm"] for r in frame.to_dict("records")},
        frozenset(frozenset((r["method_a"], r["method_b"])) for r in rows if r["n_zero"] == r["n"] > 0),
    )
    if len(outcome.same) == len(rows):
        return [_by_mean(order, outcome), *said]
    best_possible = min(r["smallest_p"] for r in rows) * len(frame)
    n = max(int(r["n"]) for r in rows)
    if best_possible >= alpha and not outcome.winners:
        return [
            _too_few(n, [r["smallest_p"] for r in frame.to_dict("records")], len(order), alpha),
            _by_mean(order, outcome),
            *said,
        ]
    if not outcome.winners:
        lead = (
            f"Nothing here separates {order[0]} from {order[1]}"
            if len(order) == 2
            else f"Nothing here separates any two of the {len(order)} methods"
        )
        least = min(r["p_holm"] for r in rows)
        smallest = "p" if len(frame) == 1 else "smallest Holm p"
        return [f"{lead} ({_images(n)}, {smallest} = {_number(least)}).", _by_mean(order, outcome), *said]
    closing = _closing(len(frame), len(outcome.winners) == len(rows), n)
    return [*_tiers(order, outcome), *_upside_down(order, outcome), closing, *said]


def _tiers(order: list[str], outcome: _Outcome) -> list[str]:
    """Runs of methods no two of which are separated, each with what it beats."""
    tiers: list[list[str]] = []
    for method in order:
        if tiers and not any(outcome.separated(method, other) for other in tiers[-1]):
            tiers[-1].append(method)
        else:
            tiers.append([method])
    said = []
    for i, tier in enumerate(tiers):
        below = [m for later in tiers[i + 1 :] for m in later]
        beaten = [m for m in below if all(outcome.beats(t, m) for t in tier)]
        subject = _list(tier)
        parts = []
        if len(tier) > 1:
            equal = all(frozenset(pair) in outcome.same for pair in combinations(tier, 2))
            parts.append(f"{subject} score the same on every image" if equal else f"{subject} are not separated")
        if beaten:
            p = outcome.said_p([(t, m) for t in tier for m in beaten])
            whom = "everything else" if i == 0 and beaten == below and len(below) > 1 else _list(beaten)
            if len(tier) == 1:
                parts.append(f"{subject} beats {whom} ({p})")
            else:
                parts.append(f"{'both' if len(tier) == 2 else 'all of them'} beat {whom} ({p})")
        if parts:
            said.append("; ".join(parts) + ".")
        for t in tier:
            also = [m for m in below if m not in beaten and outcome.beats(t, m)]
            if also:
                said.append(f"{t} also beats {_list(also)} ({outcome.said_p([(t, m) for m in also])}).")
        for t in tier:
            open_pairs = [m for m in below if not outcome.separated(t, m)]
            if open_pairs:
                said.append(f"Nothing here separates {t} from {_list(open_pairs, 'or')}.")
    return said


def _upside_down(order: list[str], outcome: _Outcome) -> list[str]:
    """Where a few images carry the mean against the signed ranks."""
    return [
        f"{a} has the better mean, yet {b} beats it image by image ({outcome.said_p([(a, b)])})."
        for i, a in enumerate(order)
        for b in order[i + 1 :]
        if outcome.beats(b, a)
    ]


def _closing(pairs: int, all_separated: bool, n: int) -> str:
    basis = f"Paired Wilcoxon tests on {_images(n)}"
    if pairs > 1:
        basis += f", p Holm-adjusted over {pairs} pairs"
    if all_separated:
        return f"{basis}."
    return f"{basis}; not separated means that these images show no difference, not that there is none."


def _too_few(n: int, smallest: Sequence[float], methods: int, alpha: float) -> str:
    pairs, best = len(smallest), min(smallest)
    needed = n
    while smallest_p(needed) * pairs >= alpha:
        needed += 1
    possible = f"the smallest possible p is {_number(best)}"
    if pairs > 1:
        possible += f", {_number(min(best * pairs, 1.0))} after Holm's correction for {pairs} pairs"
    what = "the two methods cannot be separated" if methods == 2 else "no two methods can be separated"
    if needed == n:  # enough images, but most differences are zero
        return f"On these {_images(n)} {what}: too few of them differ, so that {possible}."
    return f"With {_images(n)} {what}: {possible}; at least {needed} images are needed."


def _by_mean(order: list[str], outcome: _Outcome) -> str:
    pairs = len(order) * (len(order) - 1) // 2
    if len(outcome.same) == pairs:
        return f"{_list(order)} score the same on every image."
    return f"By mean alone the order is {', '.join(order)}, best first; take it as a hint."


def _left_out(unscored: tuple[str, ...], few: dict[str, int], dropped: int, n: int) -> list[str]:
    said = []
    for method, scored in few.items():
        said.append(f"{method} has scores on {scored} of {_images(n)} only and is not ranked with the others.")
    if unscored:
        verb = "has no scores and is" if len(unscored) == 1 else "have no scores and are"
        said.append(f"{_list(list(unscored))} {verb} not compared.")
    if dropped:
        verb = "lacks" if dropped == 1 else "lack"
        said.append(f"{dropped} of {_images(n)} {verb} a score from some method: each pair uses the images it has.")
    return said


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

"""The tests of one page: every pair of methods on every card, judged together.

A card is a table of scores (pictures × methods) of one metric, data set and model. The estimand is the mean paired
difference. A page controls the probability of any wrong "beats" among its methods, over all cards at once; pairs of a
method and a control are a family of their own, so that adding controls costs the methods no power.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heatproof.errors import BadInput
from heatproof.stats.bootstrap import FloatArray
from heatproof.stats.bootstrap_t import FEWEST, RESAMPLES, bootstrap_t, moments, skewness
from heatproof.stats.cluster_robust import LARGEST_SHARE, ClusteredMeans, clustered_means
from heatproof.stats.fixed_groups import strata
from heatproof.stats.groups import Groups, outermost
from heatproof.stats.ranks import check_table
from heatproof.stats.significance import holm, without_rounding

ALPHA = 0.05
MANY_CLUSTERS = 30  # with at least this many, whole clusters are resampled; with fewer, resamples are too much alike
PAIRS_SHOWN = 20  # rows of pairs in a notebook
SKEWED, MANY = 1.0, 200  # intervals of fewer images whose differences are more skewed are somewhat narrow
IDENTICAL, FEW, CONSTANT, FEW_GROUPS, ALIKE_GROUPS, CROSSED = (
    "identical",
    "too few pictures",
    "no variance",
    "too few groups",
    "groups do not vary",
    "three kinds of groups",
)
HOLDS, NOT_SHOWN, UNDECIDED = "holds", "not shown", "too few groups"  # for groups that were not seen

Key = TypeVar("Key", bound=Hashable)
Columns = dict[str, NDArray[Any]]  # one value per pair


@dataclass(frozen=True, eq=False)
class Card:
    """One comparison of methods. Cards of one population share its pictures, which the index of `table` names."""

    table: pd.DataFrame
    higher_is_better: bool = True
    controls: Collection[str] = ()
    population: str = ""


@dataclass(frozen=True, eq=False)
class PairTests:
    """Every pair of a card's methods, one row each: differences are method_a − method_b.

    `low` and `high` hold at once for the whole page, `pair_low` and `pair_high` for the pair alone. `effect` is the
    mean difference in standard deviations of the differences. `winner` is the method with the better mean ("" if
    equal), `significant` says whether the tests separate the two, and `reason` why there is no test. `beyond` says
    whether it would also hold for groups that were not seen, "" where there are no fixed groups.
    """

    frame: pd.DataFrame
    methods: tuple[str, ...]
    n_images: int
    higher_is_better: bool
    alpha: float
    basis: Basis
    margin: float = 0.0  # within which differences were decided to be none, where pictures came in until it was solid

    def _repr_html_(self) -> str:
        shown = [
            "method_a",
            "method_b",
            "mean_difference",
            "low",
            "high",
            "effect",
            "p_adjusted",
            "winner",
            "significant",
        ]
        rows = self.frame.sort_values(["controls", "p_adjusted"], kind="stable")[shown]
        table: str = rows.to_html(index=False, float_format="{:.3g}".format, max_rows=PAIRS_SHOWN)
        return table

    def beats(self) -> set[tuple[str, str]]:
        """The (better, worse) pairs that the tests separate."""
        rows = self.frame[self.frame["significant"]]
        pairs = zip(rows["winner"], rows["method_a"], rows["method_b"], strict=True)
        return {(winner, b if winner == a else a) for winner, a, b in pairs}

    def among(self, methods: Collection[str]) -> pd.DataFrame:
        """The rows of pairs of these methods."""
        return self.frame[self.frame["method_a"].isin(methods) & self.frame["method_b"].isin(methods)]


@dataclass(frozen=True)
class Basis:
    """What a population's tests rest on: which groups they allow for, and which are fixed."""

    sampled: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)  # number of groups by name

    def words(self) -> str:
        """The population that the verdict holds for, as the end of a sentence."""
        same = [f"{self.sizes.get(name, 0):,} {plural(name)}" for name in self.fixed]
        of = f" of the same {_listed(same)}" if same else ""
        if self.sampled:
            sizes = [f"{self.sizes.get(name, 0):,}" for name in self.sampled]
            return f"new {_listed([plural(name) for name in self.sampled])} like these {_listed(sizes)}{of}"
        return f"new pictures{of}" if of else "new pictures like these"


@dataclass(frozen=True, eq=False)
class Page(Generic[Key]):
    """All tests of a page, by card; `pairs` counts those among methods and those with one control."""

    tests: Mapping[Key, PairTests]
    pairs: tuple[int, int]
    alpha: float
    resamples: int
    looks: int = 0  # at data that still came in, where the run stopped by what it found
    level: float = ALPHA  # for anything else that is tested once on the same data: alpha, or that of the last look

    @property
    def sentence(self) -> str:
        """The error rate that the page as a whole controls, in a sentence."""
        own, controls = self.pairs
        promise = (
            f"Tests of the mean paired difference. The chance of any wrong “beats” among the methods on this page is "
            f"held at {self.alpha:.0%} over {_counted(own, 'pair')} of {_counted(len(self.tests), 'comparison')} "
            "together"
        )
        if controls:
            promise += f", and once more over {_counted(controls, 'pair')} of a method and a control"
        if self.looks:
            promise += (
                f", whenever the run stops: it looked {'once' if self.looks == 1 else f'{self.looks} times'} and each "
                "look has its own share of that chance"
            )
        return f"{promise}."


@dataclass(frozen=True, eq=False)
class _Block:
    """The paired differences of all cards of one population, side by side."""

    keys: list[Hashable]
    pairs: list[list[tuple[str, str]]]
    families: NDArray[np.int64]
    differences: FloatArray
    groups: Groups | None


def compare_means(
    table: pd.DataFrame,
    *,
    higher_is_better: bool = True,
    controls: Collection[str] = (),
    groups: Groups | None = None,
    alpha: float = ALPHA,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairTests:
    """The tests of a page with one card."""
    cards = {0: Card(table, higher_is_better, controls)}
    return page_tests(cards, {} if groups is None else {"": groups}, alpha=alpha, resamples=resamples, seed=seed).tests[
        0
    ]


def page_tests(
    cards: Mapping[Key, Card],
    groups: Mapping[str, Groups] | None = None,
    *,
    alpha: float = ALPHA,
    resamples: int = RESAMPLES,
    seed: int = 0,
    stratified: bool = True,
) -> Page[Key]:
    """Test every pair of methods on every card, each on the pictures that have both, as one family.

    `groups` names those of each population. The test is a symmetric bootstrap-t, with max-T over cards whose statistics
    have alike tails and Bonferroni's inequality between these; stratified over fixed groups, drawing whole clusters
    where there are sampled groups. Of fewer than 30 of these, or two crossed kinds, it is a cluster-robust t test with
    Holm's adjustment. Without `stratified` fixed groups are part of what varies: pictures were drawn from all of them
    at random.
    """
    populations: dict[str, list[Key]] = {}
    for key, card in cards.items():
        populations.setdefault(card.population, []).append(key)
    blocks = [
        _block({key: cards[key] for key in keys}, (groups or {}).get(population))
        for population, keys in populations.items()
    ]
    clustered = [block.groups is not None and few_clusters(block.groups) for block in blocks]
    share = 2 if any(clustered) and not all(clustered) else 1  # two procedures on a page: each has half of alpha
    frames: list[Columns] = [{} for _ in blocks]
    free = [at for at, one in enumerate(clustered) if not one]
    drawn = _by_bootstrap([blocks[at] for at in free], alpha / share, resamples, seed, stratified)
    for at, frame in zip(free, drawn, strict=True):
        frames[at] = frame
    held = [at for at, one in enumerate(clustered) if one]
    for at, frame in zip(held, _by_clusters([blocks[at] for at in held], alpha / share), strict=True):
        frames[at] = frame
    _mark_beyond(blocks, frames, alpha)
    tests: dict[Key, PairTests] = {}
    for block, frame in zip(blocks, frames, strict=True):
        tests |= _cut(block, frame, cards, alpha, share)
    counts = [sum(int((block.families == family).sum()) for block in blocks) for family in (0, 1)]
    return Page({key: tests[key] for key in cards}, (counts[0], counts[1]), alpha, resamples, level=alpha)


def _block(cards: Mapping[Key, Card], groups: Groups | None) -> _Block:
    tables = {key: check_table(card.table) for key, card in cards.items()}
    for table in tables.values():
        if table.shape[1] < 2:
            raise BadInput("comparing needs at least two methods, got one.")
    first = next(iter(tables.values())).index
    same = all(table.index.equals(first) for table in tables.values())
    if not same and any(table.index.has_duplicates for table in tables.values()):
        raise BadInput("cards of one population need one row per picture: some picture has several.")
    pictures = first if same else pd.Index(list(dict.fromkeys(name for t in tables.values() for name in t.index)))
    pairs, families, parts = [], [], []
    for key, table in tables.items():
        values = (table if same else table.reindex(pictures)).to_numpy()
        a, b = np.triu_indices(values.shape[1], 1)
        methods, controls = [str(name) for name in table.columns], set(cards[key].controls)
        yardstick = np.array([method in controls for method in methods])
        pairs.append(list(combinations(methods, 2)))
        families.append(yardstick[a].astype(np.int64) + yardstick[b])
        parts.append(without_rounding(values[:, a], values[:, b]))
    of_pictures = None if groups is None else groups.of(pictures)
    return _Block(list(cards), pairs, np.concatenate(families), np.hstack(parts), of_pictures)


def _by_bootstrap(blocks: Sequence[_Block], alpha: float, resamples: int, seed: int, stratified: bool) -> list[Columns]:
    taken = []
    for block in blocks:
        moved = (~np.isnan(block.differences) & (block.differences != 0)).sum(axis=0)
        taken.append(np.where(moved >= FEWEST, block.differences, np.nan))  # else no test, and no part in the maximum
    within = [fixed_strata(block.groups) if stratified and block.groups else None for block in blocks]
    families = [block.families for block in blocks]
    whole = [None if block.groups is None else many_clusters(block.groups) for block in blocks]
    places = [np.repeat(np.arange(len(block.keys)), [len(pairs) for pairs in block.pairs]) for block in blocks]
    found = bootstrap_t(taken, families, within, whole, places, alpha=alpha, resamples=resamples, seed=seed)
    frames = []
    for block, values, means in zip(blocks, taken, found, strict=True):
        columns = _described(block.differences)
        # Groups that account for every difference leave no variance within them.
        reasons = _reasons(block.differences, means.error)
        able = reasons == ""
        half, wide = means.critical * means.error, means.critical_adjusted * means.error
        frames.append(
            columns
            | _limits(columns["mean_difference"], half, wide)
            | {
                "n_effective": _effective(columns, means.error),
                "p": np.where(able, means.p, 1.0),
                "p_adjusted": np.where(able, means.p_adjusted, 1.0),
                "reason": reasons,
                "skewed": (np.abs(skewness(values)) > SKEWED) & (means.n < MANY),
            }
        )
    return frames


def fixed_strata(groups: Groups) -> NDArray[np.int64] | None:
    """The strata that the fixed groups of these pictures give; sampled groups that may lie across them go first."""
    if groups.named("sampled"):
        return None
    return strata([groups.codes(name) for name in groups.named("fixed")])


def sampled_clusters(groups: Groups) -> list[NDArray[np.int64]]:
    """The clusterings that tests must allow for, each as 0 … k−1."""
    return list(groups.clusters().values())


def many_clusters(groups: Groups) -> NDArray[np.int64] | None:
    """The one clustering with enough clusters to resample whole ones; None if there is none."""
    found = sampled_clusters(groups)
    if len(found) != 1 or found[0].max() + 1 < MANY_CLUSTERS:
        return None
    return found[0] if np.bincount(found[0]).max() <= LARGEST_SHARE * len(found[0]) else None


def few_clusters(groups: Groups) -> bool:
    """Whether there are sampled groups, and not enough of one kind to resample them."""
    return bool(sampled_clusters(groups)) and many_clusters(groups) is None


def _by_clusters(blocks: Sequence[_Block], alpha: float) -> list[Columns]:
    found = [_clustered(block, ("sampled",)) for block in blocks]
    adjusted = _holm_by_family(
        [
            np.full(len(block.families), np.nan) if means is None else means.p
            for block, means in zip(blocks, found, strict=True)
        ],
        [block.families for block in blocks],
    )
    total = {family: sum(int((block.families == family).sum()) for block in blocks) for family in (0, 1, 2)}
    frames = []
    for block, means, p_adjusted in zip(blocks, found, adjusted, strict=True):
        columns = _described(block.differences)
        missing = np.full(len(block.families), np.nan)
        if means is None:
            p, error, half, wide = missing, missing, missing, missing
            reasons = np.full(len(missing), CROSSED, dtype=object)
        else:
            p, error, half = means.p, means.error, means.half_width(alpha)
            wide = missing.copy()
            for family, count in total.items():
                here = block.families == family
                wide[here] = means.half_width(alpha / max(count, 1))[here]
            reasons = _reasons(block.differences, moments(block.differences)[2])
            reasons = np.where((reasons == "") & ~means.enough, FEW_GROUPS, reasons)
            reasons = np.where((reasons == "") & ~(means.error > 0), ALIKE_GROUPS, reasons)
        frames.append(
            columns
            | _limits(columns["mean_difference"], half, wide)
            | {
                "n_effective": _effective(columns, error),
                "p": np.where(reasons == "", p, 1.0),
                "p_adjusted": np.where(reasons == "", p_adjusted, 1.0),
                "reason": reasons,
                "skewed": (np.abs(skewness(block.differences)) > SKEWED) & (columns["n"] < MANY),
            }
        )
    return frames


def _clustered(block: _Block, kinds: Sequence[str]) -> ClusteredMeans | None:
    """The cluster-robust means over all groups of these kinds; None for three crossed ones."""
    groups = block.groups
    if groups is None:
        return None
    names = [name for name in groups.labels.columns if groups.kinds[name] in kinds]
    telling = {*groups.named("sampled"), *groups.named("fixed")}
    codes = outermost({name: groups.codes(name) for name in names if name in telling})
    return clustered_means(block.differences, list(codes.values())) if 1 <= len(codes) <= 2 else None


def _mark_beyond(blocks: Sequence[_Block], frames: Sequence[Columns], alpha: float) -> None:
    """Whether each difference would also hold for groups that were not seen; Holm over all pairs with a test."""
    found = [
        _clustered(block, ("sampled", "fixed")) if block.groups and block.groups.named("fixed") else None
        for block in blocks
    ]
    adjusted = _holm_by_family(
        [
            np.full(len(frame["n"]), np.nan) if means is None else np.where(frame["reason"] == "", means.p, np.nan)
            for frame, means in zip(frames, found, strict=True)
        ],
        [block.families for block in blocks],
    )
    for block, frame, means, p in zip(blocks, frames, found, adjusted, strict=True):
        frame["p_beyond"] = p
        frame["beyond"] = np.full(len(p), "", dtype=object)
        if block.groups is None or not block.groups.named("fixed"):
            continue
        if means is None:
            frame["beyond"] = np.where(frame["reason"] == "", CROSSED, "")
            continue
        marks = np.where(means.enough, np.where(p <= alpha, HOLDS, NOT_SHOWN), UNDECIDED)
        frame["beyond"] = np.where(frame["reason"] == "", marks, "")


def _holm_by_family(p: Sequence[FloatArray], families: Sequence[NDArray[np.int64]]) -> list[FloatArray]:
    """Holm's adjustment over all blocks, each family by itself. A pair without a test still counts."""
    if not p:
        return []
    whole, family = np.concatenate(p), np.concatenate(families)
    adjusted = np.full(len(whole), np.nan)
    for one in np.unique(family):
        here = family == one
        known = ~np.isnan(whole[here])
        values = holm(np.where(known, np.nan_to_num(whole[here]), 1.0))
        adjusted[here] = np.where(known, values, np.nan)
    return [np.asarray(part) for part in np.split(adjusted, np.cumsum([len(one) for one in p])[:-1])]


def _described(differences: FloatArray) -> Columns:
    n, mean, error = moments(differences)
    sd = error * np.sqrt(n)
    there = ~np.isnan(differences)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = np.where(sd > 0, mean / sd, np.where(mean == 0, 0.0, np.sign(mean) * np.inf))
    return {
        "n": n,
        "n_missing": len(differences) - n,
        "n_zero": (differences == 0).sum(axis=0),
        "mean_difference": mean,
        "sd": sd,
        "effect": np.where(there.any(axis=0), effect, np.nan),
    }


def _reasons(differences: FloatArray, error: FloatArray) -> NDArray[np.object_]:
    """Why a pair cannot be tested; "" where it can."""
    there = ~np.isnan(differences)
    n, moved = there.sum(axis=0), (there & (differences != 0)).sum(axis=0)
    reasons = np.full(differences.shape[1], "", dtype=object)
    reasons[~(error > 0)] = CONSTANT
    reasons[moved < FEWEST] = FEW
    reasons[(moved == 0) & (n > 0)] = IDENTICAL
    return reasons


def _limits(mean: FloatArray, half: FloatArray, wide: FloatArray) -> dict[str, FloatArray]:
    return {"pair_low": mean - half, "pair_high": mean + half, "low": mean - wide, "high": mean + wide}


def _effective(columns: Columns, error: FloatArray) -> FloatArray:
    """The number of independent pictures with the same standard error, at most the number there are."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.minimum((columns["sd"] / error) ** 2, columns["n"])


def _cut(block: _Block, columns: Columns, cards: Mapping[Key, Card], alpha: float, share: int) -> dict[Key, PairTests]:
    """The rows of each card, with their winners."""
    columns["p_adjusted"] = np.minimum(columns["p_adjusted"] * share, 1.0)
    basis = _basis(block.groups)
    tests: dict[Key, PairTests] = {}
    start = 0
    for key, pairs in zip(block.keys, block.pairs, strict=True):
        card = cards[key]  # type: ignore[index]
        end = start + len(pairs)
        first, second = (np.array([pair[at] for pair in pairs], dtype=object) for at in (0, 1))
        rows = {name: values[start:end] for name, values in columns.items()}
        ahead = rows["mean_difference"] * (1 if card.higher_is_better else -1)
        winner = np.where(ahead > 0, first, np.where(ahead < 0, second, ""))
        significant = (rows["p_adjusted"] <= alpha) & (rows["reason"] == "") & (winner != "")
        names = {"method_a": first, "method_b": second, "controls": block.families[start:end]}
        frame = pd.DataFrame({**names, **rows, "winner": winner, "significant": significant})
        methods = tuple(str(name) for name in card.table.columns)
        tests[key] = PairTests(frame, methods, len(card.table), card.higher_is_better, alpha, basis)  # type: ignore[index]
        start = end
    return tests


def _basis(groups: Groups | None) -> Basis:
    if groups is None:
        return Basis()
    sampled, fixed = groups.named("sampled"), groups.named("fixed")
    sizes = {name: len(np.unique(groups.codes(name))) for name in (*sampled, *fixed)}
    return Basis(tuple(sampled), tuple(fixed), sizes)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def plural(name: str) -> str:
    """`scenes`, `classes`, `source photos`."""
    return f"{name}es" if name.endswith(("s", "x", "ch", "sh")) else f"{name}s"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)

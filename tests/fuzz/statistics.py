"""Every public statistic, with degenerate arguments and the fields its documentation says may be undefined (NaN)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from fuzz.degenerate import length, numbers, table

from heatproof.stats import (
    bootstrap,
    consistency,
    falling,
    ndcg,
    ordinal_alpha,
    out_of_distribution,
    ranks,
    relative_importance,
    reliability,
    setups,
    significance,
    strata,
    strategies,
    threshold_bias,
    verdict,
)


class Case(NamedTuple):
    """A call with arguments drawn from dice, and which of its numbers may be NaN."""

    call: Callable[[Random], Any]
    undefined: frozenset[str] = frozenset()


def _line(dice: Random) -> np.ndarray:
    return numbers(dice, (length(dice),))


def _pair(dice: Random) -> tuple[np.ndarray, np.ndarray]:
    n = length(dice)
    return numbers(dice, (n,)), numbers(dice, (n if dice.random() < 0.9 else n + 1,))


def _square(dice: Random) -> np.ndarray:
    return numbers(dice, (length(dice), dice.choice([0, 1, 2, 3, 6])))


def _clusters(dice: Random, n: int) -> list[Any]:
    return dice.choice([[], [], [[dice.randrange(3) for _ in range(n)]], [list(range(n)), ["a"] * n], [["x"] * n]])


def _interval(dice: Random) -> Any:
    values = _line(dice)
    statistic = dice.choice([bootstrap.mean, bootstrap.median])
    kind = dice.choice(["percentile", "expanded", "bca"])
    return bootstrap.interval(
        values, statistic, resamples=40, kind=kind, clusters=_clusters(dice, len(values)), share=dice.random() < 0.1
    )


def _names(dice: Random) -> list[str]:
    return dice.sample(["a", "b", "c", "d"], dice.randrange(5))


def _setups(dice: Random) -> pd.DataFrame:
    count, methods = dice.choice([0, 1, 2, 4]), dice.choice([0, 1, 2, 4])
    place = [(f"imputer {i}", i, f"method {j}" if j else "random") for i in range(count) for j in range(methods)]
    frame = pd.DataFrame(place, columns=["imputer", "n", "method"])
    for name in ("mif", "lif"):
        frame[name] = numbers(dice, (len(frame),))
    if dice.random() < 0.3:
        frame["r_oms"] = 0.5
    return frame.drop(columns=["n"]) if dice.random() < 0.5 else frame


def _rows(dice: Random) -> pd.DataFrame:
    """Long rows, as a run stores them."""
    n = length(dice) * 3

    def choose(words: list[str]) -> list[str]:
        return [dice.choice(words) for _ in range(n)]

    return pd.DataFrame(
        {
            "dataset": choose(["d"]),
            "model": choose(["m", "k"]),
            "method": choose(["a", "b", "random"]),
            "metric": choose(["mif", "lif", "r_oms"]),
            "image": choose(["1", "2", "3"]),
            "value": numbers(dice, (n,)),
            "status": choose(["ok", "ok", "failed"]),
        }
    )


STRATEGY = strategies.Strategy("mean", 25, mif="mif", lif="lif", r_oms="r_oms")


def _by_stratum(dice: Random) -> pd.DataFrame:
    scores = table(dice)
    sizes = np.arange(float(len(scores)))
    return strata.by_stratum(scores, strata.by_percentile(sizes), resamples=20)


def _accuracy(dice: Random) -> dict[str, dict[str, float]]:
    values = [0.0, 1.0, 0.5, float("nan"), None]
    return {
        role: {what: dice.choice(values) for what in ("composite", "without", "grey")}
        for role in dice.sample(["object", "scene", "scene_only"], dice.randrange(4))
    }


def _bias(dice: Random, tests: bool = False) -> Any:
    images, methods = length(dice), dice.choice([0, 1, 2, 3])
    thresholds = dice.choice([[], [0.5], [0.3, 0.5, 0.7]])
    arguments = (
        np.clip(numbers(dice, (images, methods, len(thresholds))), 0, 1),
        np.clip(numbers(dice, (images, methods)), 0, 1),
        [f"method {i}" for i in range(methods)],
        thresholds,
    )
    return threshold_bias.threshold_tests(*arguments) if tests else threshold_bias.threshold_bias(*arguments)


def _frame(*columns: str) -> frozenset[str]:
    return frozenset(columns)


BOUNDS = _frame("low", "high")
RANKING = BOUNDS | {"first"}
INTERVAL = BOUNDS | {"estimate"}
PAIRS = _frame("median_difference", "mean_difference", "mean_low", "mean_high")
CONSISTENT = _frame("agreement", "mrg", "lrg", "srg", "mif", "lif", "separation_vs_r_oms", "r_oms", "n", "imputer")

CASES: dict[str, Case] = {
    "interval": Case(_interval, INTERVAL),
    "resampled_means": Case(lambda d: bootstrap.resampled_means(_square(d), resamples=20), _frame("")),
    "is_share": Case(lambda d: bootstrap.is_share(_line(d))),
    "wilson": Case(lambda d: bootstrap.wilson(d.choice([0.0, 0.5, 1.0]), d.choice([1, 2, 100]), d.choice([0.5, 0.95]))),
    "cluster_index": Case(lambda d: bootstrap.cluster_index(_line(d), 3)),
    "complete": Case(lambda d: ranks.complete(table(d))),
    "rank": Case(lambda d: ranks.rank(_line(d), d.random() < 0.5), _frame("")),
    "rank_methods": Case(
        lambda d: ranks.rank_methods(table(d), by=d.choice(["mean", "median"]), resamples=40), RANKING
    ),
    "kendall_tau": Case(lambda d: ranks.kendall_tau(*_pair(d)), _frame("")),
    "compare_rankings": Case(
        lambda d: ranks.compare_rankings(
            {name: d.choice([1.0, 2.0, 2.5]) for name in "abc"}, {name: d.choice([1.0, 2.0, 2.5]) for name in "abc"}
        ),
        _frame("tau"),
    ),
    "signed_rank": Case(lambda d: significance.signed_rank(*_pair(d)), _frame("median_difference")),
    "holm": Case(lambda d: significance.holm(np.abs(_line(d)))),
    "compare_pairs": Case(lambda d: significance.compare_pairs(table(d), resamples=20, controls=("method 1",)), PAIRS),
    "critical_difference": Case(lambda d: significance.critical_difference(table(d))),
    "verdict": Case(lambda d: verdict.verdict(table(d), d.random() < 0.5)),
    "consistency": Case(
        lambda d: consistency.consistency(_setups(d), lists=d.choice(["best_first", "paper"])).as_dict(), CONSISTENT
    ),
    "read_scores": Case(lambda d: setups.read_scores(_setups(d))),
    "setups_table": Case(lambda d: strategies.setups_table(_rows(d), [STRATEGY]), _frame("mif", "lif", "r_oms")),
    "gains": Case(lambda d: strategies.gains(_rows(d), STRATEGY, "d", "m")),
    "without_holes": Case(lambda d: strategies.without_holes(strategies.setups_table(_rows(d), [STRATEGY]))),
    "tau": Case(lambda d: falling.tau(*_pair(d)), _frame("")),
    "mean_curve_tau": Case(
        lambda d: falling.mean_curve_tau(*(list(numbers(d, (3, n))) for n in [length(d)] * 2)), _frame("")
    ),
    "mean_curve_tau of nothing": Case(lambda d: falling.mean_curve_tau([], []), _frame("")),
    "ndcg": Case(lambda d: ndcg.ndcg(_names(d), _names(d))),
    "ndcg of itself": Case(lambda d: ndcg.ndcg(*[_names(d)] * 2)),
    "correlation": Case(lambda d: ndcg.correlation(*_pair(d), d.choice(["pearson", "spearman"])), _frame("")),
    "best_ordering": Case(
        lambda d: (lambda values: ndcg.best_ordering([d.choice("ab") for _ in values], np.clip(values, 0, 1)))(
            _line(d)
        ),
        _frame("rho"),
    ),
    "auroc": Case(lambda d: out_of_distribution.auroc(_line(d), _line(d)), _frame("")),
    "fpr95": Case(lambda d: out_of_distribution.fpr95(_line(d), _line(d)), _frame("")),
    "alike": Case(lambda d: out_of_distribution.alike(d.choice([-1, 0, 1, 2, 20]), draws=200)),
    "pearson": Case(lambda d: relative_importance.pearson(*(v.tolist() for v in _pair(d))), _frame("r", "low", "high")),
    "violations": Case(lambda d: relative_importance.violations(_accuracy(d), d.choice([0, 1, 10]), d.choice([0, 9]))),
    "unknown": Case(lambda d: relative_importance.unknown(_accuracy(d))),
    "ordinal_alpha": Case(lambda d: ordinal_alpha.ordinal_alpha(_square(d))),
    "krippendorff_alpha": Case(lambda d: reliability.krippendorff_alpha(_square(d))),
    "alpha_interval": Case(lambda d: reliability.alpha_interval(_square(d), resamples=30), BOUNDS),
    "spearman_matrix": Case(
        lambda d: reliability.spearman_matrix(table(d)).n,  # rho is NaN by definition where pairs are few
    ),
    "joint_failures": Case(lambda d: reliability.joint_failures(table(d))),
    "agreement": Case(
        lambda d: reliability.agreement({name: table(d) for name in ("one", "two", "three")[: d.choice([1, 2, 3])]}),
        _frame("mean_ranks", "median_ranks", *(f"method {i}" for i in range(5)), "same", *"01234"),
    ),
    "by_percentile": Case(lambda d: strata.by_percentile(_line(d))),
    "by_cutoffs": Case(lambda d: strata.by_cutoffs(_line(d), d.choice([[0.0, 1.0], [1.0, 0.0], [1.0], []]))),
    "by_stratum": Case(_by_stratum, _frame("mean", "sd", "low", "high")),
    "gain": Case(lambda d: strata.gain(_by_stratum(d)), _frame("")),
    "relative_difference": Case(lambda d: threshold_bias.relative_difference(*_pair(d)), _frame("")),
    "fold": Case(lambda d: threshold_bias.fold(*_pair(d)), _frame("", "inf ")),
    "threshold_bias": Case(
        _bias,
        _frame("difference_low", "difference_middle", "difference_high", "swing", "fold", "tau", "inf fold"),
    ),
    "threshold_tests": Case(lambda d: _bias(d, tests=True), _frame("median_difference")),
}

"""The ledger of claims: its verdicts, its intervals, and that docs/claims.md is what the program writes."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heatproof.results import Results
from heatproof.stats.groups import Groups

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from ledger.check import drifted
from ledger.measured import FILE, Store
from ledger.number import Finding, Number, above, below, drawn, every, near, published, some
from ledger.page import PAGE, page
from ledger.papers.strategies import agreement, dependent, orders
from ledger.papers.threshold_free import by_removed_share, reversed_pairs
from ledger.rows import ROWS
from ledger.sample import Sample
from ledger.spread import apart, resampled

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "claims.py"


def number(low: float, high: float, what: str = "gap") -> Number:
    return Number(what, (low + high) / 2, low, high, 20)


def test_the_page_is_what_the_program_writes():
    assert PAGE.read_text() == page(Store())
    assert set(json.loads(FILE.read_text())) <= set(ROWS)


def test_an_interval_decides_only_where_it_lies_on_one_side():
    for verdict, sides in ((above, ((0.1, 0.2), (-0.2, -0.1))), (below, ((-0.2, -0.1), (0.1, 0.2)))):
        held, against = sides
        assert (verdict(number(*held)), verdict(number(*against))) == ("held", "not held")
        assert verdict(number(-0.1, 0.1)) == "cannot tell"
        assert verdict(Number("alone", 0.3, math.nan, math.nan, 3)) == "cannot tell"


def test_no_difference_is_shown_by_a_narrow_interval_and_not_by_a_wide_one():
    assert near(number(-0.01, 0.02), 0, 0.05) == "held"
    assert near(number(-0.3, 0.3), 0, 0.05) == "cannot tell"
    assert near(number(0.1, 0.2), 0, 0.05) == "not held"


def test_a_published_size_needs_an_interval_that_excludes_no_effect():
    assert published(number(20, 40), 31) == "held"
    assert published(number(-20, 40), 31) == "cannot tell"
    assert published(number(-20, 10), 31) == "not held"


def test_parts_of_a_claim():
    assert every(["held", "cannot tell"]) == some(["not held", "cannot tell"]) == "cannot tell"
    assert every(["held", "not held", "cannot tell"]) == "not held"
    assert some(["not held", "held"]) == "held"
    assert every([]) == some([]) == "cannot tell"


def test_the_detectable_difference_is_found_four_times_in_five():
    rng = np.random.default_rng(0)
    n, sd = 60, 1.0
    half = 1.96 * sd / math.sqrt(n)
    effect = Number("", 0, -half, half, n).detectable
    means = rng.normal(effect, sd / math.sqrt(n), 4000)
    assert np.mean(means - half > 0) == pytest.approx(0.8, abs=0.03)


def test_numbers_are_drawn_with_a_true_minus_and_no_negative_zero():
    assert [drawn(value) for value in (-0.05, -0.0001, 12.34, math.nan, math.inf)] == [
        "−0.050",
        "0.000",
        "12.3",
        "–",
        "∞",
    ]
    assert drawn(31.4, "%") == "31 %"


def test_what_was_stored_is_read_back_and_drift_is_named(tmp_path):
    row = next(iter(ROWS.values()))
    finding = Finding((number(0.1, 0.3), Number("count", 3, math.nan, math.nan, 20)), "held", (number(0.1, 0.3),))
    store = Store(tmp_path / "measured.json")
    store.put(row, "full", finding)
    store.write([row.name])
    (again,) = [Store(store.path).get(row.name, "full")]
    assert again is not None
    assert drifted(again.finding, finding) == []
    assert again.finding.deciding == finding.deciding
    moved = Finding((number(0.4, 0.6), Number("count", 4, math.nan, math.nan, 20)), "held")
    assert [sentence.split(" was ")[0] for sentence in drifted(again.finding, moved)] == ["'gap'", "'count'"]
    (word,) = drifted(finding, Finding(finding.numbers, "cannot tell"))
    assert "verdict" in word


@pytest.fixture
def sample() -> Sample:
    """Four methods on forty pictures of eight scenes: the first two differ by 0.5, the scene moves all of them."""
    rng = np.random.default_rng(1)
    scene = np.repeat(np.arange(8), 5)
    ids = [f"p{i}" for i in range(40)]
    shared = 1 + rng.normal(0, 1, 8)[scene] + rng.normal(0, 0.1, 40)
    levels = {"alpha": 0.5, "beta": 0.0, "gamma(x=1)": -1.0, "gamma(x=2)": 3.0}
    rows = [
        ("d", "m", method, "score", image, value + level, "ok")
        for method, level in levels.items()
        for image, value in zip(ids, shared + rng.normal(0, 0.05, 40), strict=True)
    ]
    scores = pd.DataFrame(rows, columns=["dataset", "model", "method", "metric", "image", "value", "status"])
    groups = Groups(pd.DataFrame({"scene": scene}, index=ids), {"scene": "fixed"})
    return Sample(Results(scores, groups={"d": groups}))


def test_intervals_allow_for_groups(sample):
    table = sample.panel("score")
    mean, gap = sample.mean("", table, "alpha"), sample.difference("", table, "alpha", "beta")
    alone = Sample(Results(sample.results.scores)).mean("", table, "alpha")
    assert mean.high - mean.low > 1.5 * (alone.high - alone.low)  # five pictures of a scene are not five
    assert gap.low < 0.5 < gap.high
    assert gap.high - gap.low < 0.1  # what all methods share cancels
    wider = sample.difference("", table, "alpha", "beta", parts=10)
    assert wider.high - wider.low > gap.high - gap.low


def test_a_method_is_found_by_how_its_label_begins(sample):
    assert sample.find("gamma(x=2") == "gamma(x=2)"
    with pytest.raises(Exception, match="gamma"):
        sample.find("gamma")


def test_a_ratio_and_a_statistic_of_means(sample):
    table = sample.panel("score")
    ratio = sample.ratio("", 2 * table["gamma(x=2)"], table["gamma(x=2)"])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((100, 100, 100))
    most = sample.of_means("", table, lambda means: float(means.max() - means.min()))
    assert most.value == pytest.approx(4, abs=0.05)
    assert most.low < most.value < most.high


def test_independent_samples_apart():
    gap = apart("", Number("", 0.5, 0.4, 0.6, 10), Number("", 0.2, 0.1, 0.3, 30))
    assert (gap.value, gap.low, gap.high, gap.n) == pytest.approx((0.3, 0.3 - 0.02**0.5, 0.3 + 0.02**0.5, 10))


def test_resampled_groups_widen_an_interval():
    values = np.repeat(np.random.default_rng(3).normal(size=10), 10)
    index = np.repeat(np.arange(10), 10)
    alone, whole = (
        resampled("", 100, lambda rows: float(values[rows].mean()), clusters=clusters) for clusters in ((), (index,))
    )
    assert whole.value == alone.value
    assert whole.high - whole.low > 2 * (alone.high - alone.low)


def test_agreement_of_setups_is_the_mean_tau():
    from itertools import combinations

    from scipy.stats import kendalltau

    scores = np.random.default_rng(5).normal(size=(6, 5))
    taus = [kendalltau(a, b).statistic for a, b in combinations(scores, 2)]
    assert agreement(scores) == pytest.approx(np.mean(taus))
    assert dependent(np.array([[1.0, 2, 3], [1.0, 3, 2]])) == 1
    assert orders(np.array([[1.0, 3, 2]])) == [(1, 2, 0)]


def test_curves_are_read_off_at_equal_shares(sample):
    lines = pd.DataFrame(
        {
            "metric": "mif",
            "image": ["p0", "p1"],
            "method": "alpha",
            "x": [[0.0, 1.0], [0.0, 0.5, 1.0]],
            "y": [[1.0, 0.0], [1.0, 1.0, 0.0]],
        }
    )
    scores = sample.results.scores.assign(metric="mif")
    tables = by_removed_share(Sample(Results(scores, lines)), "mif")
    assert tables[4]["alpha"].tolist() == pytest.approx([-0.5, -1.0])
    assert tables[8]["alpha"].tolist() == pytest.approx([-0.1, -0.2])


def test_a_clear_reversal_is_told_from_a_change_by_chance(sample):
    rng = np.random.default_rng(2)
    first = pd.DataFrame(rng.normal(size=(40, 2)) + np.array([1.0, -1.0]), columns=["a", "b"])
    noise = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    assert reversed_pairs(sample, [first, -first])[0] == 1
    assert reversed_pairs(sample, [noise, noise * 0.1])[0] == 0


def test_the_quick_numbers_come_out_again(tmp_path):
    command = [sys.executable, str(SCRIPT), "--check", "--scale", "quick"]
    words = [
        "--only",
        "threshold_free.reversal.embedded,threshold_free.nineteen.embedded,threshold_free.first.embedded",
        "--runs",
        str(tmp_path),
        "--workers",
        "1",
    ]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exit status 0" in done.stdout

"""The share of maps that change by no more than t."""

import math

import pandas as pd

from heatproof.report.sections.iir_thresholds import THRESHOLDS, within


def test_the_curve_is_the_distribution_of_the_changes():
    changes = pd.Series([0.0, 0.1, 0.3, 2.0, math.nan])
    assert within(changes, (0.0, 0.1, 0.5, 3.0)) == [0.25, 0.5, 0.75, 1.0]
    whole = within(changes)
    assert whole == sorted(whole)
    assert len(whole) == len(THRESHOLDS)


def test_without_changes_there_is_no_share():
    assert all(math.isnan(one) for one in within(pd.Series([math.nan])))

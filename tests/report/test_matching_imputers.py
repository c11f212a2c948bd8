"""The table of explaining and judging imputers."""

import pandas as pd
import pytest

from heatproof.report.sections.matching_imputers import matched, matrix


def test_a_judge_that_favours_its_own_paint_is_seen():
    rows = [
        ("mean" if "mean" in method else "telea", judge, n, method, 0.1, 0.5 if judge in method else 0.3)
        for method in ("shapley(mean)", "shapley(telea)")
        for judge in ("mean", "telea")
        for n in (25, 100)
    ]
    setups = pd.DataFrame(rows, columns=["own", "imputer", "n_superpixels", "method", "mif", "lif"])
    table = matrix(setups, {"shapley(mean)": "mean", "shapley(telea)": "telea"})
    assert table.loc["mean"].tolist() == pytest.approx([0.4, 0.2])
    assert matched(table) == pytest.approx((0.4, 0.2))


def test_one_imputer_has_nothing_to_be_held_against():
    table = pd.DataFrame([[0.4]], index=["mean"], columns=["mean"])
    own, other = matched(table)
    assert own == 0.4
    assert other != other

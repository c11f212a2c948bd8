"""Which choice of a strategy moves a number most, from tables whose answer is known."""

from itertools import product

import pandas as pd
import pytest

from heatproof.stats.design_choices import design_choices


def table() -> pd.DataFrame:
    """The imputer moves the number by 0.4, the number of segments by 0.1, the model not at all."""
    levels = product(("mean", "telea", "train"), (25, 500), ("a", "b"))
    rows = [
        (imputer, n, model, 0.2 * ("mean", "telea", "train").index(imputer) + 0.1 * (n == 500))
        for imputer, n, model in levels
    ]
    return pd.DataFrame(rows, columns=["imputer", "n", "model", "value"])


def test_ranges_are_those_of_one_choice_with_the_others_fixed():
    imputer, number, model = design_choices(table(), ("model", "imputer", "n"), "value")
    assert (imputer.name, number.name, model.name) == ("imputer", "n", "model")
    assert imputer.ranges == pytest.approx([0.4] * 4)
    assert (number.mean, number.largest, model.mean) == pytest.approx((0.1, 0.1, 0))
    assert imputer.quartiles == pytest.approx((0.4, 0.4))


def test_a_choice_that_never_varies_with_the_others_fixed_is_left_out():
    crossed = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": [5, 5], "value": [0.0, 1.0]})
    assert design_choices(crossed, ("a", "b", "c"), "value") == []


def test_setups_without_a_number_do_not_count():
    holes = table()
    holes.loc[holes["imputer"] == "train", "value"] = float("nan")
    assert design_choices(holes, ("model", "imputer", "n"), "value")[0].settings == ("mean", "telea")

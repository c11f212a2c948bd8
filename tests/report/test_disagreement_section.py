"""Two measures that put methods in opposite orders: how much of it is solid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.disagreement import disagreement
from heatproof.results import Results
from heatproof.results.run_info import run_info


def opposed(noise: float, images: int = 20) -> Results:
    """`one` puts a before b before c, `other` the reverse, in means; noise decides how surely."""
    dice = np.random.default_rng(0)
    rows = []
    for metric, levels in {"one": (0.3, 0.2, 0.1), "other": (0.1, 0.2, 0.3)}.items():
        for method, level in zip("abc", levels, strict=True):
            wobble = dice.normal(0, noise, images)
            rows += [
                {"dataset": "d", "model": "m", "method": method, "metric": metric, "image": f"{i}"}
                | {"value": level + w, "status": "ok", "note": "", "seconds": 0.1}
                for i, w in enumerate(wobble - wobble.mean())  # the means stay where they are
            ]
    metrics = {name: {"higher_is_better": True} for name in ("one", "other")}
    return Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info({"metrics": metrics}))


@pytest.mark.parametrize(("noise", "solid"), [(0.001, "3 of them solidly under both"), (5.0, "none of them solidly")])
def test_changed_pairs_are_counted_apart_from_those_that_are_sure(noise: float, solid: str) -> None:
    message = disagreement(Reading(opposed(noise)))
    assert message is not None
    assert "3 of 3 pairs of methods change order between them, " + solid in message

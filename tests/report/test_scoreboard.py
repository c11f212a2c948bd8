"""The scoreboard: deeper shades rank higher, whichever end of a metric is the better one."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.ranking import scoreboard
from heatproof.results import Results
from heatproof.results.run_info import run_info

LEVELS = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "e": 0.5}


def board(higher: bool) -> dict[str, str]:
    """method -> the class of its cell."""
    rows = [
        {"dataset": "d", "model": "net", "method": method, "metric": "m", "image": f"{at}", "value": level + at / 1000}
        | {"status": "ok", "note": "", "seconds": 0.1}
        for method, level in LEVELS.items()
        for at in range(8)
    ]
    info = {"metrics": {"m": {"name": "m", "higher_is_better": higher}}}
    message = scoreboard(Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info))), "d", "net")
    return dict(re.findall(r'<th scope="row">(\w)</th><td class="num ([^"]*)"', message))


@pytest.mark.parametrize(("higher", "best_first"), [(True, "edcba"), (False, "abcde")])
def test_the_best_has_the_deepest_shade_and_alone_is_bold(higher: bool, best_first: str) -> None:
    classes = board(higher)
    assert [classes[name].split()[0] for name in best_first] == ["t4", "t3", "t2", "t1", "t0"]
    assert [name for name, output in classes.items() if "first" in output] == [best_first[0]]

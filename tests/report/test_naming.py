"""Short names on the page: unique, and the whole label is still shown."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from heatproof.report import report
from heatproof.results import Results
from heatproof.results.method_names import short_names
from heatproof.results.run_info import run_info

fields = st.sampled_from(["", "(steps=8)", "(method=lrp, draws=5)", "(method=saliency(signed=True), draws=5)", "(2)>"])
labels = st.builds(lambda name, rest: name + rest, st.sampled_from(["lrp", "smoothgrad", "<b>x"]), fields)


@given(st.lists(labels, unique=True))
def test_no_two_methods_share_a_name(names: list[str]) -> None:
    short = short_names(names)
    assert set(short) == set(names)
    assert len(set(short.values())) == len(names)


def test_the_barest_unique_name_is_taken() -> None:
    saliency, path = "smoothgrad(method=saliency, draws=5)", "smoothgrad(method=integrated_gradients(steps=8), draws=5)"
    assert short_names(["saliency(signed=True)", saliency, path, "lrp"]) == {
        "saliency(signed=True)": "saliency",
        saliency: "smoothgrad(saliency)",
        path: "smoothgrad(integrated_gradients)",
        "lrp": "lrp",
    }
    assert short_names(["lrp", "lrp(steps=2)"]) == {"lrp": "lrp", "lrp(steps=2)": "lrp(steps=2)"}


def test_the_report_shows_short_names_and_tells_the_whole_label_once_and_on_hover(tmp_path: Path) -> None:
    long = "saliency(signed=True, pooling=positive_sum)"
    rows = [
        {"dataset": "d", "model": "m", "method": method, "metric": "srg", "image": f"{i}", "seconds": 0.1}
        | {"value": value + 0.01 * i, "note": "", "status": "ok"}
        for method, value in ((long, 0.9), ("lrp", 0.1))
        for i in range(20)
    ]
    info = {"metrics": {"srg": {"higher_is_better": True}}, "methods": {long: {"name": "saliency"}, "lrp": {}}}
    run = Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info))
    page = report(run, tmp_path / "report.html").read_text()
    assert "<strong>saliency</strong> comes first" in page
    assert f'<th scope="row" title="{long}">saliency</th>' in page
    message = re.sub(r' title="[^"]*"', "", page.replace("<wbr>", ""))
    assert message.count(long) == 1
    assert message.index(long) > message.index("What was run")

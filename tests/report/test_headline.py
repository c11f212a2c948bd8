"""The first sentences must not claim more than the page below them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.first_places import first_places
from heatproof.report.sections.headline import compared, headline
from heatproof.report.sections.ranking import numbers
from heatproof.report.sections.verdict import against_controls
from heatproof.results import Results
from heatproof.results.run_info import run_info

BLIND = {"control": True, "blind": True}
CONTROLS = {"random": BLIND, "edges": BLIND, "oracle": {"control": True, "blind": False}}


def message(
    images: int,
    scores: Mapping[str, Mapping[str, float]],
    side: Sequence[str] = (),
    holes: Sequence[tuple[str, int]] = (),
    noise: float = 0.01,
) -> tuple[str, Reading]:
    """The headline, without its tags, of {metric: {method: mean}} with a little noise; `side` metrics are not main."""
    rng = np.random.default_rng(0)
    rows = [
        {"dataset": "d", "model": "m", "method": method, "metric": metric, "image": f"{i}", "seconds": 0.1}
        | {"value": mean + noise * float(rng.normal()), "note": "", "status": "ok"}
        for metric, means in scores.items()
        for method, mean in means.items()
        for i in range(images)
        if (method, i) not in holes
    ]
    info: dict[str, Any] = {
        "metrics": {name: {"higher_is_better": True, "main": name not in side} for name in scores},
        "methods": {name: CONTROLS.get(name, {}) for means in scores.values() for name in means},
    }
    reading = Reading(Results(pd.DataFrame(rows), pd.DataFrame(), None, run_info(info)))
    return re.sub("<[^>]+>", "", " ".join(filter(None, headline(reading)))), reading


def test_too_few_images_are_reported_first() -> None:
    assert message(4, {"srg": {"a": 0.9, "b": 0.1}})[0].startswith(
        "These images are too few to tell any two methods apart"
    )
    assert message(5, {"srg": {"a": 0.9, "b": 0.1}})[0].startswith("These images are too few")
    assert message(6, {"srg": {"a": 0.9, "b": 0.1}})[0].startswith("a comes first, and beats")
    assert message(20, {"srg": {"a": 0.9, "b": 0.1}})[0].startswith("a comes first, and beats every other method.")


def test_equal_methods_share_first_place() -> None:
    assert message(20, {"s": {"a": 0.5, "b": 0.5, "c": 0.1}}, noise=0.0)[0].startswith("a and b share first place.")
    both = {name: {"a": 0.5, "b": 0.5, "c": 0.1} for name in "st"}
    assert message(20, both, noise=0.0)[0].startswith("a and b share first place in all 2 comparisons.")


def test_the_controls_are_part_of_the_answer() -> None:
    means = {"a": 0.9, "b": 0.5, "random": 0.5, "oracle": 1.0}
    assert "The blind control (random) is beaten by a, not by b." in message(20, {"s": means})[0]
    both = message(20, {"s": {"a": 0.9, "b": 0.5, "random": 0.1, "edges": 0.7}})[0]
    assert "The blind controls (random and edges) are all beaten by a, not by b." in both
    two = {"s": means, "t": {**means, "b": 0.9}}
    assert "is beaten by a everywhere, by b in 1 of 2." in message(20, two)[0]
    none = {"a": 0.5, "b": 0.5, "random": 0.5}
    assert "No method beats the blind control (random)." in message(20, {"s": none})[0]
    assert "No blind control took part" in message(20, {"s": {"a": 0.9, "b": 0.1, "oracle": 1.0}})[0]
    alone = message(20, {"s": {"a": 0.9, "random": 0.1}})[0]
    assert alone == (
        "a is the only method here: there is no other to compare it with. The blind control (random) is beaten by a. "
        "Not run: edges, centre and constant."
    )


def test_variants_of_one_question_count_once() -> None:
    scores = {"srg": {"a": 0.9, "b": 0.1}, "mif": {"a": 0.1, "b": 0.9}, "lif": {"a": 0.1, "b": 0.9}}
    output = message(20, scores, side=("mif", "lif"))[0]
    assert output.startswith("a comes first, and beats every other method.")
    assert "Counted by srg; 2 further comparisons" in output


def test_clear_allows_for_all_comparisons() -> None:
    """A difference that is clear in one comparison may be the luck of one in many."""
    one = {"s": {"a": 0.9, "b": 0.1}}
    assert "beats every other" in message(20, one, noise=0.9)[0]
    many = {**one, **{f"s{i}": {"a": 0.1, "b": 0.1} for i in range(12)}}
    assert (
        "none of these first places is clear of the rest, allowing for 13 comparisons"
        in message(20, many, noise=0.9)[0]
    )
    clear = {f"s{i}": {"a": 0.9, "b": 0.1} for i in range(4)}
    assert "every first place is clear of the rest, allowing for 4 comparisons" in message(20, clear)[0]


def test_a_method_that_was_not_run_everywhere_is_marked() -> None:
    scores = {name: {"a": 0.9, "b": 0.1} for name in "st"} | {"u": {"a": 0.1, "b": 0.2, "c": 0.9}}
    assert "a comes first in 2 of 3 comparisons, c in 1 of its 1;" in message(20, scores)[0]


@pytest.mark.parametrize("control", ["random", "oracle"])
def test_holes_of_a_control_do_not_move_the_methods(control: str) -> None:
    holes = [(control, i) for i in range(10)]
    _, reading = message(20, {"s": {"a": 0.9, "b": 0.5, control: 0.2}}, holes=holes, noise=0.3)
    _, whole = message(20, {"s": {"a": 0.9, "b": 0.5}}, noise=0.3)
    (panel,) = reading.panels
    table = reading.standings[panel].table
    assert list(table["method"]) == ["a", "b"]
    numbers = [name for name in table if name != "against_blind"]
    pd.testing.assert_frame_equal(table[numbers], whole.standings[panel].table[numbers])


def test_ranks_run_from_the_better_to_the_worse() -> None:
    _, reading = message(20, {"s": {"a": 0.9, "b": 0.899, "c": 0.1}}, noise=0.1)
    ranks = reading.standings[reading.panels[0]].ranks
    assert {ranks[name][1:] for name in "ab"} == {(1, 2)}
    assert ranks["c"] == (3, 3, 3)


def test_the_chart_can_be_read_as_a_table() -> None:
    _, reading = message(20, {"s": {"a": 0.9, "b": 0.5, "random": 0.2}}, noise=1e-5)
    text = numbers(reading, reading.panels[0])
    rows = [re.sub("<[^>]+>", " ", row).split() for row in re.findall("<tr.*?</tr>", text)]
    assert [row[0] for row in rows] == ["method", "a", "b", "random"]
    assert rows[1][1:3] == ["20", "0.900"]
    assert rows[1][-1] == "1"


def test_a_blind_control_that_nothing_could_be_compared_with_did_take_part() -> None:
    alone = message(20, {"srg": {"random": 0.1}})[0]
    assert "No blind control took part" not in alone
    assert "A blind control (random) took part, but no method could be compared with it" in alone
    unscored = message(5, {"srg": {"a": 0.9, "random": 0.1, "edges": 0.2}}, holes=[("a", i) for i in range(5)])[0]
    assert "Blind controls (random and edges) took part, but no method could be compared with them" in unscored
    assert "No blind control took part" in message(20, {"srg": {"a": 0.9, "oracle": 1.0}})[0]


def test_first_places_stand_in_a_table_with_what_they_beat() -> None:
    scores = {"s": {"a": 0.9, "b": 0.5, "c": 0.1, "random": 0.3, "edges": 0.0}, "t": {"a": 0.5, "b": 0.5, "c": 0.1}}
    _, reading = message(20, scores, noise=1e-4)
    rows = re.findall("<tr>.*?</tr>", first_places(reading, compared(reading)))
    cells = [[re.sub("<[^>]+>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", row)] for row in rows]
    assert cells[0] == ["by", "first", "beats", "beat every blind map", "beaten by a blind map"]
    assert cells[1] == ["s", "a", "all others", "2 of 3", "c"]
    assert cells[2][3:] == ["none ran", ""]
    _, level = message(20, {"s": {"a": 0.5, "b": 0.5}})
    assert "no other for sure" in first_places(level, compared(level))
    assert first_places(level, []) == ""


def test_controls_that_were_not_run_are_not_spoken_of() -> None:
    output = message(20, {"s": {"a": 0.9, "b": 0.8, "random": 0.1}})[0]
    assert "all blind controls" not in output
    assert "Not run: edges, centre and constant." in output
    none = message(20, {"s": {"a": 0.5, "b": 0.5, "random": 0.5, "edges": 0.5}})[0]
    assert "No method beats all blind controls that were run (random and edges)." in none


def test_a_method_that_a_blind_control_beats_is_marked() -> None:
    output, reading = message(20, {"s": {"a": 0.9, "b": 0.3, "random": 0.1, "edges": 0.6}})
    assert "A blind control beats b." in output
    assert reading.against_blind(reading.panels[0]) == {"a": "clear", "b": "beaten"}
    assert reading.blind(reading.panels[0]) == ["edges", "random"]
    assert against_controls(reading, reading.panels[0])[0].startswith(
        "Blind maps (edges and random): a beats all of them; b is beaten by some (‡). The strongest is edges (0."
    )

"""When and why a run stopped that adds pictures until every pair of methods is decided, and the decision on each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import section, table
from heatproof.report.typeset import count, escape, number
from heatproof.results.until_text import stopped_in_words

WORDS = {"better": "first is better", "worse": "second is better", "equivalent": "equivalent", "open": "open"}


def stopping(reading: Reading) -> str | None:
    """Nothing for a run over a fixed number of pictures."""
    until = reading.info.get("until")
    if not isinstance(until, Mapping):
        return None
    sentences = stopped_in_words(until)
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences[1:])
    caution = (
        '<p class="note">The intervals in this section hold at every look at once, so that stopping at a result is '
        "allowed. Tests and intervals elsewhere on this page are made for a number of pictures that was fixed "
        "beforehand: after such a stop, this section decides.</p>"
    )
    return section("stopping", "Why the run stopped", escape(sentences[0]), paragraphs + caution + _pairs(until))


def _pairs(until: Mapping[str, Any]) -> str:
    several = len({(pair["dataset"], pair["model"]) for pair in until["pairs"]}) > 1
    where = ["data set", "model"] if several else []
    rows = [
        [
            *([pair["dataset"], pair["model"]] if several else []),
            pair["metric"],
            pair["method_a"],
            pair["method_b"],
            WORDS[pair["outcome"]],
            (count(pair["pictures"]), float(pair["pictures"])),
            _interval(pair),
        ]
        for pair in until["pairs"]
    ]
    return table(
        [*where, "metric", "first", "second", "decision", "pictures", "mean difference"], rows, words=len(where) + 4
    )


def _interval(pair: Mapping[str, Any]) -> str:
    if pair["low"] is None or pair["high"] is None:
        return "too few pictures"
    return f"{number(pair['difference'])} [{number(pair['low'])}, {number(pair['high'])}]"

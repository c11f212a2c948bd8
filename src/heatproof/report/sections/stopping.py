"""When and why a run stopped that adds pictures until every pair of methods is decided, and the decision on each."""

from __future__ import annotations

from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import section, table
from heatproof.report.typeset import count, escape, listed, number
from heatproof.results.run_info import Decision, Until
from heatproof.results.until_text import stopped_in_words

WORDS = {"better": "first is better", "worse": "second is better", "equivalent": "equivalent", "open": "open"}


def stopping(reading: Reading) -> str | None:
    """Nothing for a run over a fixed number of pictures."""
    until = reading.info.until
    if until is None:
        return None
    sentences = stopped_in_words(until)
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences[1:])
    caution = (
        f'<p class="note">The run looked {escape(_looks(until))}. The tests and intervals of a pair are those of the '
        "look that decided it, at that look’s own share of the error rate: stopping at a result is allowed for. "
        "Pictures came in a random order over all groups, so that groups have no fixed shares.</p>"
    )
    return section(
        "stopping",
        "Why the run stopped",
        escape(sentences[0]),
        paragraphs + caution + _pairs(until),
        named="Every pair",
    )


def _looks(until: Until) -> str:
    """After how many pictures, by data set and model if there are several."""
    stops = until.stops
    after = [
        f"after {listed([count(seen) for seen in dict.fromkeys(stop.looks)])} pictures"
        + (f" ({stop.model} on {stop.dataset})" if len(stops) > 1 else "")
        for stop in stops
    ]
    return "; ".join(after)


def _pairs(until: Until) -> str:
    several = len({(pair.dataset, pair.model) for pair in until.pairs}) > 1
    where = ["data set", "model"] if several else []
    rows = [
        [
            *([pair.dataset, pair.model] if several else []),
            pair.metric,
            pair.method_a,
            pair.method_b,
            WORDS.get(pair.outcome, pair.outcome),
            (count(pair.pictures), float(pair.pictures)),
            _interval(pair),
        ]
        for pair in until.pairs
    ]
    return table(
        [*where, "metric", "first", "second", "decision", "pictures", "mean difference"], rows, words=len(where) + 4
    )


def _interval(pair: Decision) -> str:
    if pair.difference is None or pair.low is None or pair.high is None:
        return "too few pictures"
    return f"{number(pair.difference)} [{number(pair.low)}, {number(pair.high)}]"

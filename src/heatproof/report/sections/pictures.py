"""The pictures: how many of each class, how often the model is right on them, and scores where it is right."""

from __future__ import annotations

from heatproof.report.heat import photo_uri, shown
from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold, section
from heatproof.report.sections.blocks import table as table_html
from heatproof.report.typeset import breakable, count, escape, shortened
from heatproof.results.cautions import cautions
from heatproof.results.census_text import in_words
from heatproof.results.run_info import Census

LEAD = (
    "Scores are of these pictures and of this model’s answers to them. The interval of its accuracy is Wilson’s, at "
    "95&nbsp;%."
)
MOST = 1200  # classes in a table
SHOWN = 12  # comparisons whose means on correctly classified pictures are listed
GLIMPSE, GLIMPSES = 88, 12  # pixels on a side; pictures
HALF = 0.5  # a model that is certainly right on fewer is judged on what it mostly does not know


def _cautions(reading: Reading) -> str:
    """What these pictures cannot carry, as HTML; empty where there is nothing to be careful with."""
    return "".join(f'<p class="warning">{escape(words)}</p>' for words in cautions(reading.scores, reading.info))


def pictures(reading: Reading) -> str | None:
    """Sentences per data set and model, class counts behind a fold; nothing for runs that did not count them."""
    entries = reading.info.pictures
    if not entries:
        return None
    several = len(entries) > 1
    body = "".join(_entry(entry, several) for entry in entries) + correct_only(reading)
    lead = escape(in_words(entries[0]))
    warnings = "".join(dict.fromkeys(map(misgivings, entries))) + _cautions(reading)
    return section("pictures", "The pictures", lead, body, picture=_glimpse(reading) + warnings, rest=LEAD)


def doubts(reading: Reading) -> list[str]:
    """Why to be careful with the whole page, the gravest reason first, as plain sentences."""
    wrong = [premise(entry) for entry in reading.info.pictures]
    return list(dict.fromkeys([*filter(None, wrong), *cautions(reading.scores, reading.info)]))


def _glimpse(reading: Reading) -> str:
    """The first pictures in small."""
    shown_pictures = {exhibit.image: exhibit for exhibit in reading.gallery}
    tiles = "".join(
        f'<img src="{photo_uri(shown(exhibit.picture, None, GLIMPSE))}" width="{GLIMPSE}" '
        f'alt="{escape(shortened(exhibit.target, 40))}">'
        for exhibit in list(shown_pictures.values())[:GLIMPSES]
    )
    return f'<div class="glimpse">{tiles}</div>' if tiles else ""


def correct_only(reading: Reading) -> str:
    """Means of every method on all pictures and on the correctly classified ones, per main comparison."""
    known = reading.pictures
    if not len(known) or not known["right"].eq(False).any():
        return ""  # no picture is misclassified, or none is known to be
    right = known.loc[known["right"].eq(True)]
    parts = []
    for panel in reading.main[:SHOWN]:
        here = right.loc[(right["dataset"] == panel.dataset) & (right["model"] == panel.model), "image"]
        parts.append(_means(reading, panel, set(here)))
    if not any(parts):
        return ""
    note = (
        '<p class="note">Means on all pictures that have a score, and on those of them that the model classifies '
        "correctly. <code>heatproof table RUN --correct-only</code> ranks and tests on these alone.</p>"
    )
    return f"<h3>Where the model is right</h3>{note}{''.join(parts)}"


def _means(reading: Reading, panel: Panel, right: set[str]) -> str:
    scores = reading.table(panel)
    kept = scores[scores.index.isin(right)]
    if len(kept) == len(scores) or not len(scores.columns):
        return ""
    every, correct = scores.mean(), kept.mean()
    rows = [
        (
            str(method),
            float(every[method]),
            (count(int(scores[method].notna().sum())), float(scores[method].notna().sum())),
            float(correct[method]),
            (count(int(kept[method].notna().sum())), float(kept[method].notna().sum())),
        )
        for method in scores.columns
    ]
    direction = "" if reading.higher_is_better(panel.metric) else " ↓"
    head = ("method", f"all{direction}", "images", f"correct only{direction}", "images")
    where = reading.named(panel)
    title = f"{panel.metric}{' · ' + where if where else ''}"
    return fold(title, table_html(head, rows, control=reading.is_control), opened=len(reading.main) == 1)


def premise(entry: Census) -> str:
    """That the model is wrong on most of the pictures; empty where it is not, or not known."""
    if not entry.accuracy or entry.accuracy.high >= HALF:
        return ""
    wrong = entry.known - entry.right
    return (
        f"The model is wrong on {count(wrong)} of {count(entry.known)} pictures. "
        "Where labels are explained, or regions show where the label is, its maps explain what it does not see."
    )


def misgivings(entry: Census) -> str:
    """The same as a warning, in HTML."""
    words = premise(entry)
    title = "What the page says of these pictures rests on a premise that does not hold."
    return f'<p class="warning"><strong>{title}</strong> {escape(words)}</p>' if words else ""


def _entry(entry: Census, named: bool) -> str:
    title = f"<h3>{breakable(entry.dataset)} · {breakable(entry.model)}</h3>" if named else ""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="num">{count(times)}</td></tr>'
        for name, times in list(entry.classes.items())[:MOST]
    )
    table = fold("Pictures by class", f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>') if rows else ""
    narrow = "".join(
        f'<tr><th scope="row">{breakable(name)}</th><td class="num">{low:.3f} … {high:.3f}</td></tr>'
        for name, (low, high) in entry.narrow.items()
    )
    if narrow:
        table += fold("Of little value range", f'<div class="scroll"><table><tbody>{narrow}</tbody></table></div>')
    return f"{title}<p>{escape(in_words(entry))}</p>{misgivings(entry)}{table}"

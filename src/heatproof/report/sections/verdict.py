"""The verdict in words, first: who leads, who is tied, what cannot be separated, and how the controls did."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold, section
from heatproof.report.sections.first_places import first_places
from heatproof.report.sections.headline import compared, headline
from heatproof.report.typeset import breakable, count, counted, emphasised, escape, listed, number
from heatproof.stats.against_blind import MARKS
from heatproof.stats.judges.measured import measured
from heatproof.stats.page import FEW, FEW_GROUPS
from heatproof.stats.verdict import reach

CARDS = 12  # shown at once; further ones are behind a fold
SENTENCES = 4  # per card, likewise
STRONG = ("Nothing",)
STANDINGS = ("clear", "level", "beaten")
UNSEPARATED = "Not separated, or level, means that these images show no difference, not that there is none."
MANY = 12  # beyond so many contestants, who beats whom is for the matrix; the card tells of the leader only


def verdict(reading: Reading) -> str | None:
    """A headline over all comparisons and one card per comparison."""
    if not reading.panels:
        return None
    # What answers comes first; variants and by-products follow.
    cards = [_card(reading, panel) for panel in sorted(reading.panels, key=lambda panel: panel not in reading.main)]
    body = f'<div class="cards">{"".join(cards[:CARDS])}</div>'
    if len(cards) > CARDS:
        rest = f'<div class="cards">{"".join(cards[CARDS:])}</div>'
        body += fold(f"{counted(len(cards) - CARDS, 'further comparison')}", rest)
    page = f'<p class="note">{_promise(reading)}</p>' if any(reading.page.pairs) else ""
    named = "Every comparison in words" if len(cards) > 1 else "The comparison in words"
    lead, rest = headline(reading)
    places = first_places(reading, compared(reading))
    return section("verdict", "The verdict", lead, page + body, picture=places, rest=rest, named=named)


def _promise(reading: Reading) -> str:
    """The error rate that all cards share, and for whom they speak, as HTML, once."""
    reached: dict[str, list[str]] = {}
    for panel in reading.panels:
        if (tests := reading.pairs(panel)) is not None:
            reached.setdefault(reach(tests), []).append(panel.dataset)
    sentences = [reading.page.sentence, UNSEPARATED]
    for words, datasets in reached.items():
        where = f" ({listed(list(dict.fromkeys(datasets)))})" if len(reached) > 1 else ""
        sentences += [f"{words.removesuffix('.')}{where}."] if words else []
    return escape(" ".join(sentences))


def _card(reading: Reading, panel: Panel) -> str:
    where = reading.named(panel)
    many = reading.contenders(panel).shape[1] > MANY
    scored = reading.contenders(panel).shape[1] > 0
    sentences = ["No method has a score here; the section on missing numbers says why."]
    if scored:
        sentences = brief(reading, panel) if many else reading.verdict(panel)
    sentences, hidden = sentences[:SENTENCES], sentences[SENTENCES:]
    words = [*reading.methods, *STRONG]
    body = _paragraphs(sentences, words)
    if hidden:
        body += fold(f"{len(hidden)} more", _paragraphs(hidden, words))
    controls = _paragraphs(against_controls(reading, panel), words)
    if controls:
        body += f'<div class="controls">{controls}</div>'
    tests = reading.pairs(panel)
    images = counted(tests.n_images, "image") if tests is not None else ""
    tag = f'<span class="where">{escape(" · ".join(filter(None, [where, images])))}</span>'
    about = reading.info.metric(panel.metric).summary
    gloss = f'<p class="about">{escape(about)}</p>' if about else ""
    return (
        f'<article class="card"><h3>{breakable(panel.metric)}{tag}</h3>{gloss}{body}{_as_judge(panel.metric)}</article>'
    )


def _as_judge(metric: str) -> str:
    """How far the metric itself can be trusted, in a line, where it was on trial in these settings."""
    lines = [escape(line.sentence) for line in measured().get(metric, ())]
    return f'<p class="about"><strong>As a judge.</strong> {" ".join(lines)}</p>' if lines else ""


def _paragraphs(sentences: Sequence[str], words: Sequence[str]) -> str:
    """Names in bold; a p and its number stay on one line."""
    drawn = (re.sub(r"\bp (=|≤|&lt;) ", r"p&nbsp;\1&nbsp;", emphasised(sentence, words)) for sentence in sentences)
    return "".join(f"<p>{html}</p>" for html in drawn)


def brief(reading: Reading, panel: Panel) -> list[str]:
    """The leader by mean, whom it beats, and how many pairs of methods differ solidly at all."""
    tests, ranks = reading.pairs(panel), reading.standings[panel].ranks
    if tests is None or not ranks:
        return reading.verdict(panel)
    leader = min(ranks, key=lambda method: (ranks[method][0], method))
    others = sorted((method for method in ranks if method != leader), key=lambda method: ranks[method][0])
    pairs = tests.among(list(ranks))
    solid = pairs.loc[pairs["significant"]].to_dict("records")
    beaten = {
        row["method_b"] if row["method_a"] == leader else row["method_a"] for row in solid if row["winner"] == leader
    }
    level = [method for method in others if method not in beaten]
    lead = f"{leader} has the best mean and beats {len(beaten)} of the other {len(others)} methods."
    open_ends = f"Nothing here puts it above {_some(level)}." if level else "It is alone at the top."
    return [lead, open_ends, f"{count(len(solid))} of {counted(len(pairs), 'pair')} of methods differ solidly."]


def against_controls(reading: Reading, panel: Panel) -> list[str]:
    """How the contestants stand to the controls: to the blind ones at once, to each other one by itself."""
    tests = reading.pairs(panel)
    if tests is None:
        return []
    controls = [method for method in tests.methods if reading.is_control(method)]
    rows = tests.frame.loc[tests.frame["controls"] == 1]
    if len(rows) and rows["reason"].isin((FEW, FEW_GROUPS)).all():
        who = f"Control {controls[0]}" if len(controls) == 1 else f"Controls {listed(controls)}"
        return [f"{who}: these {counted(tests.n_images, 'image')} are too few to tell any method from a control."]
    solid = tests.beats()
    contenders = [method for method in tests.methods if method not in controls]
    blind = [control for control in controls if reading.is_blind(control)]
    together = blind if len(blind) > 1 and contenders else []
    controls_by_outcome: dict[str, list[str]] = {}
    for control in (one for one in controls if one not in together):
        better = [m for m in contenders if (m, control) in solid]
        worse = [m for m in contenders if (control, m) in solid]
        level = [m for m in contenders if m not in better and m not in worse]
        controls_by_outcome.setdefault(_measured(contenders, better, level, worse), []).append(control)
    of_others = [
        f"Control {alike[0]}: {what}." if len(alike) == 1 else f"Controls {listed(alike)}, each: {what}."
        for what, alike in controls_by_outcome.items()
    ]
    return [*_against_all(reading, panel), *of_others] if together else of_others


def _against_all(reading: Reading, panel: Panel) -> list[str]:
    """Who is clear of all blind controls, and what the strongest of them reaches: a map that knows nothing."""
    blind = reading.blind(panel)
    standings = {one: met for one, met in reading.against_blind(panel).items() if met != "unknown"}
    clear, level, beaten = ([one for one, met in standings.items() if met == which] for which in STANDINGS)
    if len(clear) == len(standings):
        parts = ["every method beats all of them"]
    else:
        parts = [f"{_some(clear)} beat{'s' * (len(clear) == 1)} all of them"] if clear else ["no method beats them all"]
    parts += [f"{_some(level)} {_is(level)} level with some ({MARKS['level']})"] if level else []
    parts += [f"{_some(beaten)} {_is(beaten)} beaten by some ({MARKS['beaten']})"] if beaten else []
    mean = number(float(reading.table(panel)[blind[0]].mean()))
    return [f"Blind maps ({listed(blind)}): {'; '.join(parts)}. The strongest is {blind[0]} ({mean})."]


def _is(methods: list[str]) -> str:
    return "is" if len(methods) == 1 else "are"


def _measured(contenders: list[str], better: list[str], level: list[str], worse: list[str]) -> str:
    if len(better) == len(contenders):
        return "every method beats it"
    if len(worse) == len(contenders):
        return "it beats every method"
    if len(level) == len(contenders):
        return "no method is separated from it"
    parts = [f"{_some(better)} beat{'s' * (len(better) == 1)} it"] if better else ["no method beats it"]
    if level:
        parts.append(f"{_some(level)} {_is(level)} level with it")
    if worse:
        parts.append(f"it beats {_some(worse)}")
    return "; ".join(parts)


def _some(methods: list[str]) -> str:
    return listed(methods) if len(methods) <= 6 else f"{listed([*methods[:4], f'{len(methods) - 4} others'])}"

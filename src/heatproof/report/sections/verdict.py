"""The verdict in words, first: who leads, who is tied, what cannot be separated, and how the controls did."""

from __future__ import annotations

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.sections.blocks import fold, section
from heatproof.report.sections.headline import headline
from heatproof.report.typeset import breakable, count, counted, emphasised, escape, listed, number
from heatproof.stats.against_blind import MARKS
from heatproof.stats.page import FEW, FEW_GROUPS
from heatproof.stats.verdict import NOT_SEPARATED, closing

CARDS = 12  # shown at once; further ones are behind a fold
SENTENCES = 4  # per card, likewise
STRONG = ("Nothing",)
MANY = 12  # beyond so many contestants, who beats whom is for the matrix; the card tells of the leader only


def verdict(reading: Reading) -> str | None:
    """A headline over all comparisons and one card per comparison."""
    if not reading.panels:
        return None
    # What answers comes first; variants and by-products follow.
    panels = sorted(reading.panels, key=lambda panel: panel not in reading.main)
    once = _once(reading, panels)
    cards = [_card(reading, panel, once=bool(once)) for panel in panels]
    body = f'<div class="cards">{"".join(cards[:CARDS])}</div>'
    if len(cards) > CARDS:
        rest = f'<div class="cards">{"".join(cards[CARDS:])}</div>'
        body += fold(f"{counted(len(cards) - CARDS, 'further comparison')}", rest)
    page = f'<p class="note">{escape(reading.page.sentence)}</p>' if any(reading.page.pairs) else ""
    page += f'<p class="note">{escape(" ".join(once))}</p>' if once else ""
    named = "Every comparison in words" if len(cards) > 1 else "The comparison in words"
    return section("verdict", "The verdict", headline(reading), body + page, named=named)


def _sentences(reading: Reading, panel: Panel) -> list[str]:
    methods = reading.contenders(panel).shape[1]
    if not methods:
        return ["No method has a score here; the section on missing numbers says why."]
    return brief(reading, panel) if methods > MANY else reading.verdict(panel)


def _once(reading: Reading, panels: list[Panel]) -> list[str]:
    """What the tests of these cards are and for whom they speak, to be said once: which data set's, if they differ."""
    found: dict[str, list[str]] = {}
    for panel in panels:
        if (tests := reading.pairs(panel)) is not None:
            found.setdefault(closing(tests.basis), []).append(panel.dataset)
    if len(panels) < 2 or not found:
        return []
    several = len(found) > 1
    named = [f"{listed(list(dict.fromkeys(sets)))}: {words}" if several else words for words, sets in found.items()]
    return [*named, NOT_SEPARATED]


def _card(reading: Reading, panel: Panel, *, once: bool) -> str:
    where, tests = reading.named(panel), reading.pairs(panel)
    below = {NOT_SEPARATED, closing(tests.basis)} if once and tests is not None else set()
    sentences = [sentence for sentence in _sentences(reading, panel) if sentence not in below]
    sentences, hidden = sentences[:SENTENCES], sentences[SENTENCES:]
    words = [*reading.methods, *STRONG]
    body = "".join(f"<p>{emphasised(sentence, words)}</p>" for sentence in sentences)
    if hidden:
        body += fold(f"{len(hidden)} more", "".join(f"<p>{emphasised(sentence, words)}</p>" for sentence in hidden))
    controls = "".join(f"<p>{emphasised(sentence, words)}</p>" for sentence in against_controls(reading, panel))
    if controls:
        body += f'<div class="controls">{controls}</div>'
    tag = f'<span class="where">{escape(where)}</span>' if where else ""
    about = reading.info.metric(panel.metric).summary
    gloss = f'<p class="about">{escape(about)}</p>' if about else ""
    return f'<article class="card"><h3>{breakable(panel.metric)}{tag}</h3>{gloss}{body}</article>'


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
    basis = f"{count(len(solid))} of {counted(len(pairs), 'pair')} of methods differ solidly"
    return [lead, open_ends, f"{basis}, on {counted(tests.n_images, 'image')}.", closing(tests.basis)]


def against_controls(reading: Reading, panel: Panel) -> list[str]:
    """Which contestants beat each control and which do not; alike ones at once, and the strongest blind one by name."""
    tests = reading.pairs(panel)
    if tests is None:
        return []
    controls = [method for method in tests.methods if reading.is_control(method)]
    rows = tests.frame.loc[tests.frame["controls"] == 1]
    solid = tests.beats()
    if len(rows) and rows["reason"].isin((FEW, FEW_GROUPS)).all():
        who = f"Control {controls[0]}" if len(controls) == 1 else f"Controls {listed(controls)}"
        return [f"{who}: these {counted(tests.n_images, 'image')} are too few to tell any method from a control."]
    contenders = [method for method in tests.methods if method not in controls]
    controls_by_outcome: dict[str, list[str]] = {}
    for control in controls:
        better = [m for m in contenders if (m, control) in solid]
        worse = [m for m in contenders if (control, m) in solid]
        level = [m for m in contenders if m not in better and m not in worse]
        controls_by_outcome.setdefault(_measured(contenders, better, level, worse), []).append(control)
    return [
        f"Control {alike[0]}: {what}." if len(alike) == 1 else f"Controls {listed(alike)}, each: {what}."
        for what, alike in controls_by_outcome.items()
    ] + _strongest(reading, panel)


def _strongest(reading: Reading, panel: Panel) -> list[str]:
    """The blind control with the best mean: what a map that knows nothing reaches here, and who is not clear of it."""
    blind, standings = reading.blind(panel), reading.against_blind(panel)
    if len(blind) < 2 or not standings:
        return []
    mean = number(float(reading.table(panel)[blind[0]].mean()))
    beaten, level = ([one for one, met in standings.items() if met == which] for which in ("beaten", "level"))
    parts = [f"the strongest blind control is {blind[0]} ({mean})"]
    parts += [f"a blind control beats {_some(beaten)} ({MARKS['beaten']})"] if beaten else []
    parts += [f"not separated from some blind control: {_some(level)} ({MARKS['level']})"] if level else []
    parts += (
        [f"every method beats each of the {len(blind)} blind controls here"]
        if set(standings.values()) == {"clear"}
        else []
    )
    sentence = "; ".join(parts)
    return [f"{sentence[0].upper()}{sentence[1:]}."]


def _measured(contenders: list[str], better: list[str], level: list[str], worse: list[str]) -> str:
    if len(better) == len(contenders):
        return "every method beats it"
    if len(worse) == len(contenders):
        return "it beats every method"
    if len(level) == len(contenders):
        return "no method is separated from it"
    parts = [f"{_some(better)} beat{'s' * (len(better) == 1)} it"] if better else ["no method beats it"]
    if level:
        parts.append(f"{_some(level)} cannot be separated from it")
    if worse:
        parts.append(f"it beats {_some(worse)}")
    return "; ".join(parts)


def _some(methods: list[str]) -> str:
    return listed(methods) if len(methods) <= 6 else f"{listed([*methods[:4], f'{len(methods) - 4} others'])}"

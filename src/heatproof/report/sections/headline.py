"""The first sentences of the page: what these images can tell, who leads, and who beats what knows nothing."""

from __future__ import annotations

from collections import Counter

from heatproof.report.run_numbers import Panel, Reading
from heatproof.report.typeset import counted, escape, listed
from heatproof.stats.page import FEW, FEW_GROUPS, IDENTICAL

USUAL = ("random", "edges", "centre", "constant")  # maps that know nothing of model and answer
NAMED = 4  # leaders by name; metrics, likewise


def headline(reading: Reading) -> tuple[str, str]:
    """Who leads, and how the methods stand to the blind controls; in sentences, as HTML."""
    contestants = [method for method in reading.methods if not reading.is_control(method)]
    judged = compared(reading)
    if judged:
        sentences = [_doubt(reading, judged), _leaders(reading, judged), _stopped(reading)]
    elif len(contestants) == 1:
        sentences = [
            f"<strong>{escape(contestants[0])}</strong> is the only method here: there is no other to compare it with."
        ]
    elif not contestants:
        sentences = ["There are no two methods here to be compared."]
    else:
        sentences = ["No two methods could be compared: the section on missing numbers says why."]
    return " ".join(filter(None, sentences)), " ".join(filter(None, [_against_blind(reading), _basis(reading, judged)]))


def compared(reading: Reading) -> list[Panel]:
    """The main comparisons in which two methods or more have a rank."""
    return [panel for panel in reading.main if len(reading.standings[panel].ranks) > 1]


def _doubt(reading: Reading, judged: list[Panel]) -> str:
    """The warning that comes first where all that follows is a hint."""
    if not all(_too_few(reading, panel) for panel in judged):
        return ""
    return "These images are too few to tell any two methods apart; what follows is a hint."


def _stopped(reading: Reading) -> str:
    """After how many pictures a run stopped by itself, and what it had decided by then."""
    until = reading.info.until
    if until is None or not until.stops:
        return ""
    seen, there = (sum(getattr(stop, name) for stop in until.stops) for name in ("pictures", "available"))
    if until.race:
        first = (
            "the first place was decided" if not until.undecided else "there were no more, the first place still open"
        )
        return f"A race on {seen:,} of {counted(there, 'picture')}, until {first}."
    found = Counter(pair.outcome for pair in until.pairs)
    solid = found["better"] + found["worse"]
    parts = [f"{counted(solid, 'pair')} of methods {'differs' if solid == 1 else 'differ'}"]
    if found["equivalent"]:
        parts.append(f"{found['equivalent']} {'is' if found['equivalent'] == 1 else 'are'} equivalent")
    if found["open"]:
        parts.append(f"{found['open']} {'is' if found['open'] == 1 else 'are'} open")
    margin = f" (within ±{until.margin:g})" if found["equivalent"] else ""
    return f"Pictures were added until it was solid, {seen:,} of {there:,}: {listed(parts)}{margin}."


def _too_few(reading: Reading, panel: Panel) -> bool:
    tests = reading.pairs(panel)
    if tests is None:
        return True
    reasons = tests.frame.loc[tests.frame["controls"] == 0, "reason"]
    return bool(reasons.isin((FEW, FEW_GROUPS)).any() and reasons.isin((FEW, FEW_GROUPS, IDENTICAL)).all())


def _leaders(reading: Reading, judged: list[Panel]) -> str:
    """How often each contestant comes first, and how often that first place is clear of all others."""
    lead: Counter[str] = Counter()
    clear: Counter[str] = Counter()
    took_part: Counter[str] = Counter()
    for panel in judged:
        ranks = reading.standings[panel].ranks
        best = min(rank for rank, _, _ in ranks.values())
        took_part.update(list(ranks))
        for method, (rank, _, _) in ranks.items():
            lead[method] += rank == best
            clear[method] += rank == best and _beats_all(reading, panel, method, set(ranks) - {method})
    ordered = [(method, times) for method, times in lead.most_common() if times]
    everywhere = [f"<strong>{escape(method)}</strong>" for method, times in ordered if times == len(judged)]
    first, times = ordered[0]
    where = "" if len(judged) == 1 else f" in all {counted(len(judged), 'comparison')}"
    if len(everywhere) > 1:
        return f"{listed(everywhere)} share first place{where}."
    if len(judged) == 1:
        firmly = "and beats every other method" if clear[first] else "but not clear of those behind it"
        return f"{everywhere[0]} comes first, {firmly}."
    if everywhere:
        sentence = f"{everywhere[0]} comes first{where}"
    else:
        of = "" if took_part[first] == len(judged) else f" (it took part in {took_part[first]})"
        others = [
            f"{escape(method)} in {count}{'' if took_part[method] == len(judged) else f' of its {took_part[method]}'}"
            for method, count in ordered[1:NAMED]
        ]
        more = " and others in the rest" if len(ordered) > NAMED else ""
        sentence = (
            f"No method leads everywhere. <strong>{escape(first)}</strong> comes first in {times} of "
            f"{counted(len(judged), 'comparison')}{of}, {listed(others)}{more}"
        )
    if sum(lead.values()) > len(judged):
        sentence += " (a shared first place counts for each)"
    return f"{sentence}; {_clear(sum(clear.values()), len(judged))}."


def _beats_all(reading: Reading, panel: Panel, method: str, others: set[str]) -> bool:
    """By the same tests as the cards and the matrices, which allow for every comparison of the page: a first place on
    four images is no proof, nor is the luckiest of twenty.
    """
    tests = reading.pairs(panel)
    return tests is not None and {(method, other) for other in others} <= tests.beats()


def _clear(clear: int, judged: int) -> str:
    allowing = f", allowing for {judged} comparisons"
    if clear == judged:
        return f"every first place is clear of the rest{allowing}"
    if clear == 0:
        return f"none of these first places is clear of the rest{allowing}"
    return f"{clear} of these first places {'is' if clear == 1 else 'are'} clear of the rest{allowing}"


def _against_blind(reading: Reading) -> str:
    """Who beats every control that knows nothing, in how many of the comparisons, as a sentence."""
    beats: Counter[str] = Counter()
    took_part: Counter[str] = Counter()
    loses: Counter[str] = Counter()
    controls: Counter[str] = Counter()
    compared = 0
    for panel in reading.main:
        tests = reading.pairs(panel)
        blind = [method for method in tests.methods if reading.is_blind(method)] if tests else []
        if tests is None or not blind:
            continue
        controls.update(blind)
        compared += 1
        solid = tests.beats()
        for method in (one for one in tests.methods if not reading.is_control(one)):
            took_part[method] += 1
            beats[method] += all((method, control) in solid for control in blind)
            loses.update([method] * any((control, method) in solid for control in blind))
    there = [escape(method) for method in reading.methods if reading.is_blind(method)]
    if not took_part and there:
        took = "A blind control" if len(there) == 1 else "Blind controls"
        return (
            f"{took} ({listed(there)}) took part, but no method could be compared with "
            f"{'it' if len(there) == 1 else 'them'}: there are too few scores of both."
        )
    if not took_part:
        return "No blind control took part, so nothing here says that a method is better than chance."
    several = max(took_part.values()) > 1
    always = [escape(method) for method in took_part if beats[method] == took_part[method]]
    never = [escape(method) for method in took_part if not beats[method]]
    some = [
        f"{escape(method)} in {beats[method]} of {took_part[method]}"
        for method in took_part
        if 0 < beats[method] < took_part[method]
    ]
    parts = [f"by {_some(always)}{' everywhere' if several else ''}"] if always else []
    parts += [f"by {_some(some)}"] if some else []
    parts += [f"{'never' if several else 'not'} by {_some(never)}"] if never else []
    if len(always) == len(took_part) > 1:
        parts = [f"by every method{' everywhere' if several else ''}"]
    names = listed(
        [escape(name) + ("" if times == compared else f" in {times} of {compared}") for name, times in controls.items()]
    )
    silent = [name for name in there if name not in {escape(one) for one in controls}]
    if len(never) == len(took_part):
        none = "No method beats" if len(took_part) > 1 else f"{never[0]} does not beat"
        what = "the blind control" if len(controls) == 1 else "all blind controls that were run"
        return f"{none} {what} ({names}).{_beaten(loses, several)}{_not_run(reading, silent)}"
    who = f"The blind control ({names}) is" if len(controls) == 1 else f"The blind controls ({names}) are all"
    return f"{who} beaten {', '.join(parts)}.{_beaten(loses, several)}{_not_run(reading, silent)}"


def _beaten(loses: Counter[str], several: bool) -> str:
    """Which methods a blind control beats."""
    if not loses:
        return ""
    beaten = [escape(method) + (f" (in {times})" if several else "") for method, times in loses.most_common()]
    return f" A blind control beats {_some(beaten)}."


def _not_run(reading: Reading, silent: list[str]) -> str:
    """Which of the usual blind controls took no part, or have no scores to be compared with."""
    there = {reading.info.method(one).name or one for one in reading.methods}
    lacking = [name for name in USUAL if name not in there]
    not_run = f" Not run: {listed(lacking)}." if lacking else ""
    return f" No scores of {listed(silent)} to compare with.{not_run}" if silent else not_run


def _some(methods: list[str]) -> str:
    return listed(methods if len(methods) <= 6 else [*methods[:4], f"{len(methods) - 4} others"])


def _basis(reading: Reading, judged: list[Panel]) -> str:
    """What was counted, where the page holds more."""
    if not judged or len(reading.main) == len(reading.panels):
        return ""
    metrics = list(dict.fromkeys(panel.metric for panel in reading.main))
    names = listed([escape(name) for name in metrics]) if len(metrics) <= NAMED else f"{len(metrics)} main measures"
    more = counted(len(reading.panels) - len(reading.main), "further comparison")
    return f"Counted by {names}; {more}, variants of the same question or others, follow in the cards."

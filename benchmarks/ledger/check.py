"""Whether a row that is computed again still says what is stored."""

from __future__ import annotations

import math

from ledger.number import Finding, drawn

ROUNDING = 1e-4  # numbers without an interval may move by this much, of their size


def drifted(before: Finding, now: Finding) -> list[str]:
    """What left its interval, appeared, vanished or changed its verdict, in sentences."""
    stored = {number.what: number for number in before.numbers}
    computed = {number.what: number for number in now.numbers}
    odd = sorted(set(stored) ^ set(computed))
    moved = [f"{what!r} is {'no longer' if what in stored else 'now'} measured" for what in odd]
    for what in (name for name in stored if name in computed):
        old, new = stored[what], computed[what]
        low, high = old.low, old.high
        if math.isnan(low):
            room = ROUNDING * max(1.0, abs(old.value))
            low, high = old.value - room, old.value + room
        if math.isnan(old.value) and math.isnan(new.value):
            continue
        if not low <= new.value <= high:
            moved.append(f"{what!r} was {old} and is now {drawn(new.value, new.unit)}")
    if before.verdict != now.verdict:
        moved.append(f"the verdict was {before.verdict!r} and is now {now.verdict!r}")
    return moved

"""The census of a run's pictures as sentences, for the terminal and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heatproof.results.run_info import Census

CLASSES = 4  # classes by name; of more, how many there are and the extremes


def pictures_in_words(census: Sequence[Census]) -> list[str]:
    """One line per data set and model."""
    several = len(census) > 1
    return [(f"{entry.dataset} · {entry.model}: " if several else "") + in_words(entry) for entry in census]


def in_words(entry: Census) -> str:
    """`60 pictures: 30 car, 30 cat. The model is right on 55 of 60: 92 % (82–96 %).`"""
    total = entry.pictures
    parts = [f"{total} picture{'' if total == 1 else 's'}{_classes(entry.classes, total)}."]
    if accuracy := entry.accuracy:
        span = f"{100 * accuracy.low:.0f}–{100 * accuracy.high:.0f} %"
        parts.append(f"The model is right on {entry.right} of {entry.known}: {100 * accuracy.share:.0f} % ({span}).")
    if entry.narrow_count:
        first = next(iter(entry.narrow), "")
        parts.append(
            f"{entry.narrow_count} fill less than a tenth of their value range (first: {first}): see the data set's "
            "levels."
        )
    return " ".join(parts)


def _classes(counts: Mapping[str, int], total: int) -> str:
    if not counts:
        return ", of classes that are not known"
    rest = total - sum(counts.values())
    unknown = f", {rest} of unknown class" if rest else ""
    if len(counts) <= CLASSES:
        return ": " + ", ".join(f"{times} {name}" for name, times in counts.items()) + unknown
    least, most = min(counts.values()), max(counts.values())
    each = f"{least}" if least == most else f"{least} to {most}"
    return f" of {len(counts)} classes, {each} of each{unknown}"

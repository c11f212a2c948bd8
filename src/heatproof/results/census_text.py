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
    parts = [f"{_counted(entry)}."]
    if accuracy := entry.accuracy:
        span = f"{100 * accuracy.low:.0f}–{100 * accuracy.high:.0f} %"
        parts.append(f"The model is right on {entry.right} of {entry.known}: {100 * accuracy.share:.0f} % ({span}).")
    if entry.question == "value":
        parts.append(
            "The model answers with a value, which is neither right nor wrong; curves of its answer start where the "
            "whole picture is hidden, in units of what hiding it changes."
        )
    if entry.narrow_count:
        first = next(iter(entry.narrow), "")
        parts.append(
            f"{entry.narrow_count} fill less than a tenth of their value range (first: {first}): see the data set's "
            "levels."
        )
    return " ".join(parts)


def _counted(entry: Census) -> str:
    """`60 pictures: 30 car, 30 cat`, or `80 labels on 60 pictures: 50 Edema, 30 Effusion`."""
    total, labels = entry.pictures, entry.pictures if entry.per_label else 0
    shown = entry.distinct if entry.per_label else total
    pictures = f"{shown} picture{'' if shown == 1 else 's'}"
    if labels:
        what = "values" if entry.question == "value" else "labels"
        return f"{labels} {what if labels > 1 else what[:-1]} on {pictures}{_classes(entry.classes, total, what)}"
    return f"{pictures}{'' if entry.question == 'value' else _classes(entry.classes, total)}"


def _classes(counts: Mapping[str, int], total: int, what: str = "classes") -> str:
    if not counts:
        return ", of classes that are not known"
    rest = total - sum(counts.values())
    unknown = f", {rest} of unknown class" if rest else ""
    if len(counts) <= CLASSES:
        return ": " + ", ".join(f"{times} {name}" for name, times in counts.items()) + unknown
    least, most = min(counts.values()), max(counts.values())
    each = f"{least}" if least == most else f"{least} to {most}"
    return f" of {len(counts)} {what}, {each} of each{unknown}"

"""Short method names: a method goes by its bare name where no other method has the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_SPELT = re.compile(r"([A-Za-z_]\w*)\((.*)\)", re.S)


def short_names(labels: Iterable[str]) -> dict[str, str]:
    """label -> name: bare if unique, else with what is wrapped (`smoothgrad(lrp)`) if that is, else in full."""
    labels = list(dict.fromkeys(labels))
    names = {label: label for label in labels}
    for shorter in (_wrapping, _bare):  # the barest that is unique wins
        tried = {label: shorter(label) for label in labels}
        times = Counter(tried.values())
        names |= {label: name for label, name in tried.items() if times[name] == 1}
    return names


def _bare(label: str) -> str:
    spelt = _SPELT.fullmatch(label)
    return spelt[1] if spelt else label


def _wrapping(label: str) -> str:
    spelt = _SPELT.fullmatch(label)
    inner = re.match(r"method=(\w+)", spelt[2]) if spelt else None
    return f"{spelt[1]}({inner[1]})" if spelt and inner else label

"""Completion of component names in the shell: of the last name in a list, from the cached listing, without torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


def names_of(kind: Any) -> Callable[[str], list[tuple[str, str]]]:
    """The completions of an unfinished `a,b,c`: whole lists, each with what its last component is."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        before, comma, last = incomplete.rpartition(",")
        found: list[tuple[str, str]] = []
        with contextlib.suppress(Exception):  # a shell that completes must not show a traceback
            found = [(f"{before}{comma}{name}", words) for name, words in _listed(kind) if name.startswith(last)]
        return found

    return complete


def _listed(kind: Any) -> Iterator[tuple[str, str]]:
    from heatproof.spec.catalogue import catalogue

    return ((row["name"], row["summary"]) for row in catalogue(kind))

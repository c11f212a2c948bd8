"""Simultaneous rank sets: the ranks each method can have, all of them right at once.

Paper: Mogstad, Romano, Shaikh & Wilhelm 2024, "Inference for ranks with applications to mobility across neighbourhoods
and academic achievement across countries"
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def rank_sets(methods: Sequence[str], beats: Collection[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Best and worst possible rank of each method, from the (better, worse) pairs that the tests separate.

    Where the pairs are wrong anywhere with a probability of at most alpha, so are the sets: a method has at least as
    many above it as beat it, and at least as many below it as it beats.
    """
    known = set(methods)
    pairs = {(a, b) for a, b in beats if a in known and b in known}
    return {
        method: (
            1 + sum(worse == method for _, worse in pairs),
            len(methods) - sum(better == method for better, _ in pairs),
        )
        for method in methods
    }

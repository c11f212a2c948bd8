"""Results of another edition: numbers that are computed anew although the same command wrote them."""

from __future__ import annotations

import warnings

from heatproof.run.shards import EDITION
from heatproof.run.store import Store


def warn_of_edition(store: Store) -> None:
    """Warn that the results in this directory are of another edition, if they are."""
    info = store.get_json("info.json")
    if info is None or info.get("edition") == EDITION:
        return
    stored = info.get("edition")
    edition = f"edition {stored}" if isinstance(stored, int) else "an earlier edition"
    warnings.warn(
        f"{store.root} holds results of {edition} of heatproof's components, and this version computes edition "
        f"{EDITION}: scores may mean something else now, so all of them are computed anew (CHANGELOG.md, “Numbers that "
        "changed”)",
        stacklevel=6,
    )

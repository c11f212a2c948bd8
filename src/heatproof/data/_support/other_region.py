"""The region of another picture, told by the data set: a chance level must not depend on who shares a batch."""

from __future__ import annotations

OTHER_REGION = "other_region"  # Batch.labels under which it is told, (B, H, W) bool


def lender(position: int) -> int:
    """Whose region the picture at this position gets: neighbours swap, so each is lent once and never to itself."""
    return position ^ 1

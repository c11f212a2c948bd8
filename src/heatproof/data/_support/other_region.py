"""Regions lent from another picture by the data set, so that a chance level does not depend on the batch."""

from __future__ import annotations

OTHER_REGION = "other_region"  # the key in Batch.labels, (B, H, W) bool


def lender(position: int) -> int:
    """The position whose region this picture gets: neighbours swap, so each is lent once and never to itself."""
    return position ^ 1

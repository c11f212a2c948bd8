"""One picture of BAM with all that is read with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from heatproof.data.bam.names import Entry
from heatproof.errors import BadInput


class Row(NamedTuple):
    """One picture and everything read with it, as the view shows them."""

    entry: Entry
    image: Tensor
    region: Tensor
    native: Tensor  # the region in the picture's own frame
    lent: Tensor  # the region of another picture
    twin: Tensor
    whole: Tensor  # with its object
    gap: int
    has_object: bool


def of_one_size(rows: Sequence[Row]) -> list[Tensor]:
    """The regions in the pictures' own frame, raises `BadInput` if sizes differ."""
    first = rows[0]
    for row in rows:
        if row.native.shape != first.native.shape:
            one, other = ("×".join(map(str, each.native.shape[::-1])) for each in (first, row))
            raise BadInput(
                f"frame='native' needs pictures of one size, got {one} ({first.entry.file}) and {other} "
                f"({row.entry.file}): take frame='input', or give them one size"
            )
    return [row.native for row in rows]

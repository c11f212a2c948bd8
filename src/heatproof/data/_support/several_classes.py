"""Data sets whose pictures show several classes: an entry per picture and class, with that class's region."""

from __future__ import annotations

from collections.abc import Sequence

from heatproof.data._support.files import PictureFile
from heatproof.data._support.picture_groups import Grouping

BETWEEN = "#"  # an entry's id: `000000000139.jpg#chair`


def entry_id(picture: str, name: str) -> str:
    return f"{picture}{BETWEEN}{name}"


def by_picture(files: Sequence[PictureFile]) -> dict[str, Grouping]:
    """Entries of one picture as a sampled group, where there are such."""
    pictures = tuple(file.id.rpartition(BETWEEN)[0] for file in files)
    return {} if len(set(pictures)) == len(pictures) else {"picture": Grouping("sampled", pictures)}

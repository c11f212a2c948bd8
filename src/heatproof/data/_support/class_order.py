"""Class names from sub-folders or a table that got their indices from the alphabet, since nothing else orders them."""

from __future__ import annotations

from heatproof.data._support.picture_files import PictureFiles


def alphabetical(dataset: object) -> tuple[str, ...]:
    """The names that are numbered alphabetically; empty if they contain an index or the classes are known."""
    return dataset.label_names if isinstance(dataset, PictureFiles) else ()

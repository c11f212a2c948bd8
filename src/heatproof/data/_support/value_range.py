"""Pictures that use little of their value range: 12 bits in a 16-bit file reach a model as 15 greys."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from heatproof.types import Batch, Images

FILLED = 0.1  # of the range; below it a picture is nearly one colour, or was read in the wrong range


def narrow(batch: Batch) -> dict[str, tuple[float, float]]:
    """The lowest and highest value of every picture that fills less than a tenth of [0, 1], by id."""
    return {
        identity: (low, high)
        for identity, (low, high) in zip(batch.ids, spans(batch.images), strict=True)
        if high - low < FILLED
    }


def spans(images: Images) -> list[tuple[float, float]]:
    """The lowest and highest value of each picture, over all its channels."""
    if not len(images):
        return []
    flat = images.flatten(1)
    return list(zip(flat.amin(1).tolist(), flat.amax(1).tolist(), strict=True))


def sentence(found: Mapping[str, tuple[float, float]], of: int) -> str:
    """The warning about such pictures, with what to do."""
    first, (low, high) = next(iter(found.items()))
    return (
        f"{len(found)} of {of} pictures fill less than a tenth of their value range ({first}: {low:.3f} … {high:.3f} "
        "of 0 … 1): if they hold fewer bits than their files, as 12 bits in 16, say what is black and white, by "
        "--value-range 0,4095 or folder(path=…,levels=[0,4095])"
    )


def warn_of_narrow(batch: Batch) -> None:
    """Warns at the beginning of a run of pictures that fill too little of their range."""
    found = narrow(batch)
    if found:
        warnings.warn(sentence(found, len(batch)), stacklevel=2)

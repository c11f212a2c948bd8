"""Is a twin the same picture without its object? Outside the mask the two should agree, and JPEGs do not quite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from heatproof.errors import BadInput

# Of 255, at half of the pixels: JPEG, other resizing and soft outlines stay far below, another scene is far above.
OTHER_SCENE = 32


def gap(picture: Image.Image, twin: Image.Image, region: Image.Image, file: str) -> int:
    """By how many of 255 levels the two differ at most outside the region; `BadInput` for the twin of another."""
    apart = np.abs(np.asarray(picture).astype(np.int16) - np.asarray(twin).astype(np.int16)).max(-1)
    outside = apart[np.asarray(region) == 0]
    if not outside.size:
        return 0
    if float(np.median(outside)) > OTHER_SCENE:
        raise BadInput(
            f"{file} and its twin must show the same scene, and half of the pixels outside the object differ by more "
            f"than {OTHER_SCENE} of 255 levels: find the twin that belongs to it"
        )
    return int(outside.max())


def told(gaps: Sequence[int], exact: bool) -> str:
    """The largest gap in a sentence; nothing where all twins agree."""
    if not any(gaps):
        return ""
    said = (
        f"{sum(one > 0 for one in gaps)} of {len(gaps)} pictures differ from their twins outside the object's mask, by "
        f"up to {max(gaps)} of 255 levels (JPEG and soft outlines do that)"
    )
    if exact:
        return f"{said}: each twin was given the picture's own pixels there, so none of it is judged."
    return f"{said}: this is judged along with the object; exact_twins=true leaves it out."

"""Checks twins: outside the mask a picture and its twin should agree, which JPEGs do only nearly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from heatproof.errors import BadInput

# Of 255, at half of the pixels: JPEG, other resizing and soft outlines stay far below, another scene is far above.
OTHER_SCENE = 32


def gap(picture: Image.Image, twin: Image.Image, region: Image.Image, file: str) -> int:
    """The largest difference outside the region, in 255 levels; raises `BadInput` for another picture's twin."""
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


def warning(gaps: Sequence[int], exact: bool) -> str:
    """A sentence with the largest gap; empty if all twins agree."""
    if not any(gaps):
        return ""
    gaps_found = (
        f"{sum(gap > 0 for gap in gaps)} of {len(gaps)} pictures differ from their twins outside the object's mask, by "
        f"up to {max(gaps)} of 255 levels (JPEG and soft outlines do that)"
    )
    if exact:
        return f"{gaps_found}: each twin was given the picture's own pixels there, so none of it is judged."
    return f"{gaps_found}: this is judged along with the object; exact_twins=true leaves it out."

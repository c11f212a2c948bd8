"""TIFF files that are more than a plain picture: several pages, channels or more than 8 bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heatproof.data._support.pictures import MOST_PIXELS, Levels, check_regular, unit_range
from heatproof.errors import BadInput

SUFFIXES = frozenset((".tif", ".tiff"))
MOST_VALUES = 2**28  # in all pages of a stack
MIN_IS_WHITE, SMALLEST_TAG, LARGEST_TAG = 0, 280, 281
ALPHA = (1, 2)  # kinds of extra samples: associated (already multiplied) and not


def read(path: Path, levels: Levels | None, page: int | None) -> npt.NDArray[np.float32] | None:
    """(C, H, W) in [0, 1], or None for a plain picture of 8 bits in grey or colour, which Pillow reads.

    Axes are those that the file declares: its samples or its channels are the channels, whatever else there is (depth,
    time, pages) is counted as pages. `MinIsWhite` is turned round.
    """
    import tifffile

    check_regular(path)
    with tifffile.TiffFile(path) as file:
        series = file.series[0]
        first = series.keyframe
        axes, shape = series.axes, series.shape
        if first.imagewidth * first.imagelength > MOST_PIXELS:
            raise BadInput(
                f"{first.imagewidth}x{first.imagelength} pixels, more than {MOST_PIXELS} in all: scale it down"
            )
        if (
            first.dtype == np.uint8
            and "C" not in axes
            and first.samplesperpixel in (1, 3, 4)
            and first.planarconfig != 2
        ):
            return None
        if first.dtype is None or first.dtype.kind not in "uif":
            return None
        if int(np.prod(shape)) > MOST_VALUES:
            raise BadInput(f"{'x'.join(map(str, shape))} values, more than {MOST_VALUES} in all: split the stack")
        values = _paged(*_decoded(path, series), page)
        values, cover = _without_alpha(values, first)
        scaled = unit_range(values, levels or _declared(first), _full(first.dtype))
        if int(first.photometric) == MIN_IS_WHITE:
            scaled = 1 - scaled
        return scaled if cover is None else np.asarray(scaled * cover + (1 - cover), dtype=np.float32)


def _decoded(path: Path, series: Any) -> tuple[npt.NDArray[Any], str]:
    """All values and the names of their axes; compressed with LZW or JPEG they need a decoder, and OpenCV has one."""
    try:
        return np.asarray(series.asarray()), series.axes
    except ValueError as error:
        if "imagecodecs" not in str(error):
            raise
        import cv2

        found, pages = cv2.imreadmulti(str(path), flags=cv2.IMREAD_UNCHANGED)
        if not found or set(series.axes) & set("CZT"):
            raise BadInput(
                "its compression needs a decoder: pip install imagecodecs, or save it without compression"
            ) from error
        stack = np.stack(pages)
        if stack.ndim == 3:
            return stack, "QYX"
        order = [2, 1, 0, 3][: stack.shape[3]] if stack.shape[3] in (3, 4) else range(stack.shape[3])
        return stack[..., list(order)], "QYXS"


def _paged(values: npt.NDArray[Any], axes: str, page: int | None) -> npt.NDArray[Any]:
    """(C, H, W) of one page."""
    channel = next((axes.index(name) for name in "SC" if name in axes), None)
    if channel is None:
        values, axes, channel = values[None], f"S{axes}", 0
    other = [at for at, name in enumerate(axes) if name not in "YX" and at != channel]
    ordered = values.transpose(*other, channel, axes.index("Y"), axes.index("X"))
    pages: npt.NDArray[Any] = ordered.reshape(-1, *ordered.shape[-3:])
    if page is not None and page >= len(pages):
        raise BadInput(f"page must be below {len(pages)}, the number of its pages, got {page}")
    return np.asarray(pages[page or 0])


def _without_alpha(values: npt.NDArray[Any], page: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32] | None]:
    """The channels without the transparency, which comes last, and how much each pixel covers of what lies behind."""
    if not page.extrasamples or int(page.extrasamples[-1]) not in ALPHA or len(values) < 2:
        return values, None
    cover = unit_range(values[-1:], None, _full(page.dtype))
    if int(page.extrasamples[-1]) == ALPHA[0]:  # multiplied already: only what shines through is added
        raise BadInput("its colours are multiplied by its transparency: save it without transparency")
    return values[:-1], cover


def _declared(page: Any) -> Levels | None:
    """The smallest and largest value, where the file says them."""
    found = [page.tags[tag].value if tag in page.tags else None for tag in (SMALLEST_TAG, LARGEST_TAG)]
    low, high = (value[0] if isinstance(value, tuple) else value for value in found)
    return (float(low or 0), float(high)) if high is not None and float(high) > float(low or 0) else None


def _full(dtype: np.dtype[Any]) -> float:
    """The value of white where nothing else is said; 0 where it must be said."""
    return 1.0 if dtype.kind == "f" else {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}.get(dtype, 0.0)

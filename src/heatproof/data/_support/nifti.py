"""Slices of NIfTI volumes, the right way round.

A volume is brought to RAS+ axes by its affine. Slices lie as radiologists look at them: the patient's right on the
left of the picture, the front (axial) or the head (coronal, sagittal) at the top, and in sagittal slices the face to
the left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from heatproof.data._support.dicom import scaled
from heatproof.data._support.pictures import MOST_PIXELS, Levels, check_regular
from heatproof.errors import BadInput, Missing

Plane: TypeAlias = Literal["axial", "coronal", "sagittal"]
AXES: dict[str, int] = {"sagittal": 0, "coronal": 1, "axial": 2}  # of a volume in RAS+, across which a plane cuts
MOST_VOXELS = 2**30
MOST_CHANNELS = 32
SQUARE = 0.01  # sides of pixels that differ by less count as equal


def is_volume(path: Path) -> bool:
    return path.name.lower().endswith((".nii", ".nii.gz"))


def read(path: Path, levels: Levels | None, page: int | None, plane: Plane) -> npt.NDArray[np.float32]:
    """(C, H, W) in [0, 1] of one slice with square pixels; the fourth axis of a volume are its channels.

    `levels` are black and white in the volume's units; without them the header's `cal_min` and `cal_max` count, or 0
    and 255 of unscaled bytes. What lies beyond is cut.
    """
    try:
        import nibabel
    except ImportError as error:
        raise Missing.package("nibabel", "medical", "Reading NIfTI volumes") from error
    check_regular(path)
    stored = nibabel.load(path)
    shape = tuple(stored.shape)
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] > MOST_CHANNELS):
        raise BadInput(
            f"a volume must have three axes, or four with up to {MOST_CHANNELS} channels, got shape {shape}: split it"
        )
    if int(np.prod(shape)) > MOST_VOXELS:
        raise BadInput(f"{'x'.join(map(str, shape))} voxels, more than {MOST_VOXELS} in all: scale it down")
    if stored.get_data_dtype().kind not in "uif":
        raise BadInput(f"voxels must be numbers, got {stored.get_data_dtype()}: save one volume of numbers per channel")
    cut, spacing = _slice(stored, AXES[plane], page, plane)
    bounds = levels or _declared(stored)
    if bounds is None:
        raise BadInput(
            f"the slice holds values from {cut.min():g} to {cut.max():g} and the file does not say which are black and "
            "white: set the data set's levels (or --value-range), as in levels=[-160, 240]"
        )
    if not np.isfinite(cut).all():
        raise BadInput("the slice holds NaN or infinity: give these voxels a value")
    turned = scaled(cut[::-1, ::-1], bounds).transpose(2, 1, 0)
    return np.stack([_square(one.astype(np.float32), spacing[0], spacing[1]) for one in turned])


def _slice(
    stored: Any, axis: int, page: int | None, plane: Plane
) -> tuple[npt.NDArray[np.float64], tuple[float, float]]:
    """One slice across an axis of RAS+, (first, second, channels) along the other two axes in their order, and the
    distances of its voxels along them. Nothing but the slice is held in memory.
    """
    from nibabel.orientations import io_orientation

    lies = io_orientation(stored.affine)[:3]  # of every stored axis: the axis in RAS+ it runs along, and which way
    if not np.isfinite(lies).all():
        raise BadInput("its affine does not say how it lies: give it one, with one axis for each direction")
    home = [int(np.flatnonzero(lies[:, 0] == direction)[0]) for direction in range(3)]
    count = stored.shape[home[axis]]
    if page is not None and page >= count:
        raise BadInput(f"page must be below {count}, the number of its {plane} slices, got {page}")
    at = count // 2 if page is None else page
    index: list[Any] = [slice(None)] * stored.ndim
    index[home[axis]] = at if lies[home[axis], 1] > 0 else count - 1 - at
    cut = np.asanyarray(stored.dataobj[tuple(index)]).astype(np.float64)
    cut = cut[..., None] if cut.ndim == 2 else cut
    others = [direction for direction in range(3) if direction != axis]
    cut = cut if home[others[0]] < home[others[1]] else cut.swapaxes(0, 1)
    for place, direction in enumerate(others):
        cut = cut if lies[home[direction], 1] > 0 else np.flip(cut, place)
    zooms = stored.header.get_zooms()
    return cut, (float(zooms[home[others[0]]]), float(zooms[home[others[1]]]))


def _declared(volume: Any) -> Levels | None:
    low, high = (float(volume.header.get(name, 0.0)) for name in ("cal_min", "cal_max"))
    if low < high:
        return low, high
    slope = volume.header.get_slope_inter()[0] if hasattr(volume.header, "get_slope_inter") else None
    return (0.0, 255.0) if volume.get_data_dtype() == np.uint8 and slope in (None, 1.0) else None


def _square(values: npt.NDArray[np.float32], across: float, down: float) -> npt.NDArray[np.float32]:
    """The slice with pixels as wide as they are high: the coarser axis is interpolated."""
    least = min(across, down)
    if not least > 0 or max(across, down) - least <= SQUARE * least:
        return values
    width, height = round(values.shape[1] * across / least), round(values.shape[0] * down / least)
    if width * height > MOST_PIXELS:
        raise BadInput(f"{width}x{height} pixels with square ones, more than {MOST_PIXELS}: resample it")
    resized = Image.fromarray(np.ascontiguousarray(values)).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized, dtype=np.float32)

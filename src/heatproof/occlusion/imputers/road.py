"""ROAD's noisy linear imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from scipy.sparse import linalg
from torch import Generator, Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.imputers import multigrid
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, coloured
from heatproof.occlusion.seeded_pictures import drawn, per_row
from heatproof.registry import imputer
from heatproof.types import Images, Keep

# The paper's weights: 1/6 for direct neighbours, 1/12 for diagonal ones.
_NEIGHBOURS = {
    (0, 1): 2.0,
    (1, 0): 2.0,
    (0, -1): 2.0,
    (-1, 0): 2.0,
    (1, 1): 1.0,
    (1, -1): 1.0,
    (-1, 1): 1.0,
    (-1, -1): 1.0,
}


@lru_cache(maxsize=8)
def averages(height: int, width: int) -> sparse.csr_matrix:
    """(n, n): each pixel as the weighted mean of its up to eight neighbours."""
    place = np.arange(height * width).reshape(height, width)
    rows, columns, weights = [], [], []
    for (down, along), weight in _NEIGHBOURS.items():
        here = place[max(0, -down) : height - max(0, down), max(0, -along) : width - max(0, along)]
        there = place[max(0, down) : height + min(0, down), max(0, along) : width + min(0, along)]
        rows.append(here.ravel())
        columns.append(there.ravel())
        weights.append(np.full(here.size, weight))
    table = sparse.csr_matrix((np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))))
    scaled: sparse.csr_matrix = sparse.diags(1 / np.asarray(table.sum(1)).ravel()).dot(table).tocsr()
    return scaled


def solved(picture: npt.NDArray[np.float64], hidden: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """(C, hidden pixels): each the mean of its neighbours, hidden ones included: one linear system, solved exactly."""
    table = averages(*hidden.shape)
    inside = np.flatnonzero(hidden)
    outside = np.flatnonzero(~hidden)
    rows = table[inside]
    system = (sparse.identity(len(inside), format="csr") - rows[:, inside]).tocsc()
    given = rows[:, outside] @ picture.reshape(len(picture), -1)[:, outside].T
    return np.asarray(linalg.splu(system).solve(np.asarray(given)).T)


@lru_cache(maxsize=4)
def _noise(seed: int, shape: tuple[int, ...]) -> Tensor:
    """Cached noise, since all coalitions of a picture share their seed and come in many calls."""
    return torch.randn(shape, generator=Generator().manual_seed(seed))


@imputer("road")
@dataclass(frozen=True)
class NoisyLinear:
    """Hidden pixels are the mean of their neighbours, solved for all at once, plus a little noise (ROAD).

    The system of equations is solved by multigrid up to a fifth of the noise (root mean square; typically a fiftieth),
    or exactly, which takes about fifteen times as long.

    Paper: Rong et al. 2022, "A Consistent and Efficient Evaluation Strategy for Attribution Methods"
    """

    noise: float = 0.01  # standard deviation
    colour: tuple[float, ...] = IMAGENET_MEAN  # of a picture with nothing visible
    solver: Literal["multigrid", "exact"] = "multigrid"
    tolerance: float = 0.002  # of multigrid: root mean square; half a grey level of 256
    random: ClassVar[bool] = True
    concurrent: ClassVar[bool] = True
    in_words: ClassVar[str] = "the mean of their neighbours and a little noise (ROAD)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "colour", tuple(self.colour))
        if self.noise < 0:
            raise BadInput(f"noise of road must be at least 0, got {self.noise}")
        if not self.tolerance > 0:
            raise BadInput(f"tolerance of road must be positive, got {self.tolerance}: solver='exact' has none")

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        seeds = per_row(seeds, images, "road")
        filled = coloured(self.colour, images).expand_as(images).clone()
        for row, visible in enumerate(keep.cpu().numpy()):
            if visible.any() and not visible.all():
                inside = self._inside(images[row].cpu().numpy(), ~visible)
                filled[row][:, ~keep[row]] = torch.from_numpy(inside).to(images)
        if self.noise:
            shape = images.shape[1:]
            filled = filled + self.noise * drawn(seeds, images, lambda dice: _noise(dice.initial_seed(), tuple(shape)))
        return images.where(keep[:, None], filled.clamp(0, 1))

    def _inside(self, picture: npt.NDArray[np.floating], hidden: npt.NDArray[np.bool_]) -> npt.NDArray[np.floating]:
        if self.solver == "exact" or min(hidden.shape) < multigrid.NARROWEST:
            return solved(picture.astype(np.float64), hidden)
        return multigrid.solve(picture.astype(np.float32), hidden, self.tolerance)

"""The SLIC segmenter: superpixels by k-means in position and colour."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from skimage.segmentation import slic

from heatproof import engine
from heatproof.errors import BadInput
from heatproof.occlusion.imputers.mean import IMAGENET_MEAN, IMAGENET_STD, coloured
from heatproof.occlusion.segments import relabelled
from heatproof.registry import segmenter
from heatproof.types import Images, Segments

Space = Literal["grey", "lab", "volume"]


def superpixels(images: Images, n: int, compactness: float, space: Space) -> Segments:
    """SLIC labels of every picture, at most roughly n each.

    `grey` clusters the mean of the normalised channels, `lab` perceptual colour. `volume` follows the paper: the
    channels are slices of a grey volume, so a pixel may belong to different segments in different channels; it gets the
    segment of most of its channels, and of the first where all differ.
    """
    if n < 1:
        raise BadInput(f"n must be at least 1 segment, got {n}")
    if space == "lab" and images.shape[1] != 3:
        raise BadInput(f"space='lab' needs pictures with 3 channels, got {images.shape[1]}: use space='grey'")
    if space != "lab":
        images = (images - coloured(IMAGENET_MEAN, images)) / coloured(IMAGENET_STD, images)
    pictures = images.double().cpu().numpy()
    with ThreadPoolExecutor(engine.free_cores()) as threads:  # SLIC releases the interpreter lock
        cut = list(threads.map(lambda picture: _one(picture, n, compactness, space), pictures))
    labels = [relabelled(one) for one in cut]
    return torch.stack(labels).to(images.device) if labels else images.new_zeros(0, *images.shape[2:]).long()


def _one(picture: npt.NDArray[np.float64], n: int, compactness: float, space: Space) -> npt.NDArray[np.int64]:
    if space == "lab":
        return np.asarray(slic(np.moveaxis(picture, 0, 2), n, compactness, channel_axis=2))
    if space == "grey":
        return np.asarray(slic(picture.mean(0), n, compactness, channel_axis=None))
    volume = np.asarray(slic(picture, n, compactness, channel_axis=None))
    votes = (volume[:, None] == volume[None]).sum(1)  # for each channel, the number of channels that agree with it
    return np.asarray(np.take_along_axis(volume, votes.argmax(0)[None], 0)[0])


@segmenter
@dataclass(frozen=True)
class Slic:
    """SLIC superpixels that follow edges; the actual number of segments may differ from `n`.

    Paper: Achanta et al. 2012, "SLIC Superpixels Compared to State-of-the-Art Superpixel Methods"
    """

    n: int = 25
    compactness: float = 1.0  # larger is squarer; about 10 suits space='lab'
    space: Space = "grey"

    @property
    def in_words(self) -> str:
        return f"about {self.n} superpixels (SLIC)"

    @property
    def expected(self) -> int:
        return self.n

    def __call__(self, images: Images, /) -> Segments:
        return superpixels(images, self.n, self.compactness, self.space)

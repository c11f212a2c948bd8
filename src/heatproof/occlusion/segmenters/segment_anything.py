"""Segments by the Segment-Anything model, where it is installed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import torch

from heatproof.errors import BadInput, Missing, NotApplicable
from heatproof.occlusion.segmenters.from_file import labels_of
from heatproof.registry import segmenter
from heatproof.types import Images, Segments


@lru_cache(maxsize=1)
def _generator(checkpoint: str, network: str) -> Any:
    try:
        import segment_anything
    except ImportError as error:
        raise Missing(
            "segmenter segment_anything needs the package 'segment-anything', which is not installed: "
            "pip install git+https://github.com/facebookresearch/segment-anything"
        ) from error
    if not Path(checkpoint).is_file():
        raise BadInput(f"there is no Segment-Anything checkpoint {checkpoint}: download one, e.g. sam_vit_b_01ec64.pth")
    if network not in segment_anything.sam_model_registry:
        known = ", ".join(sorted(segment_anything.sam_model_registry))
        raise BadInput(f"network of Segment-Anything must be one of {known}, got {network!r}")
    model = segment_anything.sam_model_registry[network](checkpoint=checkpoint)
    return segment_anything.SamAutomaticMaskGenerator(model.eval())


@segmenter
@dataclass(frozen=True)
class SegmentAnything:
    """Segments by Segment-Anything's automatic masks, smaller ones on top; for later runs store them for `from_file`.

    Paper: Kirillov et al. 2023, "Segment Anything"
    """

    checkpoint: str = ""
    network: str = "vit_b"
    in_words: ClassVar[str] = "segments by Segment Anything"

    def __call__(self, images: Images, /) -> Segments:
        if not self.checkpoint:
            raise NotApplicable("segmenter segment_anything needs checkpoint, the path of its weights, and got none")
        generator = _generator(self.checkpoint, self.network)
        shape = (images.shape[2], images.shape[3])
        pictures = (images.expand(-1, 3, -1, -1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        cut = [labels_of([found["segmentation"] for found in generator.generate(one)], shape) for one in pictures]
        return torch.stack([torch.from_numpy(labels) for labels in cut]).to(images.device)

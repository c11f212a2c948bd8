"""Image quality: how far an evaluation's samples are from their originals, by seven full-reference measures and
the PSNR of the removed pixels alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from heatproof import engine
from heatproof.audit.evaluation import Evaluation, Removal
from heatproof.errors import BadInput, Missing, NotApplicable
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.registry import metric
from heatproof.types import REMOVED, Attribution, Curve, Images, Scored

Measure = Literal["psnr", "psnr_masked", "ssim", "ms_ssim", "fsim", "gmsd", "haarpsi", "vsi"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
_SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # the five weights of multi-scale SSIM
_ROOM = 32  # pixels a side: the filters of every measure fit
_CHUNK = 8  # pictures at once: VSI enlarges them, and blocks larger than this cost page faults


def masked_psnr(changed: Images, originals: Images, removed: Tensor) -> Tensor:
    """(B,): PSNR over the removed pixels only, whose (B,) shares are given: visible pixels would dilute the error.

    If other pixels differ too (a soft mask), all error is attributed to the removed ones. Equal pictures have 80 dB, as
    with PSNR.
    """
    error = (changed.clamp(0, 1).double() - originals.double()).square().flatten(1).mean(1).cpu()
    share = removed.double().cpu()
    return -10 * torch.log10(torch.where(share > 0, error / share, error) + 1e-8)


def quality(measure: Measure, changed: Images, originals: Images, removed: Tensor | None = None) -> Tensor:
    """(B,): one measure of the changed pictures against the originals. GMSD is 0 for equal pictures. `removed` is
    the removed share of each picture, for `psnr_masked`; the default is all.

    Multi-scale SSIM needs 161 pixels for its five scales; smaller pictures use as many as fit, with weights
    rescaled to sum to one.
    """
    if measure == "psnr_masked":
        return masked_psnr(changed, originals, torch.ones(len(changed)) if removed is None else removed)
    piq = _piq()
    chromatic = originals.shape[1] == 3
    side = min(originals.shape[2:])
    fit = [count for count in range(1, 6) if (11 - 1) * 2 ** (count - 1) + 1 <= side]
    if measure == "ms_ssim" and not fit:
        raise BadInput(f"ms_ssim needs pictures of at least 11×11, got {tuple(originals.shape[2:])}")
    weights = torch.tensor(_SCALES[: max(fit, default=1)]).to(originals)
    calls: dict[Measure, Callable[[Tensor, Tensor], Any]] = {
        "psnr": lambda x, y: piq.psnr(x, y, data_range=1.0, reduction="none"),
        "ssim": lambda x, y: piq.ssim(x, y, data_range=1.0, reduction="none"),
        "ms_ssim": lambda x, y: piq.multi_scale_ssim(
            x, y, data_range=1.0, reduction="none", scale_weights=weights / weights.sum()
        ),
        "fsim": lambda x, y: piq.fsim(x, y, data_range=1.0, reduction="none", chromatic=chromatic),
        "gmsd": lambda x, y: piq.gmsd(x, y, data_range=1.0, reduction="none"),
        "haarpsi": lambda x, y: piq.haarpsi(x, y, data_range=1.0, reduction="none"),
        "vsi": lambda x, y: piq.vsi(*((p if chromatic else p.expand(-1, 3, -1, -1)) for p in (x, y)), reduction="none"),
    }
    if measure not in calls:
        raise BadInput(f"measure must be one of {', '.join(MEASURES)}, got {measure!r}")
    if not len(originals):
        return torch.empty(0, dtype=torch.float64)
    pairs = list(zip(changed.clamp(0, 1).split(_CHUNK), originals.split(_CHUNK), strict=True))
    try:
        parts = engine.side_by_side(lambda pair: calls[measure](*pair).reshape(-1), pairs)
    except (ValueError, RuntimeError, AssertionError, IndexError) as error:
        if side >= _ROOM:
            raise
        raise NotApplicable(f"{measure} is not defined on pictures of {_size(originals)}: {error}") from error
    return torch.cat(parts).double().cpu()


def _size(images: Images) -> str:
    return "×".join(map(str, images.shape[2:]))


def _piq() -> Any:
    try:
        import_torchvision("piq")
        import piq
    except ImportError as error:
        raise Missing.package("piq", "diffusion", "the audit of image quality") from error
    return piq


@metric
@dataclass(frozen=True)
class ImageQuality:
    """How similar an evaluation's samples are to the originals: PSNR, SSIM, MS-SSIM, FSIM, GMSD, HaarPSI or VSI.

    Similarity is not realism: an evaluation that hardly changes the picture wins. `psnr_masked` is PSNR of the removed
    pixels alone, which does not reward removing less.

    Paper: Kastryulin et al. 2022, "PyTorch Image Quality: Metrics for Image Quality Assessment"
    """

    of: Evaluation = field(default_factory=Removal)
    measure: Measure = "ssim"

    measures: ClassVar[Literal["pictures"]] = "pictures"
    axes: ClassVar[tuple[str, str]] = (REMOVED, "likeness to the original")

    @property
    def higher_is_better(self) -> bool:
        return self.measure != "gmsd"

    def __call__(self, attribution: Attribution, /) -> Scored:
        samples = self.of.samples(attribution)
        levels = samples.images.shape[1]
        originals = attribution.batch.images.repeat_interleave(levels, 0)
        changed, removed = samples.images.flatten(0, 1), samples.removed.flatten()
        values = quality(self.measure, changed, originals, removed).view(-1, levels)
        holes = values.isnan().sum(1).tolist()
        notes = [
            f"{self.measure} is undefined on {n} of {levels} samples: too little contrast to compare" for n in holes
        ]
        remarks = tuple(note if n else "" for note, n in zip(notes, holes, strict=True))
        return Scored(values.mean(1), remarks if any(remarks) else (), Curve(samples.removed, values))

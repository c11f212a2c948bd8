"""Keep-masks of the most important segments that make up a share of the picture."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from heatproof.occlusion.flip_order import lots, removal_ranks
from heatproof.occlusion.segments import segments_of, totals
from heatproof.types import Batch, Maps, Segmenter


def kept_most(maps: Maps, batch: Batch, segmenter: Segmenter, shares: Sequence[float]) -> Tensor:
    """(B, K, H, W) bool: for each share, the segments with the highest mean attribution that make it up.

    Ties are broken by one random order per image, the same for all methods.
    """
    segments = segments_of(batch, segmenter)
    counts = tuple((segments.flatten(1).amax(1) + 1).tolist()) if len(batch) else ()
    widest = max(counts, default=0)
    sizes = totals(segments, torch.ones_like(segments), widest)
    values = totals(segments, maps.to(segments.device), widest) / sizes  # NaN beyond an image's own segments: last
    ranks = removal_ranks(values, lots(batch, counts, "ties"))
    own = torch.tensor(counts)[:, None, None]
    stay = ranks[:, None, :] < (torch.tensor(list(shares))[None, :, None] * own).round()
    stay = stay.to(segments.device)
    flat = segments.flatten(1)[:, None].expand(-1, len(shares), -1)
    return stay.gather(2, flat).view(len(batch), len(shares), *batch.images.shape[2:])

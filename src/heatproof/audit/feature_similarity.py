"""Similarity in feature space: how far hiding a part changes what the network makes of the part that stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, interpolate

from heatproof.audit.evaluation import LEVELS, random_maps
from heatproof.errors import BadInput
from heatproof.methods._support.layer_activations import activations, hook_layer
from heatproof.methods.cam import cam_layer
from heatproof.models._support.token_layouts import as_pictures
from heatproof.occlusion.imputers.internal import Internal, kept_patches, patch_size
from heatproof.occlusion.kept_share import kept_most
from heatproof.occlusion.occluded_images import shown
from heatproof.occlusion.occlusion import Occlusion
from heatproof.registry import metric
from heatproof.types import REMOVED, Attribution, Batch, Curve, Keep, Model, Scored


def similarity(whole: Tensor, occluded: Tensor, visible: Tensor) -> Tensor:
    """(…, K, h, w) features, (…, h, w) visible shares -> (…,): mean cosine of the places, weighted by what is visible.

    NaN where nothing is visible.
    """
    weight = visible.double()
    alike = cosine_similarity(whole.double(), occluded.double(), dim=-3).nan_to_num()
    return (weight * alike).sum((-2, -1)) / weight.sum((-2, -1))


@metric
@dataclass(frozen=True)
class FeatureSimilarity:
    """Cosine of the features at the visible places, whole picture against occluded, as segments go in random order.

    1: hiding the rest leaves what the network makes of the visible part as it was. It judges the occlusion strategy,
    not the method. The layer is that of class activation maps (of a transformer, its last tokens) unless one is named.

    Paper: Blücher et al. 2024, "Decoupling Pixel Flipping and Occlusion Strategy for Consistent XAI
    Benchmarks"
    """

    occlusion: Occlusion = field(default_factory=Occlusion)
    layer: str = ""
    levels: tuple[float, ...] = LEVELS  # kept shares

    higher_is_better: ClassVar[bool] = True
    axes: ClassVar[tuple[str, str]] = (REMOVED, "cosine similarity of features")
    measures: ClassVar[Literal["pictures"]] = "pictures"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if not self.levels or not all(0 < level < 1 for level in self.levels):
            raise BadInput(f"levels must be kept shares between 0 and 1, got {self.levels}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        model, batch = attribution.model, attribution.batch
        if not len(batch):
            return Scored(torch.zeros(0, dtype=torch.float64))
        layer = self.layer or cam_layer(model, batch)
        keep = kept_most(random_maps(batch), batch, self.occlusion.segmenter, self.levels)
        whole = as_pictures(activations(model, batch.images, layer), batch.images.shape[2:])
        occluded = self._occluded(model, batch, keep, layer)
        visible = interpolate(keep.float(), size=whole.shape[2:], mode="area").to(whole.device)
        found = similarity(whole[:, None].expand_as(occluded), occluded, visible).cpu()
        removed = (~keep).flatten(2).double().mean(2).cpu()
        start = torch.zeros(len(found), 1, dtype=torch.float64)
        curve = Curve(torch.cat([start, removed], 1), torch.cat([start + 1, found], 1))
        return Scored(found.nanmean(1), curve=curve)  # of few segments the smallest share may be none

    def _occluded(self, model: Model, batch: Batch, keep: Keep, layer: str) -> Tensor:
        """(B, levels, K, h, w): features of every occluded picture."""
        imputer = self.occlusion.imputer
        if isinstance(imputer, Internal):
            return torch.stack(
                [_without_tokens(model, batch, row, keep[row], layer, imputer) for row in range(len(batch))]
            )
        pictures = shown(batch, keep, self.occlusion)
        features = as_pictures(activations(model, pictures.flatten(0, 1), layer), batch.images.shape[2:])
        unfolded: Tensor = features.unflatten(0, keep.shape[:2])
        return unfolded


def _without_tokens(model: Model, batch: Batch, row: int, keep: Keep, layer: str, imputer: Internal) -> Tensor:
    """(levels, K, h, w): features of one picture whose hidden tokens are dropped, 0 at their places."""
    latest: list[Tensor] = []

    def catch(output: Any) -> Any:
        latest[:] = [output.detach()]
        return output

    side = patch_size(model)
    rows, columns = (length // side for length in batch.images.shape[2:])
    found = []
    handle = hook_layer(model, layer, catch)
    try:
        for mask in keep:
            kept = kept_patches(mask[None], side)[0]
            imputer.answer(model, batch.images[row : row + 1], mask[None])
            tokens = latest[0][0]
            place = tokens.new_zeros(len(kept), tokens.shape[-1])
            place[kept.to(tokens.device)] = tokens[len(tokens) - int(kept.sum()) :]
            found.append(place.T.reshape(-1, rows, columns).float())
    finally:
        handle.remove()
    return torch.stack(found)

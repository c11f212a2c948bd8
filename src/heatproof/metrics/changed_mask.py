"""AUC-IoU with a mask that was made worse on purpose: whether the ranking hangs on the quality of masks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from heatproof.errors import BadInput
from heatproof.metrics._support.changed_masks import Change, changed
from heatproof.metrics._support.localisation import Localisation
from heatproof.metrics._support.normalisation import Choice
from heatproof.metrics._support.regions import regions_of
from heatproof.metrics.auc_iou import Area, AUCIoU
from heatproof.registry import metric
from heatproof.types import Attribution, Scored


@metric("auc_iou_changed_mask")
@dataclass(frozen=True)
class AUCIoUChangedMask(Localisation):
    """AUC-IoU with the region eroded, dilated, shifted or made coarse by `amount` of the picture's shorter side.

    Read it beside `auc_iou`: where the order of methods changes, it hangs on how carefully masks were drawn.
    """

    change: Change = "eroded"
    amount: float = 0.03
    rule: Choice = "by_method"
    thresholds: int = 19
    area: Area = "mean_height"

    axes: ClassVar[tuple[str, str]] = ("threshold", "IoU")

    def __post_init__(self) -> None:
        if not 0 < self.amount < 0.5:
            raise BadInput(f"amount must be a share of the side between 0 and 0.5, got {self.amount}")

    def __call__(self, attribution: Attribution, /) -> Scored:
        regions, batch = regions_of(attribution), attribution.batch
        pixels = max(1, round(self.amount * min(regions.shape[1:])))
        worse = changed(regions, self.change, pixels, batch.generators("changed mask"))
        own = AUCIoU(self.rule, self.thresholds, self.area)
        return own(replace(attribution, batch=replace(batch, regions=worse)))

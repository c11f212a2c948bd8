"""Pixel flipping on photos: which method's order of importance the model confirms."""

from __future__ import annotations

from itertools import pairwise

from ledger.number import Finding, above, every, near
from ledger.rows import paper, recipe, row
from ledger.sample import Sample

paper("pixel_flipping", "Pixel flipping (Blücher et al. 2024)")

PHOTOS = recipe(
    "flipping_photos",
    "photos, EfficientNet-Lite0, SRG over 25 SLIC superpixels filled with the mean colour, the paper's methods. They "
    "differ from the paper's in three settings: LRP with batch norms merged and maps turned upright, the predicted "
    "class, and Shapley values from 20 orders of superpixels.",
    full="--model efficientnet-lite0 --images {photos} --protocols 'pixel_flipping(imputers=[mean])' --limit 100",
)
EMBEDDED = recipe(
    "flipping",
    "the same on the embedded pictures and the embedded object model.",
    full="--protocols 'pixel_flipping(imputers=[mean])' --limit 100",
    quick="--protocols 'pixel_flipping(imputers=[mean])' --limit 8 --methods "
    "'lrp,saliency,input_x_gradient,smoothgrad(method=saliency,draws=5,noise=1,unit=normalised),"
    "integrated_gradients(baseline=mean),shapley(occlusion=mean/slic,readout=log_odds),"
    "pred_diff(occlusion=mean/slic,readout=log_odds),arch_attribute(occlusion=mean/slic,readout=log_odds)'",
)
METRIC = "srg(occlusion=mean/slic)"
CHAIN = (
    "shapley",
    "lrp",
    "smoothgrad(method=saliency",
    "saliency",
    "integrated_gradients",
    "input_x_gradient",
    "random",
)
MARGIN = 0.05  # an SRG this small is none
SHORT = {"smoothgrad(method=saliency": "SmoothGrad-saliency"}


def short(start: str) -> str:
    return SHORT.get(start, start)


for at, where in ((PHOTOS, "photos"), (EMBEDDED, "embedded")):

    @row(
        f"pixel_flipping.order.{where}",
        at,
        "Shapley > LRP > SmoothGrad-saliency > saliency > IG > input × gradient > random",
        "mean SRG, and the differences of neighbours in this order",
    )
    def order(sample: Sample) -> Finding:
        table = sample.panel(METRIC)
        means = [sample.mean(short(one), table, one) for one in CHAIN]
        gaps = [
            sample.difference(f"{short(a)} − {short(b)}", table, a, b, parts=len(CHAIN) - 1) for a, b in pairwise(CHAIN)
        ]
        return Finding((*means, *gaps), every(above(gap) for gap in gaps), tuple(gaps))

    @row(
        f"pixel_flipping.approximations.{where}",
        at,
        "PredDiff and ArchAttribute are behind Shapley values",
        "differences of mean SRG",
    )
    def approximations(sample: Sample) -> Finding:
        table = sample.panel(METRIC)
        gaps = [
            sample.difference(f"Shapley − {name}", table, "shapley", label, parts=2)
            for name, label in (("PredDiff", "pred_diff"), ("ArchAttribute", "arch_attribute"))
        ]
        return Finding(tuple(gaps), every(above(gap) for gap in gaps), tuple(gaps))

    @row(f"pixel_flipping.random.{where}", at, "SRG of a random order is 0", f"its mean within ±{MARGIN}")
    def random(sample: Sample) -> Finding:
        number = sample.mean("random", sample.panel(METRIC), "random")
        return Finding((number,), near(number, 0, MARGIN), (number,))

"""Parts of components by the import paths that studies had before parts were stored by their registered names."""

from __future__ import annotations

from heatproof import registry

FORMER = {
    "heatproof.types:View": "view",
    "heatproof.occlusion.game:Occlusion": "occlusion",
    "heatproof.occlusion.diffusion.sampler:Sampler": "sampler",
    "heatproof.metrics.insignificant_patch:PatchSolver": "patch_solver",
    "heatproof.audit.evaluation:Removal": "removal",
    "heatproof.audit.model_scope:RandomOrders": "random_orders",
    "heatproof.audit.other_classes:OtherClasses": "other_classes",
    "heatproof.data.mosaic_plan:Laid": "laid",
    "heatproof.occlusion.diffusion.guidance:Guidance": "guidance",
}


def former_part(where: str) -> type | None:
    """heatproof's own part that an older study names by the import path of its class; looked up, not imported."""
    return registry.entry("part", FORMER[where]).make if where in FORMER else None  # type: ignore[return-value]

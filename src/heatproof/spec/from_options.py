"""From words on a command line to studies: protocols, or plain methods × metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import heatproof.models
from heatproof import data
from heatproof.errors import BadInput
from heatproof.spec.parse import components
from heatproof.spec.study import Study, on_disk

METHODS = "saliency,input_x_gradient,smoothgrad,integrated_gradients,grad_cam,lrp,random"
METRICS = "mif,lif,srg"


def studies(
    *,
    models: Sequence[str],
    images: Sequence[str],
    masks: str = "",
    methods: str | None,
    metrics: str | None,
    protocols: str | None,
    trust_pickle: bool = False,
    changes: Mapping[str, Any] | None = None,
) -> list[Study]:
    """The studies that were asked for; what was left out is embedded, or a first contestant."""
    wanted = {name: value for name, value in (changes or {}).items() if value is not None}
    if not any((models, images)) and methods is metrics is protocols is None:
        raise BadInput(
            "say what to judge: --model, --images, --methods, --metrics or --protocols (or see `heatproof demo`)"
        )
    for option, said in (("--methods", methods), ("--metrics", metrics), ("--protocols", protocols)):
        if said is not None and not said.strip(" ,"):
            raise BadInput(f"{option} must name at least one, got {said!r}: leave it out, or see `heatproof list`")
    chosen = [heatproof.models.load(spec, trust_pickle=trust_pickle) for spec in models]
    pictures = [data.load(spec, masks) for spec in images]
    contestants = components("method", methods) if methods else None
    asked = []
    for protocol in components("protocol", protocols) if protocols else []:
        asked += protocol.studies(models=chosen or None, datasets=pictures or None, methods=contestants)
    if metrics or not protocols:
        if not chosen and any(on_disk(one) for one in pictures):
            raise BadInput("pictures of one's own need a model: add --model, e.g. --model efficientnet-lite0")
        asked.append(
            Study(
                models=chosen or ["embedded:object"],
                datasets=pictures or ["two_factor"],
                methods=contestants or components("method", METHODS),
                metrics=components("metric", metrics or METRICS),
            )
        )
    return [dataclasses.replace(study, **wanted) for study in asked]

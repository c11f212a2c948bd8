"""Studies from command-line options: protocols, or plain methods × metrics."""

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
    output: str | None = None,
    value_range: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> list[Study]:
    """The studies that the options describe; missing options stand for the embedded models and first contestants."""
    wanted = {name: value for name, value in (changes or {}).items() if value is not None}
    if not any((models, images)) and methods is metrics is protocols is None:
        raise BadInput(
            "say what to judge: --model, --images, --methods, --metrics or --protocols (or see `heatproof demo`)"
        )
    for option, value in (("--methods", methods), ("--metrics", metrics), ("--protocols", protocols)):
        if value is not None and not value.strip(" ,"):
            raise BadInput(f"{option} must name at least one, got {value!r}: leave it out, or see `heatproof list`")
    chosen = [heatproof.models.load(spec, trust_pickle=trust_pickle) for spec in models]
    if output is not None:
        if not chosen:
            raise BadInput("--output says what a model's numbers mean, and no model is named: add --model")
        chosen = [dataclasses.replace(model, output=output, probabilities=None) for model in chosen]
    pictures = [data.load(spec, masks) for spec in images]
    if value_range is not None:
        if not pictures:
            raise BadInput(
                "--value-range says what is black and white in your pictures, and none are named: add --images"
            )
        pictures = [data.between(one, value_range) for one in pictures]
    contestants = components("method", methods) if methods else None
    found = []
    for protocol in components("protocol", protocols) if protocols else []:
        found += protocol.studies(models=chosen or None, datasets=pictures or None, methods=contestants)
    if metrics or not protocols:
        if not chosen and any(on_disk(dataset) for dataset in pictures):
            raise BadInput("your own pictures need a model: add --model, e.g. --model efficientnet-lite0")
        found.append(
            Study(
                models=chosen or ["embedded:object"],
                datasets=pictures or ["two_factor"],
                methods=contestants or components("method", METHODS),
                metrics=components("metric", metrics or METRICS),
            )
        )
    return [dataclasses.replace(study, **wanted) for study in found]

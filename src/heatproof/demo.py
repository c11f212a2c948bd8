"""The demo's studies, on embedded models and data."""

from __future__ import annotations

from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.spec.study import Study

METHODS = ["saliency", "input_x_gradient", "smoothgrad", "integrated_gradients", "grad_cam", "lrp"]
BLIND = ["random", "edges", "centre", "constant"]


def studies(quick: bool = False) -> list[Study]:
    """Pixel flipping and the pointing game; `quick` takes one model, few pictures and a single imputer.

    The regions of the embedded pictures are objects, so the pointing game and the oracle go with the object model.
    """
    answers = ["srg"] if quick else ["srg", "srg(occlusion=occlusion(imputer=telea))"]
    metrics_of = {"embedded:object": [*answers, "pointing_game"]} | ({} if quick else {"embedded:scene": answers})
    return [
        Study(
            models=[model],
            datasets=["two_factor"],
            methods=[*METHODS, *BLIND, *(["oracle"] if "pointing_game" in main else [])],
            metrics=["mif", "lif", *main],
            limit=24 if quick else 60,
            notes={"main": [recipe.label(parse("metric", text)) for text in main]},
        )
        for model, main in metrics_of.items()
    ]

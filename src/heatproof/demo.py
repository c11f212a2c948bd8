"""The demo: what a newcomer sees first, on embedded models and data."""

from __future__ import annotations

from heatproof.study import Study

METHODS = ["saliency", "input_x_gradient", "smoothgrad", "integrated_gradients", "grad_cam", "lrp"]
CONTROLS = ["random", "edges", "oracle"]


def studies(quick: bool = False) -> list[Study]:
    """Pixel flipping and pointing; `quick` asks one model about few pictures, and paints over them in one way only."""
    painted = ["mif", "lif", "srg"]
    inpainted = ["srg(occlusion=occlusion(imputer=telea))"]
    return [
        Study(
            models=["embedded:object"] if quick else ["embedded:object", "embedded:scene"],
            datasets=["two_factor"],
            methods=[*METHODS, *CONTROLS],
            metrics=[*painted, *([] if quick else inpainted), "pointing_game"],
            limit=24 if quick else 60,
        )
    ]

"""The demo: what a newcomer sees first, on embedded models and data."""

from __future__ import annotations

from heatproof.study import Study

METHODS = ["saliency", "input_x_gradient", "smoothgrad", "integrated_gradients", "grad_cam", "lrp"]
CONTROLS = ["random", "edges", "oracle"]


def studies(quick: bool = False) -> list[Study]:
    """Pixel flipping and pointing on the object and the scene model; `quick` asks the object model about few pictures."""
    models = ["embedded:object"] if quick else ["embedded:object", "embedded:scene"]
    return [
        Study(
            models=models,
            datasets=["two_factor"],
            methods=[*METHODS, *CONTROLS],
            metrics=["mif", "lif", "srg", "srg(occlusion=occlusion(imputer=telea))", "pointing_game"],
            limit=24 if quick else 80,
        )
    ]

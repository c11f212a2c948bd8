"""Settings at which costly components keep all their promises in a fraction of the time."""

from __future__ import annotations

from heatproof.metrics._support.fine_tuning import FineTuning
from heatproof.occlusion.occlusion import Occlusion
from heatproof.occlusion.segmenters.grid import Grid

FEW = FineTuning(count=4, steps=1, rows=2)

METHODS: dict[str, dict[str, object]] = {
    "ablation_cam": {"limit": 16},
    "agi": {"classes": 4, "steps": 5},
    "attexplore": {"steps": 4, "draws": 4},
    "blur_ig": {"steps": 15},
    "boundary_ig": {"steps": 10, "attack_steps": 30},
    "deep_lift_shap": {"draws": 4},
    "expected_gradients": {"draws": 12},
    "extremal_perturbation": {"steps": 20, "cells": 12},
    "gradient_shap": {"draws": 12},
    "guided_ig": {"steps": 15},
    "hsic": {"samples": 100},
    "idgi": {"steps": 10},
    "ig2": {"steps": 10},
    "ig_smoothgrad": {"steps": 5, "draws": 4},
    "integrated_gradients": {"steps": 10},
    "isa": {"rounds": 6, "steps": 4},
    "kernel_shap": {"samples": 120},
    "lima": {"occlusion": Occlusion(segmenter=Grid(4))},
    "lime": {"samples": 200},
    "local_attribution": {"classes": 4, "steps": 5},
    "rise": {"masks": 200},
    "shapley": {"permutations": 4},
    "smoothgrad": {"draws": 5},
    "sobol": {"samples": 4, "cells": 5},
    "tcav": {"runs": 10, "level": 1.1},  # networks that learnt nothing tell no concept from chance
    "xrai": {"steps": 10},
}

METRICS: dict[str, dict[str, object]] = {
    "avg_sensitivity": {"draws": 3},
    "continuity": {"shifts": 2},
    "f_fidelity": {"surrogate": FEW, "draws": 2},
    "f_fidelity_minus": {"surrogate": FEW, "draws": 2},
    "fud": {"levels": (0.5,), "draws": 1, "controls": ("random",)},
    "idsds": {"surrogate": FEW},
    "local_lipschitz": {"draws": 3},
    "max_sensitivity": {"draws": 3},
    "sensitivity_n": {"sizes": 3, "sets": 16},
    "smooth_mprt": {"draws": 2},
    **{f"relative_{what}_stability": {"draws": 3, "least": 1} for what in ("input", "output", "representation")},
}

OF = {"method": METHODS, "metric": METRICS}

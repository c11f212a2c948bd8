"""A number that can only be nonsense is refused where it is set, by the field's name; the ends of a scale are not."""

from __future__ import annotations

import dataclasses
import math

import pytest

from heatproof import registry
from heatproof.errors import BadInput
from heatproof.field_types import fits, hints_of
from heatproof.methods.rise import RISE

COUNTS = {
    "ablation_cam": ("limit",),
    "agi": ("classes", "steps"),
    "attexplore": ("steps", "draws"),
    "blur_ig": ("steps", "reference_side"),
    "boundary_ig": ("steps", "attack_steps"),
    "deep_lift": ("draws",),
    "deep_lift_shap": ("draws",),
    "expected_gradients": ("draws",),
    "extremal_perturbation": ("steps", "cells"),
    "finer_cam": ("others",),
    "gradient_shap": ("draws",),
    "guided_ig": ("steps",),
    "idgi": ("steps",),
    "ig2": ("steps", "draws"),
    "ig_smoothgrad": ("steps", "draws"),
    "integrated_gradients": ("steps", "draws"),
    "isa": ("rounds", "steps"),
    "lime": ("samples", "top"),
    "local_attribution": ("classes", "steps"),
    "mean_region": ("count",),
    "mfaba": ("steps",),
    "occlusion": ("positions",),
    "rise": ("masks", "cells"),
    "score_cam": ("limit",),
    "smoothgrad": ("draws",),
    "sobol": ("cells",),
    "xrai": ("steps", "reference_side"),
}
POSITIVE = {
    "agi": ("epsilon",),
    "blur_ig": ("max_sigma", "grad_step"),
    "boundary_ig": ("step_size",),
    "centre": ("width",),
    "ig2": ("length",),
    "isa": ("step_size",),
    "lime": ("kernel_width", "temperature"),
    "local_attribution": ("scale",),
    "mfaba": ("step_size", "epsilon"),
    "occlusion": ("window",),
    "tcav": ("alpha", "level"),
}
NOT_NEGATIVE = {
    "attexplore": ("epsilon", "sigma", "momentum"),
    "attn_lrp": ("gamma_conv", "gamma_linear"),
    "constant": ("value",),
    "finer_cam": ("alpha",),
    "gradient_shap": ("noise",),
    "guided_ig": ("max_dist",),
    "ig_smoothgrad": ("noise",),
    "isa": ("noise", "penalty", "scale"),
    "lima": ("effectiveness", "consistency", "collaboration"),
    "lime": ("alpha",),
    "lrp": ("epsilon", "gamma"),
    "smoothgrad": ("noise",),
    "xrai": ("sigma",),
}
FROM_NONE = {
    "boundary_ig": ("bisections",),
    "generic_attention": ("start_layer",),
    "legrad": ("layers",),
    "transformer_lrp": ("start_layer",),
    "shapley": ("exact_up_to",),
    "tcav": ("seed",),
    "xrai": ("min_size", "dilation", "min_pixels"),
}
SHARES = {"attention_rollout": ("residual",), "attexplore": ("rho", "diversity")}
SOME = {"guided_ig": ("fraction",), "rise": ("share",)}  # shares that may not be nothing
ENDLESS = [("guided_ig", "max_dist"), ("lime", "kernel_width"), ("mfaba", "epsilon"), ("tcav", "level")]
# A key, a value of a label, and a data set, which is looked at when it is asked: any will do.
FREE = [("random_weights", "seed"), ("tcav", "shown_by"), ("mean_region", "of")]


def each(fields: dict[str, tuple[str, ...]], *values: object) -> list[tuple[str, str, object]]:
    return [(method, name, value) for method, names in fields.items() for name in names for value in values]


REFUSED = [
    *each({"hsic": ("samples",), "sobol": ("samples",)}, 1, 0, math.nan),
    *each({"extremal_perturbation": ("area",)}, 0, 1, math.nan),
    *each(COUNTS, 0, -1, math.nan),
    *each(POSITIVE, 0, -0.5, math.nan),
    *each(NOT_NEGATIVE, -0.1, math.nan),
    *each(FROM_NONE, -1, math.nan),
    *each(SHARES, -0.1, 1.1, math.nan),
    *each(SOME, 0, -0.1, 1.1, math.nan),
    *(case for case in each(POSITIVE, math.inf) + each(NOT_NEGATIVE, math.inf) if case[:2] not in ENDLESS),
    *each({"xrai": ("scales",)}, (), (50, 0), (-1,), (math.nan,)),
    *each({"oracle": ("outside",)}, 1, math.inf, -math.inf, math.nan),
    *each({"kernel_shap": ("samples",)}, 3, math.nan),
    *each({"shapley": ("permutations",)}, 0, 3, math.nan),
    *each({"tcav": ("runs",)}, 9, math.nan),
    *each({"tcav": ("size",)}, 1, math.nan),
    *each({"lime": ("samples",)}, 1),
    *each({"occlusion": ("window",)}, 0.01, 1.1),
]
ACCEPTED = [
    *(case for case in each(COUNTS, 1) if case[:2] not in [("lime", "samples"), ("occlusion", "positions")]),
    *each({"lime": ("samples",)}, 2),
    *each(NOT_NEGATIVE, 0),
    *each(FROM_NONE, 0),
    *each(SHARES, 0, 1),
    *each(SOME, 1),
    *((method, name, math.inf) for method, name in ENDLESS),
    ("xrai", "scales", (50,)),
    ("oracle", "outside", -1),
    ("tcav", "level", 1.1),
    ("occlusion", "window", 1),
    *(
        (method, name, None)
        for method, name in (
            ("ablation_cam", "limit"),
            ("blur_ig", "reference_side"),
            ("score_cam", "limit"),
            ("lime", "top"),
        )
    ),
]


@pytest.mark.parametrize(("method", "name", "value"), REFUSED)
def test_nonsense_is_refused_where_it_is_set_and_by_name(method: str, name: str, value: object) -> None:
    made = registry.entry("method", method).make
    with pytest.raises(BadInput, match=rf"\b{name} must .*got "):
        made(**{name: value})
    with pytest.raises(BadInput, match=name):
        dataclasses.replace(made(), **{name: value})


@pytest.mark.parametrize(("method", "name", "value"), ACCEPTED)
def test_the_ends_of_a_scale_are_taken(method: str, name: str, value: object) -> None:
    assert getattr(registry.find("method", method, **{name: value}), name) == value


def test_no_field_with_a_number_is_forgotten() -> None:
    judged = {(method, name) for method, name, _ in REFUSED} | set(FREE)
    for method in registry.names("method"):
        make = registry.entry("method", method).make
        if not make.__module__.startswith("heatproof."):
            continue
        hints = hints_of(make)
        numbers = {name for name in registry.entry("method", method).fields() if fits(1, hints[name])}
        forgotten = {name for name in numbers if hints[name] is not bool and (method, name) not in judged}
        assert not forgotten, f"{method} takes any number for {sorted(forgotten)}"


@pytest.mark.parametrize("count", [2.5, "10", None])
def test_half_a_step_is_refused(count: object) -> None:
    with pytest.raises(BadInput, match="masks must be a whole number, got "):
        RISE(count)  # type: ignore[arg-type]


def test_all_methods_read_the_logit_by_default() -> None:
    fields = {
        name: {field.name: field.default for field in dataclasses.fields(registry.find("method", name))}  # type: ignore[arg-type]
        for name in registry.names("method")
        if name != "precomputed"  # needs a file
    }
    message = {name: known["readout"] for name, known in fields.items() if "readout" in known}
    assert {"saliency", "grad_cam", "occlusion", "rise", "lime", "shapley", "agi"} <= set(message)
    assert message.pop("shapley_cam") == "rest"  # its paper's own: without a curved answer it is Grad-CAM
    assert message.pop("lima") == "probability"  # so is this: its four scores are sums of probabilities and cosines
    assert set(message.values()) == {"logit"}

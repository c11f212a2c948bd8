"""Every protocol judges the blind controls beside its methods, whichever methods are named."""

from __future__ import annotations

import pytest

from heatproof import demo
from heatproof.protocols._support.blind_controls import blind_controls, with_controls
from heatproof.protocols.in_distribution import InDistribution
from heatproof.protocols.mosaics import Mosaics
from heatproof.protocols.pixel_flipping import PixelFlipping
from heatproof.protocols.relative_importance import RelativeImportance
from heatproof.protocols.robustness import Robustness
from heatproof.protocols.sanity import Sanity
from heatproof.protocols.threshold_free import ThresholdFree
from heatproof.spec import recipe
from heatproof.traits import method_traits

NAMES = {"random", "edges", "centre", "constant"}
PROTOCOLS = [
    PixelFlipping(),
    ThresholdFree(temperature=1.0),
    Mosaics(per_class=2),
    InDistribution(audit=False),
    Sanity(),
    Robustness(),
    RelativeImportance(pictures=2, series=False, robustness=False),
]


@pytest.mark.parametrize("methods", [None, ["saliency"]], ids=["usual", "named"])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: type(one).__name__)
def test_every_study_holds_all_blind_controls_once(protocol, methods) -> None:
    for study in protocol.studies(methods=methods):
        labels = [recipe.label(method) for method in study.methods]
        assert set(labels) >= NAMES
        assert len(labels) == len(set(labels))
        if methods:
            assert "saliency" in labels


def test_so_does_the_demo() -> None:
    for study in demo.studies(quick=True):
        assert {recipe.label(method) for method in study.methods} >= NAMES


def test_controls_are_blind_and_need_no_passes() -> None:
    for control in blind_controls():
        traits = method_traits(control)
        assert traits.control
        assert traits.blind
        assert sum(control.cost()) == 0


def test_a_control_that_is_named_is_not_added_again() -> None:
    assert [m if isinstance(m, str) else recipe.label(m) for m in with_controls(["centre", "lrp", "random"])] == [
        "centre",
        "lrp",
        "random",
        "edges",
        "constant",
    ]

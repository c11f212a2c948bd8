"""No steps, draws, rounds or classes is no explanation: refused where it is set."""

from __future__ import annotations

import pytest

from heatproof.errors import BadInput
from heatproof.methods.agi import AGI
from heatproof.methods.attexplore import AttEXplore
from heatproof.methods.boundary_ig import BoundaryIG
from heatproof.methods.isa import ISA
from heatproof.methods.local_attribution import LocalAttribution
from heatproof.methods.mfaba import MFABA


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (AGI, "classes"),
        (AGI, "steps"),
        (AttEXplore, "steps"),
        (AttEXplore, "draws"),
        (BoundaryIG, "steps"),
        (BoundaryIG, "attack_steps"),
        (ISA, "rounds"),
        (ISA, "steps"),
        (LocalAttribution, "classes"),
        (LocalAttribution, "steps"),
        (MFABA, "steps"),
    ],
)
def test_a_count_of_zero_is_refused(method, name):
    with pytest.raises(BadInput, match=f"{name} must be at least 1, got 0"):
        method(**{name: 0})


def test_a_box_without_end_and_fewer_than_no_bisections_are_refused():
    with pytest.raises(BadInput, match="scale"):
        LocalAttribution(scale=0)
    with pytest.raises(BadInput, match="bisections"):
        BoundaryIG(bisections=-1)

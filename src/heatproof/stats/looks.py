"""Looks at data that still come in: when they are taken, and how much of alpha each may spend.

Looks stand at numbers of pictures that grow by half, and a look's tests are the ones of `page_tests` at its own share
of alpha. The shares add up to 1, so that the chance of a wrong decision at any look is at most alpha, whichever look is
the last one (alpha spending, by the union bound).

Paper: Lan & DeMets 1983, "Discrete sequential boundaries for clinical trials"
"""

from __future__ import annotations

import math

from heatproof.errors import BadInput

SHARD = 20  # pictures of a step, at least: tests of fewer skewed scores are too often wrong
GROWTH = 1.5
LEVEL_LOOKS, LEVEL_SHARE = 8, 0.11  # the first looks have equal shares; what is left is for all later ones together


def look_steps(total: int) -> list[int]:
    """After which of `total` steps (of a shard each) to look: 1, 2, 3, 5, 8, 12, 18, …, and after the last."""
    if total < 1:
        raise BadInput(f"looks need at least one step, got {total}.")
    steps = [1]
    while steps[-1] < total:
        steps.append(min(math.ceil(GROWTH * steps[-1]), total))
    return steps


def share(look: int) -> float:
    """The share of alpha of the look with this number, from 1 on; over all numbers they add up to 1."""
    if look < 1:
        raise BadInput(f"looks are numbered from 1, got {look}.")
    if look <= LEVEL_LOOKS:
        return LEVEL_SHARE
    beyond = look - LEVEL_LOOKS
    return (1 - LEVEL_LOOKS * LEVEL_SHARE) / (beyond * (beyond + 1))

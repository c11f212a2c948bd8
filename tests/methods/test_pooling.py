"""The shared channel pooling."""

from __future__ import annotations

import pytest
import torch

from heatproof.errors import BadInput
from heatproof.methods._support.channel_pooling import keeps_sign, pool


def test_each_rule_is_what_it_says() -> None:
    values = torch.tensor([1.0, -3.0, 0.5]).view(1, 3, 1, 1)
    assert float(pool(values, "sum")) == -1.5
    assert float(pool(values, "abs_sum")) == 4.5
    assert float(pool(values, "max_abs")) == 3.0
    assert float(pool(values, "positive_sum")) == 1.5


def test_only_the_sum_keeps_the_sign() -> None:
    values = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    for rule in ("sum", "abs_sum", "max_abs", "positive_sum"):
        assert bool((pool(values, rule) < 0).any()) == keeps_sign(rule)  # type: ignore[arg-type]


def test_an_unknown_rule_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"max_abs.*got 'largest'"):
        pool(torch.zeros(1, 3, 2, 2), "largest")  # type: ignore[arg-type]

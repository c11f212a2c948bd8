"""Priors as denoisers: however the work is shared out, the same bits."""

from __future__ import annotations

import torch
from tiny_prior import tiny

from heatproof.engine import machine


def test_micro_batches_side_by_side_give_the_same_bits(monkeypatch):
    prior = tiny()
    noisy = torch.randn(200, 3, 32, 32, generator=torch.Generator().manual_seed(0), requires_grad=True)
    monkeypatch.setattr(machine, "idle_cores", lambda: 1)
    alone = prior(noisy, 500)
    monkeypatch.setattr(machine, "idle_cores", lambda: 3)
    together = prior(noisy, 500)
    assert torch.equal(alone, together)
    assert not together.requires_grad

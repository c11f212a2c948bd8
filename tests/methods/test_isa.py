"""Iterative search attribution: a ranking of all features, none forgotten."""

from __future__ import annotations

import networks
import torch

from heatproof.methods.isa import ISA


def test_every_feature_gets_its_round() -> None:
    model, batch = networks.small_cnn(), networks.batch(2)
    found = ISA(rounds=7, steps=2).channels(model, batch)
    ordered = found.flatten(1).sort(1).values
    chunk = -(-3072 // 7)
    for turn in range(7):
        part = ordered[:, turn * chunk : (turn + 1) * chunk]
        # neighbouring rounds may overlap by the part of the scale beyond one
        assert (part[:, 0] >= turn - 1e-6).all()
        assert (part[:, -1] <= turn + 1.1 + 1e-6).all()


def test_the_published_variant_forgets_the_last_chunk() -> None:
    model, batch = networks.small_cnn(), networks.batch(2)
    clean, published = (ISA(rounds=7, steps=2, variant=v).channels(model, batch) for v in ("clean", "lmb"))
    left_over = 3072 - 6 * (-(-3072 // 7))
    assert ((published == 0).flatten(1).sum(1) >= left_over).all()
    assert ((clean == 0).flatten(1).sum(1) <= 5).all()


def test_features_the_model_never_sees_go_first() -> None:
    model, batch = networks.linear(), networks.batch(2)
    weights = model.network.fc.weight.data.view(10, 3, 32, 32)
    weights[:, :, :16] = 0
    maps = ISA(rounds=6, steps=2, penalty=0.0)(model, batch)
    assert (maps[:, :16].mean((1, 2)) < 0.6 * maps[:, 16:].mean((1, 2))).all()
    assert maps.isfinite().all()
    assert torch.equal(maps, ISA(rounds=6, steps=2, penalty=0.0)(model, batch))

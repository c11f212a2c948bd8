"""DeepLIFT SHAP: linear models, completeness, captum."""

from __future__ import annotations

import copy

import torch
from captum.attr import DeepLiftShap as CaptumDeepLiftShap
from networks import batch, linear, small_cnn
from torch import nn

from heatproof.methods._support.baselines import starts
from heatproof.methods.deep_lift_shap import DeepLiftShap


def test_on_a_linear_model_it_is_weights_times_the_difference_from_the_mean_baseline() -> None:
    model, shown = linear(), batch(2)
    mean = torch.stack(list(starts("uniform", model, shown, 5))).mean(0)
    weights = model.network.fc.weight.detach()[shown.targets].view(-1, 3, 32, 32)
    maps = DeepLiftShap("uniform", draws=5)(model, shown)
    torch.testing.assert_close(maps, (weights * (shown.images - mean)).sum(1), atol=1e-6, rtol=1e-4)


def test_complete() -> None:
    model, shown = small_cnn(), batch(3)
    method = DeepLiftShap(draws=3)
    gap = method(model, shown).sum((1, 2)).double() - method.total(model, shown)
    assert float(gap.abs().max()) < 1e-4


def test_captum_agrees() -> None:
    model, shown = small_cnn(), batch(1)
    model.network.features[2] = model.network.features[5] = nn.AvgPool2d(2)  # captum's rule of maxima does not add up
    baselines = torch.cat(list(starts("gaussian", model, shown, 4)))
    theirs = CaptumDeepLiftShap(copy.deepcopy(model.network)).attribute(
        model.normalised(shown.images), model.normalised(baselines), target=shown.targets
    )
    maps = DeepLiftShap(draws=4)(model, shown)
    wanted = theirs.sum(1).detach().float()
    torch.testing.assert_close(maps, wanted, atol=1e-4 * float(wanted.abs().max()), rtol=1e-3)

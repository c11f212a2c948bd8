"""LIME against the lime package on the same segments and samples, and its closed forms."""

from __future__ import annotations

import importlib

import networks
import numpy as np
import pytest
import torch

from heatproof import engine
from heatproof.methods.lime import LIME, proximity, ridge
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.segmenters.grid import Grid


def test_on_the_same_samples_the_weights_are_limes(monkeypatch: pytest.MonkeyPatch) -> None:
    lime_image = importlib.import_module("lime.lime_image")
    model, batch = networks.small_vit(), networks.batch(2)
    segments = Grid(4)(batch.images)
    for row in range(2):
        one = batch.select([row])
        target = int(one.targets[0])

        def classify(pictures: np.ndarray) -> np.ndarray:
            images = torch.from_numpy(pictures).permute(0, 3, 1, 2).float()
            return engine.forward(model, images).double().softmax(1).numpy()

        explainer = lime_image.LimeImageExplainer(random_state=11)
        theirs = explainer.explain_instance(
            one.images[0].permute(1, 2, 0).double().numpy(),
            classify,
            labels=(target,),
            top_labels=None,
            hide_color=0,
            num_samples=60,
            random_seed=0,
            segmentation_fn=lambda _, row=row: segments[row].numpy(),
        )
        drawn = np.random.RandomState(11).randint(0, 2, 60 * 16).reshape(60, 16)  # as the package draws them
        drawn[0] = 1
        monkeypatch.setattr(LIME, "_sample", lambda *_, drawn=drawn: torch.from_numpy(drawn).bool())
        found = LIME(samples=60, segmenter=Grid(4), imputer=Constant(), readout="probability")(model, one)[0]
        for segment, weight in theirs.local_exp[target]:
            mine = found[segments[row] == segment]
            assert mine.min() == mine.max()
            assert float(mine[0]) == pytest.approx(weight, abs=1e-6 * abs(theirs.local_exp[target][0][1]) + 1e-9)


def test_ridge_is_scikit_learns() -> None:
    linear_model = importlib.import_module("sklearn.linear_model")
    rng = np.random.default_rng(3)
    design, values, weights = rng.integers(0, 2, (50, 9)), rng.normal(size=50), rng.random(50)
    theirs = linear_model.Ridge(alpha=2.5).fit(design, values, sample_weight=weights).coef_
    found = ridge(*(torch.from_numpy(a) for a in (design, values, weights)), alpha=2.5)
    assert np.abs(found.numpy() - theirs).max() < 1e-10


def test_the_whole_picture_counts_most_and_the_empty_one_least() -> None:
    coalitions = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]).bool()
    near = proximity(coalitions, 0.25)
    assert float(near[0]) == 1
    assert float(near[2]) == pytest.approx(np.exp(-8))
    assert near[0] > near[1] > near[2]


def test_top_marks_the_largest_positive_superpixels() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    signed = LIME(samples=80, segmenter=Grid(4))(model, batch)
    top = LIME(samples=80, segmenter=Grid(4), top=3)(model, batch)
    for weights, marked in zip(signed, top, strict=True):
        positive = weights.unique(sorted=True)[-3:]
        assert torch.equal(marked.bool(), torch.isin(weights, positive[positive > 0]))


def test_a_hot_softmax_flattens_the_weights() -> None:
    model, batch = networks.small_vit(), networks.batch(2)
    cold, hot = (LIME(samples=60, segmenter=Grid(4), temperature=t)(model, batch).abs().sum() for t in (1.0, 50.0))
    assert 0 < hot < 0.1 * cold


def test_logits_of_a_linear_model_are_its_weights_times_what_is_hidden() -> None:
    model, batch = networks.linear(), networks.batch(2)
    maps = LIME(samples=400, segmenter=Grid(2), alpha=1e-9, imputer=Constant())(model, batch)
    shares = (model.network.fc.weight.detach()[batch.targets].view_as(batch.images) * batch.images).sum(1)
    for map_, share, labels in zip(maps, shares, Grid(2)(batch.images), strict=True):
        wanted = torch.stack([share[labels == k].sum() for k in range(4)])
        assert torch.allclose(map_, wanted[labels].float(), atol=1e-4)


def test_quickshift_labels_count_from_zero() -> None:
    images = networks.pictures(2, size=48)
    segments = LIME().segmenter(images)
    for labels in segments:
        assert labels.unique().tolist() == list(range(int(labels.max()) + 1))

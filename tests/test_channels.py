"""Pictures of one, two or five channels that are not square: judged, shown and explained, or refused with a reason."""

from __future__ import annotations

import warnings
from pathlib import Path

import cheaper
import numpy as np
import pytest
import tifffile
import torch
from torch import nn

import heatproof
from heatproof import contact_sheet, data, engine, registry
from heatproof.attribute import attribute
from heatproof.errors import BadModel, HeatproofError
from heatproof.methods.controls import Random
from heatproof.occlusion.occlusion import bound, impute
from heatproof.results.flip_book import coloured
from heatproof.types import Batch, Model

HEIGHT, WIDTH = 24, 20


def model(channels: int) -> Model:
    torch.manual_seed(0)
    layers = [
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
    ]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4))
    return Model("small", network, (0.4,) * channels, (0.25,) * channels)


def batch(channels: int) -> Batch:
    images = torch.rand(2, channels, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(1))
    regions = torch.zeros(2, HEIGHT, WIDTH, dtype=torch.bool)
    regions[:, 5:15, 6:14] = True
    labels = {"label": torch.tensor([0, 1])}
    return Batch(images, torch.tensor([0, 1]), ("a", "b"), regions, twins=images * ~regions[:, None], labels=labels)


SLOW = {"train_set"}  # its donors are drawn, and have three channels


@pytest.mark.parametrize("channels", [1, 5])
def test_every_imputer_and_segmenter_works_or_says_why_not(channels: int) -> None:
    shown = batch(channels)
    keep = torch.rand(2, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(2)) > 0.5
    reasons = []
    for name in sorted(set(registry.names("imputer")) - SLOW):
        try:
            found = impute(bound(registry.find("imputer", name), shown, [0, 1]), shown.images, keep, [1, 2])
        except HeatproofError as error:
            reasons.append(str(error))
        else:
            assert found.shape == shown.images.shape, name
            assert torch.equal(found.where(keep[:, None], 0), shown.images.where(keep[:, None], 0)), name
    for name in registry.names("segmenter"):
        try:
            assert registry.find("segmenter", name)(shown.images).shape == (2, HEIGHT, WIDTH), name
        except HeatproofError as error:
            reasons.append(str(error))
    assert len(reasons) <= 4
    assert all(len(reason) > 20 for reason in reasons)


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("kind", ["method", "metric"])
def test_every_method_and_metric_works_or_says_why_not(channels: int, kind: registry.Kind) -> None:
    network, shown = model(channels), batch(channels)
    reasons = []
    with engine.use(engine.Engine(measure=False)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in registry.names(kind):
            component = registry.find(kind, name, **(cheaper.METHODS.get(name, {}) if kind == "method" else {}))
            try:
                method = component if kind == "method" else Random()
                attribution = attribute(network, shown, method)
                assert attribution.maps.shape == (2, HEIGHT, WIDTH)
                if kind == "metric":
                    component(attribution)
            except HeatproofError as error:
                reasons.append(str(error))
    assert len(reasons) <= 0.25 * len(registry.names(kind))
    assert all(len(reason) > 20 for reason in reasons)


def test_five_channels_from_a_file_to_the_report(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        values = np.random.default_rng(number).integers(0, 4096, (5, HEIGHT, WIDTH), dtype=np.uint16)
        tifffile.imwrite(tmp_path / "in" / f"{number}.tif", values, metadata={"axes": "CYX"}, photometric="minisblack")
    study = heatproof.Study(
        models=[model(5)],
        datasets=[data.between(data.load(str(tmp_path / "in")), "0,4095")],
        methods=["saliency", "kernel_shap(samples=60)"],
        metrics=["srg(points=5)", "sparseness"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a network that learnt nothing
        results = heatproof.run(study, tmp_path / "run")
        for metric in results.metrics:
            assert results.table(metric).notna().to_numpy().sum() == 3 * 2
        page = heatproof.report(results, tmp_path / "report.html")
        assert page.stat().st_size > 10_000
        sheet = contact_sheet.explain(
            model(5), [tmp_path / "in"], [registry.find("method", "saliency")], levels=(0, 4095)
        )
    assert sheet.pictures.shape == (3, HEIGHT, WIDTH, 3)
    assert contact_sheet.draw(sheet).width > 300


def test_other_channels_are_drawn_as_their_mean() -> None:
    two = np.array([[[[0]], [[200]]]], dtype=np.uint8)
    assert coloured(two).tolist() == [[[[100, 100, 100]]]]
    five = np.arange(5, dtype=np.uint8).reshape(1, 5, 1, 1)
    assert coloured(five).ravel().tolist() == [2, 2, 2]


def test_wrong_channels_are_refused_with_what_is_wanted() -> None:
    with pytest.raises(BadModel, match="its first convolution takes 3 channels, and these pictures have 5"):
        attribute(model(3), batch(5), registry.find("method", "saliency"))


def test_the_colour_of_photos_is_grey_where_there_is_no_colour() -> None:
    mean = registry.find("imputer", "mean")
    shown = batch(5)
    filled = mean(shown.images, torch.zeros(2, HEIGHT, WIDTH, dtype=torch.bool))
    torch.testing.assert_close(filled, torch.full_like(shown.images, (0.485 + 0.456 + 0.406) / 3))
    own = registry.find("imputer", "mean", colour=(0.1, 0.2, 0.3, 0.4, 0.5))
    assert own(shown.images, torch.zeros(2, HEIGHT, WIDTH, dtype=torch.bool))[0, :, 0, 0].tolist() == pytest.approx(
        [0.1, 0.2, 0.3, 0.4, 0.5]
    )

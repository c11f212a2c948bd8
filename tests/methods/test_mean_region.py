"""The mean region: without the judged picture and its kin, the same in every batch, and bound by the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from PIL import Image

import heatproof
from heatproof.attribute import attribute
from heatproof.data._support.picture_groups import Grouping
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import NotApplicable
from heatproof.methods import MeanRegion
from heatproof.metrics import AUCIoU
from heatproof.protocols._support.blind_controls import have_regions, with_controls
from heatproof.protocols.pixel_flipping import PixelFlipping
from heatproof.protocols.threshold_free import ThresholdFree
from heatproof.run.shards import shards
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.testing import stage
from heatproof.types import Batch


@dataclass(frozen=True)
class Corners:
    """Pictures whose region is one row each; the first two are of one patient."""

    name: str = "corners"
    size: int = 4

    def __len__(self) -> int:
        return self.size

    def ids(self) -> tuple[str, ...]:
        return tuple(f"p{at}" for at in range(self.size))

    def digest(self, indices: Sequence[int]) -> str:
        return f"{self.name} {list(indices)}"

    def batch(self, indices: Sequence[int]) -> Batch:
        regions = torch.zeros(len(indices), 8, 8, dtype=torch.bool)
        for row, place in enumerate(indices):
            regions[row, place] = True
        ids = tuple(self.ids()[place] for place in indices)
        return Batch(torch.rand(len(ids), 3, 8, 8), torch.zeros(len(ids), dtype=torch.int64), ids, regions)

    def groups(self) -> dict[str, Grouping]:
        return {"patient": Grouping("sampled", ("one", "one", "two", None)[: self.size])}


def rows_of(dataset: Corners) -> list[list[float]]:
    method = MeanRegion(of=dataset)
    maps = method(stage()[0], dataset.batch(range(len(dataset))))
    return [[round(float(value), 6) for value in one[:4, 0]] for one in maps]


def test_neither_the_judged_picture_nor_its_kin_take_part() -> None:
    half, third = 0.5, round(1 / 3, 6)
    assert rows_of(Corners()) == [
        [0, 0, half, half],
        [0, 0, half, half],
        [third, third, 0, third],
        [third, third, third, 0],
    ]


def test_a_single_picture_has_no_other() -> None:
    with pytest.raises(NotApplicable, match="another picture with a region"):
        rows_of(Corners("alone", 1))


def test_batch_mates_and_order_change_nothing() -> None:
    model = stage()[0]
    dataset = TwoFactor(count=30)
    method = MeanRegion(of=dataset)
    whole = method(model, dataset.batch(range(8)))
    assert torch.equal(whole[5], method(model, dataset.batch([5]))[0])
    assert torch.equal(whole.flip(0), method(model, dataset.batch(list(range(8))[::-1])))
    others = dataset.batch([at for at in range(30) if at != 5]).regions
    assert others is not None
    torch.testing.assert_close(whole[5], others.float().mean(0))


def test_without_a_data_set_or_regions_it_says_so(tmp_path) -> None:
    model, batch = stage()
    with pytest.raises(NotApplicable, match="mean_region needs the data set"):
        attribute(model, batch, MeanRegion())
    Image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(tmp_path / "a.png")
    bare = heatproof.data.load(str(tmp_path))
    assert not have_regions([bare])
    with pytest.raises(NotApplicable, match="has none"):
        MeanRegion(of=dataclasses.replace(bare, view=heatproof.View(64)))(model, batch)


def test_a_run_binds_it_to_the_data_set_that_is_judged(tmp_path) -> None:
    study = Study(
        models=["embedded:object"],
        datasets=["two_factor(count=24)", "two_factor(count=24, scale=[0.2, 0.3])"],
        methods=["mean_region", "centre"],
        metrics=["auc_iou"],
    )
    results = heatproof.run(study, tmp_path)
    assert (results.scores["status"] == "ok").all()
    assert set(results.info.methods) == {"mean_region", "centre"}
    assert results.info.methods["mean_region"].blind
    model, place = study.models[0], torch.device("cpu")
    dataset = TwoFactor(count=24)
    batch = dataset.batch(range(24))
    answers = heatproof.engine.forward(model, batch.images).argmax(1)
    direct = AUCIoU()(attribute(model, batch.aimed(answers), MeanRegion(of=dataset))).values
    first = results.table("auc_iou", dataset=results.settings[0][0])["mean_region"].droplevel(["dataset", "model"])
    np.testing.assert_allclose(first[list(batch.ids)].to_numpy(), direct.numpy(), atol=1e-6)
    keys = [shard.units["mean_region", "auc_iou"] for shard in shards(study, place)]
    assert len(set(keys)) == len(keys)


def test_protocols_with_regions_judge_it_once() -> None:
    for protocol in (ThresholdFree(), PixelFlipping()):
        (study,) = protocol.studies(methods=["saliency"])
        assert [recipe.label(one) for one in study.methods].count("mean_region") == 1, protocol
    assert sum(recipe.label(one) == "mean_region" for one in with_controls([MeanRegion()], regions=True)) == 1
    assert "mean_region" not in [recipe.label(one) for one in with_controls(["saliency"])]

"""What is known before the work starts: reported or refused before it."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from networks import small_cnn
from PIL import Image
from torch import Tensor, nn

import heatproof
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, BadModel
from heatproof.run.premises import check
from heatproof.run.shards import shards
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.types import Cost


def checked(*methods: str, metrics: Any = ("srg(points=3)",), **rest: Any) -> list[str]:
    """Names of what will have no score, for a study of the small network."""
    settings = {"models": [small_cnn()], "datasets": [TwoFactor(count=4)], **rest}
    study = Study(methods=list(methods), metrics=list(metrics), **settings)
    work = list(shards(study, heatproof.engine.pick("cpu")))
    return [one.name for one in check(work, lambda shard: False)]


class Grey(nn.Module):
    """Looks at one channel."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 10, 5, 4)

    def forward(self, x: Tensor) -> Tensor:
        answers: Tensor = self.conv(x).amax((2, 3))
        return answers


@pytest.fixture
def photos(tmp_path: Path) -> str:
    for name in ("7_dog", "12_jay"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (32, 32), "teal").save(tmp_path / "photos" / name / "x.png")
    return str(tmp_path / "photos")


def test_a_method_that_does_not_apply_to_the_network_is_named() -> None:
    with pytest.warns(UserWarning, match=r"attention_rollout will have no score \(small_cnn on two_factor"):
        assert checked("attention_rollout", "saliency") == ["attention_rollout"]


def test_a_method_inside_another_is_tried_too() -> None:
    with pytest.raises(BadInput, match="no method of this study can have a score"):
        checked("smoothgrad(method=attention_rollout, draws=50)", "random")


def test_metrics_with_a_prior_of_other_channels_are_named(photos: str) -> None:
    of_photos = {
        "models": [heatproof.Model("grey", Grey(), mean=(0.5,), std=(0.25,), view=heatproof.View(32))],
        "datasets": [photos],
    }
    with pytest.raises(BadInput, match=r"no metric of this study can have a score; fud: .*pictures with 3 channels"):
        checked("saliency", metrics=["fud", "srg(occlusion=occlusion(imputer=diffusion))"], **of_photos)
    with pytest.warns(UserWarning, match="fud will have no score"), pytest.warns(UserWarning, match="labels up to"):
        assert checked("saliency", metrics=["fud", "srg(points=3)"], **of_photos) == ["fud"]


def test_regions_that_pictures_lack_are_demanded(photos: str) -> None:
    of_photos = {"models": [dataclasses.replace(small_cnn(), view=heatproof.View(32))], "datasets": [photos]}
    with pytest.warns(UserWarning, match="--masks FOLDER"), pytest.warns(UserWarning, match="labels up to"):
        assert checked("saliency", metrics=["srg(points=3)", "pointing_game"], **of_photos) == ["pointing_game"]


def test_labels_and_names_must_be_the_models_classes(photos: str) -> None:
    model = dataclasses.replace(small_cnn(), view=heatproof.View(32))
    with pytest.warns(UserWarning, match=r"labels up to 12, and model 'small_cnn' answers with 10 outputs, 0 … 9"):
        checked("saliency", models=[model], datasets=[photos])
    with pytest.raises(BadInput, match=r"labels up to 12|from 0 to 9"):
        checked("saliency", models=[model], datasets=[photos], target="label")
    with pytest.raises(BadModel, match="names 3 classes and answers with 10 outputs"):
        checked("saliency", models=[dataclasses.replace(model, classes=("a", "b", "c"))])


def test_pictures_without_a_mask_are_counted(tmp_path: Path, photos: str) -> None:
    (tmp_path / "masks" / "7_dog").mkdir(parents=True)
    Image.new("L", (32, 32), 255).save(tmp_path / "masks" / "7_dog" / "x.png")
    with pytest.warns(UserWarning, match=r"1 of 2 pictures have no mask in .* \(first: 12_jay/x.png\)"):
        assert len(heatproof.data.load(photos, str(tmp_path / "masks"))) == 2


def test_studies_of_one_run_try_a_method_once_and_show_how_far_they_are() -> None:
    @dataclasses.dataclass(frozen=True)
    class Counted:
        def cost(self) -> Cost:
            return Cost(1, 0)

        def __call__(self, model: heatproof.Model, batch: heatproof.Batch) -> Tensor:
            tries.append(len(batch))
            return batch.images.mean(1)

    tries: list[int] = []
    shown: list[tuple[int, int]] = []
    model, pictures = small_cnn(), TwoFactor(count=2)
    studies = [Study([model], [pictures], [Counted()], [metric]) for metric in ("sparseness", "complexity")]
    work = [shard for study in studies for shard in shards(study, heatproof.engine.pick("cpu"))]
    assert check(work, lambda shard: False, lambda done, total: shown.append((done, total))) == []
    assert tries == [1]
    assert shown == [(0, 2), (1, 2)]


@pytest.mark.parametrize("sure", [True, False])
def test_a_network_that_is_sure_of_some_pictures_is_not_called_untrained(
    sure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["" if sure else "it answers evenly", "it answers evenly"]
    monkeypatch.setattr(sys.modules["heatproof.run.premises"], "undecided", lambda model, logits: answers.pop(0))
    pictures = [TwoFactor(count=2), TwoFactor(count=3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert checked("random", metrics=["sparseness"], datasets=pictures) == []
    said = ", ".join(f"small_cnn on {recipe.label(one)}" for one in pictures)
    assert [str(one.message) for one in caught] == ([] if sure else [f"{said}: it answers evenly"])

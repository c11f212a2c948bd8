"""The mosaic protocol: the paper's methods, the right class explained, studies that can be replayed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from networks import small_cnn
from PIL import Image

from heatproof import registry
from heatproof.data.folder import Folder
from heatproof.data.mosaic import Mosaic
from heatproof.data.two_factor import EASY_PAIR, HARD_PAIR
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.methods.controls import Oracle
from heatproof.methods.lrp import LRP
from heatproof.occlusion.imputers.constant import Constant
from heatproof.protocols.mosaics import Mosaics, contestants
from heatproof.report.run_numbers import Reading
from heatproof.report.sections import protocol_sections
from heatproof.report.sections.mosaics import mosaics
from heatproof.results import Results
from heatproof.run.loop import run
from heatproof.run.shards import aimed, shards
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.types import View

CHEAP = ["input_x_gradient", "grad_cam", "bcos", "random", Oracle(outside=-1.0)]


def test_the_paper_s_eight_methods() -> None:
    names = [(registry.name_of(method) or ("", ""))[1] for method in contestants("paper")]
    assert names == [
        "lime",
        "lrp",
        "integrated_gradients",
        "grad_cam",
        "grad_cam_pp",
        "smoothgrad",
        "kernel_shap",
        "bcos",
    ]
    signed = [name for name, method in zip(names, contestants("paper"), strict=True) if method.signed]  # type: ignore[union-attr]
    assert signed == ["lrp", "integrated_gradients", "kernel_shap", "bcos"]


def test_the_settings_are_the_paper_s() -> None:
    lime, lrp, path, _, _, smooth, shap, _ = contestants("paper", grid=3)
    assert (lime.samples, lime.top, contestants("default")[0].samples) == (1000, 5, 300)  # type: ignore[union-attr]
    assert (lime.imputer, lime.readout) == (Constant(), "probability")  # type: ignore[union-attr]
    assert (lrp.composite, lrp.start, lrp.biases) == ("epsilon_plus_box", "logit", False)  # type: ignore[union-attr]
    assert (path.steps, path.baseline) == (30, "mid_grey")  # type: ignore[union-attr]
    assert (smooth.draws, smooth.noise, smooth.mode) == (10, 0.2, "mean")  # type: ignore[union-attr]
    assert (shap.samples, shap.readout) == (100, "logit")  # type: ignore[union-attr]
    occlusion = shap.occlusion  # type: ignore[union-attr]
    assert occlusion.imputer == Constant((0.5,))
    segments = occlusion.segmenter(torch.zeros(1, 3, 96, 96))[0]
    assert int(segments.max()) + 1 == 36, "four blocks to a tile"
    assert len(segments[:16, :16].unique()) == 1, "none straddles two tiles"
    (study,) = Mosaics(per_class=2).studies(["embedded:object"])
    assert study.methods[-1] == Oracle(outside=-1.0), "perfect by every ratio"


def test_the_class_explained_is_stored_as_given() -> None:
    (study,) = Mosaics(per_class=2).studies(["embedded:object"], None, ["random"])
    stored = json.loads(json.dumps(study.plain()))
    assert stored["notes"]["target"] == "given"
    assert stored["target"] == "label", "not what the model predicts"
    for laid in study.datasets:
        batch = laid.batch(range(4))  # type: ignore[union-attr]
        assert torch.equal(batch.labels["object"], batch.targets), "the label is what is given"


def test_a_study_stored_as_predicted_asks_the_same_and_finds_its_units() -> None:
    (study,) = Mosaics(per_class=2).studies(["embedded:object"], None, ["random"])
    older = Study.from_plain({**json.loads(json.dumps(study.plain())), "target": "predicted"})
    for now, before in zip(*(shards(one, torch.device("cpu")) for one in (study, older)), strict=True):
        assert now.units == before.units
        assert torch.equal(aimed(now)[0].targets, aimed(before)[0].targets)


@pytest.mark.parametrize("model", ["embedded:scene", "efficientnet-lite0"])
def test_a_model_for_other_classes_is_refused(model: str) -> None:
    chosen = dataclasses.replace(small_cnn(), name=model) if model != "embedded:scene" else model
    with pytest.raises(BadInput, match="mosaics are laid by 'object'"):
        Mosaics(per_class=2).studies([chosen], None, ["random"])


def test_the_default_study_has_both_pairs_and_three_networks() -> None:
    (study,) = Mosaics(per_class=2).studies()
    assert [model.name for model in study.models] == [  # type: ignore[union-attr]
        "embedded:object",
        "embedded:object_plain",
        "embedded:object_bcos",
    ]
    assert [one.between for one in study.datasets] == [EASY_PAIR, HARD_PAIR]  # type: ignore[union-attr]
    assert study.protocol == "mosaics"
    again = Study.from_plain(json.loads(json.dumps(study.plain())))
    assert again.plain() == study.plain()
    kept = study.notes["plans"][study.datasets[0].name]  # type: ignore[union-attr]
    assert Mosaic.from_plan(kept, of=TwoFactor()).mosaics == study.datasets[0].mosaics  # type: ignore[union-attr]


def test_protocols_round_trip_and_refuse_nonsense() -> None:
    assert recipe.build(recipe.plain(Mosaics(per_class=3))) == Mosaics(per_class=3)
    with pytest.raises(BadInput, match="preset"):
        Mosaics(preset="fast")  # type: ignore[arg-type]
    for count in (0, -1):
        with pytest.raises(BadInput, match=f"per_class must be at least 1 mosaic, or None .*got {count}"):
            Mosaics(per_class=count)
    with pytest.raises(BadInput, match="need a model"):
        Mosaics().studies(datasets=[TwoFactor()])


def test_folders_become_mosaics_of_as_many_pictures_as_there_are(tmp_path: Path) -> None:
    luck = np.random.default_rng(0)
    for name in ("1_cat", "4_car", "6_dog"):
        (tmp_path / name).mkdir()
        for i in range(5):
            pixels = luck.integers(0, 255, (40, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    (study,) = Mosaics().studies([small_cnn()], [Folder(str(tmp_path), View(32))], ["saliency"])
    (mosaics,) = study.datasets
    assert (mosaics.per_class, len(mosaics)) == (2, 6)  # type: ignore[arg-type, union-attr]
    for i in range(4):
        (tmp_path / "6_dog" / f"{i}.png").unlink()
    with pytest.raises(BadInput, match="needs 2 pictures of every class, got 1 of class 6"):
        Mosaics().studies([small_cnn()], [Folder(str(tmp_path), View(32))], ["saliency"])


def test_the_mosaic_s_class_is_explained_whatever_the_model_says() -> None:
    (study,) = Mosaics(per_class=2).studies(["embedded:object"], None, ["random"])
    for shard in shards(study, torch.device("cpu")):
        batch, _ = aimed(shard)
        assert batch.targets.tolist() == [shard.dataset.mosaics[i].target for i in shard.indices]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    studies = Mosaics(per_class=3).studies(["embedded:object", "embedded:object_bcos"], None, CHEAP)
    return run(studies, tmp_path_factory.mktemp("mosaics"), device="cpu")


def test_a_run_scores_what_can_be_scored_and_says_why_not(finished: Results) -> None:
    assert finished.complete
    scores = finished.scores
    oracle = scores[scores["method"] == "oracle(outside=-1)"]
    assert len(oracle) == 5 * 12 * 2
    assert (oracle["value"] == 1).all()
    cam = scores[(scores["method"] == "grad_cam") & (scores["metric"] != "mosaic_precision")]
    assert set(cam["status"]) == {"not_applicable"}
    bcos = scores[(scores["method"] == "bcos") & (scores["status"] == "ok")]
    assert set(bcos["model"]) == {"embedded:object_bcos"}
    easy = bcos[(bcos["metric"] == "mosaic_precision") & bcos["dataset"].str.startswith("easy")]
    assert easy["value"].mean() > 0.7


def test_the_report_has_a_section_on_mosaics(finished: Results) -> None:
    assert protocol_sections()["mosaics"] is mosaics
    html = mosaics(Reading(finished)) or ""
    assert html.startswith('<section id="mosaics">')
    for words in (
        "Do the mosaics agree",
        "Do methods find the same mosaics hard",
        "Does the ranking carry over",
    ):
        assert words in html
    assert "Judged by precision only" in html
    assert 'class="tiles"' in html


def test_lrp_stays_upright_where_the_logit_is_negative() -> None:
    (study,) = Mosaics(per_class=2).studies(["embedded:object"], None, ["random"])
    model = study.models[0]
    batch = study.datasets[0].batch(range(4))  # type: ignore[union-attr]
    lowest = batch.aimed(model(batch.images).argmin(1))  # type: ignore[operator]
    logits = model(batch.images).detach().gather(1, lowest.targets[:, None])[:, 0]  # type: ignore[operator]
    assert bool((logits < -1).all())
    raw = LRP(upright=False)(model, lowest)  # type: ignore[arg-type]
    for start in ("one_hot", "logit", "abs_logit"):
        upright = LRP(start=start)(model, lowest)  # type: ignore[arg-type]
        size = 1.0 if start == "one_hot" else logits.abs()[:, None, None]
        assert torch.allclose(upright, -raw * size, rtol=1e-4)


def test_the_box_rule_starts_where_pixels_are() -> None:
    (study,) = Mosaics(per_class=2).studies(["embedded:object"], None, ["random"])
    model, batch = study.models[0], study.datasets[0].batch(range(2))  # type: ignore[union-attr]
    box = LRP(composite="epsilon_plus_box", biases=False, upright=False)(model, batch)  # type: ignore[arg-type]
    flat = LRP(composite="epsilon_plus_flat", biases=False, upright=False)(model, batch)  # type: ignore[arg-type]
    assert torch.allclose(box.sum((1, 2)), flat.sum((1, 2)), rtol=1e-3), "both hand on what they get"
    assert not torch.allclose(box, flat)

"""The protocol: the paper's seven methods, on embedded pictures and on folders of pictures with masks."""

from __future__ import annotations

import csv
import dataclasses

import msgspec
import networks
import numpy as np
import pytest
from PIL import Image

from heatproof import data, models
from heatproof.data.ham10000 import DIAGNOSES, HAM10000
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.methods.controls import Oracle, Random
from heatproof.methods.lime import LIME
from heatproof.methods.saliency import Saliency
from heatproof.occlusion.imputers.constant import Constant
from heatproof.protocols.threshold_free import SCALE, ThresholdFree, _seen_as, contestants
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.size_strata import region_shares
from heatproof.report.sections.threshold_free import threshold_free
from heatproof.results.protocol_notes import SizeStrata, ThresholdFreeNotes
from heatproof.run.loop import run
from heatproof.spec import recipe
from heatproof.types import View


def small_model():
    return dataclasses.replace(networks.small_cnn(), view=View(32), name="small")


@pytest.fixture
def lesions(tmp_path):
    """Ten pictures in the folders and under the names HAM10000 is published in."""
    root = tmp_path / "HAM10000"
    dice = np.random.default_rng(0)
    rows = []
    for i in range(10):
        name = f"ISIC_{i:07d}"
        part = root / f"HAM10000_images_part_{1 + i % 2}"
        masks = root / "HAM10000_segmentations_lesion_tschandl"
        part.mkdir(parents=True, exist_ok=True)
        masks.mkdir(parents=True, exist_ok=True)
        picture = dice.integers(0, 255, (45, 60, 3), dtype=np.uint8)
        mask = np.zeros((45, 60), dtype=np.uint8)
        mask[5 : 10 + 3 * i, 5 : 20 + 2 * i] = 255
        Image.fromarray(picture).save(part / f"{name}.jpg")
        Image.fromarray(mask).save(masks / f"{name}_segmentation.png")
        rows.append({"lesion_id": f"HAM_{i:07d}", "image_id": name, "dx": ("mel", "nv")[i % 2]})
    with (root / "HAM10000_metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["lesion_id", "image_id", "dx"])
        writer.writeheader()
        writer.writerows(rows)
    return root


def test_the_paper_preset_is_what_the_paper_says():
    seven = {recipe.plain(one)["method"]: one for one in contestants("paper", 2.28)}
    assert set(seven) == {
        "xrai",
        "lime",
        "grad_cam",
        "integrated_gradients",
        "blur_ig",
        "ig_smoothgrad",
        "guided_ig",
    }
    lime = seven["lime"]
    assert (lime.samples, lime.kernel_width, lime.alpha, lime.top, lime.temperature) == (1000, 1, 10, 5, 2.28)
    assert (seven["integrated_gradients"].steps, seven["integrated_gradients"].baseline) == (25, "mean")
    guided = seven["guided_ig"]
    assert (guided.steps, guided.fraction, guided.max_dist) == (25, 0.5, 1.0)
    assert (seven["ig_smoothgrad"].draws, seven["ig_smoothgrad"].mode) == (25, "squared")
    assert (seven["xrai"].steps, seven["blur_ig"].steps) == (100, 100)


def test_a_given_temperature_reaches_lime_and_the_notes():
    (study,) = ThresholdFree(temperature=2.28).studies([small_model()], [TwoFactor(count=2, size=32)])
    (lime,) = [one for one in study.methods if isinstance(one, LIME)]
    assert lime.temperature == 2.28
    assert (lime.kernel_width, lime.alpha, lime.top, lime.readout) == (1.0, 10.0, 5, "probability")
    assert lime.imputer == Constant()
    assert study.notes["temperature"] == "given"
    assert study.protocol == "threshold_free"


def test_a_temperature_is_fitted_on_held_out_pictures_and_recorded(lesions):
    model = small_model()
    (study,) = ThresholdFree(held_out=str(lesions)).studies([model], [str(lesions)])
    (lime,) = [one for one in study.methods if isinstance(one, LIME)]
    message = study.notes["temperature"]
    assert message["pictures"] == 10
    assert lime.temperature == pytest.approx(message["value"], abs=1e-3)
    (bare,) = ThresholdFree().studies([model], [str(lesions)])
    assert "not fitted" in bare.notes["temperature"]


def test_held_out_folders_mean_the_model_s_classes(tmp_path):
    """Else the k-th folder is taken for the k-th class, and the temperature is fitted to wrong labels."""
    model = dataclasses.replace(models.load("embedded:object"), name="mine", task="label")
    pictures = TwoFactor("held_out", 60, scale=SCALE).batch(range(60))
    for image, label, name in zip(pictures.images, pictures.labels["object"], pictures.ids, strict=True):
        folder = tmp_path / model.classes[int(label)]
        folder.mkdir(exist_ok=True)
        array = (image * 255).round().byte().permute(1, 2, 0).numpy()
        Image.fromarray(array).save(folder / f"{name.replace('/', '_')}.png")
    (study,) = ThresholdFree(held_out=str(tmp_path)).studies([model])
    message = study.notes["temperature"]
    assert message["pictures"] == 60
    assert message["accuracy"] > 0.7
    assert message["doubt"] == ""


def test_held_out_pictures_without_a_class_leave_it_unfitted(lesions):
    model = dataclasses.replace(small_model(), classes=("df", *"bcdefghij"))  # nothing here is a df
    (study,) = ThresholdFree(held_out=str(lesions)).studies([model], [str(lesions)])
    assert study.notes["temperature"].startswith("not fitted: a temperature needs pictures that show one of")


def test_a_doubtful_temperature_warns(lesions):
    with pytest.warns(UserWarning, match="may mean nothing"):
        (study,) = ThresholdFree(held_out=str(lesions)).studies([small_model()], [str(lesions)], None)
    assert "end of the range" in study.notes["temperature"]["doubt"]


def test_the_paper_asks_for_melanoma_on_its_number_of_pictures(lesions):
    (study,) = ThresholdFree("paper", temperature=1.0).studies([small_model()], [HAM10000(str(lesions), subset=(3, 4))])
    assert (study.datasets[0].task, study.datasets[0].subset, study.limit) == ("melanoma", (3, 4), 500)
    requested = _seen_as(small_model(), HAM10000(str(lesions)), paper=True)
    assert (requested.task, requested.subset) == ("melanoma", (167, 333))
    seven = dataclasses.replace(small_model(), classes=DIAGNOSES)
    assert _seen_as(seven, HAM10000(str(lesions)), paper=True).task == "diagnosis"
    two = dataclasses.replace(small_model(), classes=("melanoma", "rest"))
    assert _seen_as(two, HAM10000(str(lesions))) == HAM10000(str(lesions), task="melanoma")
    (usual,) = ThresholdFree(temperature=1.0).studies([small_model()], [HAM10000(str(lesions))])
    assert (usual.datasets[0], usual.limit) == (HAM10000(str(lesions)), 96)


def test_which_rule_was_applied_to_which_method_is_stored():
    def own(model, batch):
        return batch.images.mean(1)

    pictures = [TwoFactor(count=2, size=32)]
    (study,) = ThresholdFree().studies([small_model()], pictures, ["xrai(steps=2)", "grad_cam", Saliency(), own])
    assert study.notes["rules"] == {
        "xrai(steps=2)": "min_max",
        "grad_cam": "positive",
        "saliency": "abs_p99",
        "own": "abs_p99",
        **dict.fromkeys(("random", "edges", "centre", "constant", "mean_region"), "abs_p99"),
    }
    (study,) = ThresholdFree(rule="rank").studies([small_model()], pictures, ["grad_cam"])
    assert study.notes["rules"]["grad_cam"] == "rank"


def test_strata_follow_the_evaluated_set_a_pool_or_fixed_shares(lesions):
    pictures = [str(lesions)]
    strata = [
        msgspec.convert(made.studies([small_model()], pictures, [Saliency()])[0].notes, ThresholdFreeNotes).strata
        for made in (ThresholdFree(), ThresholdFree(pool=str(lesions)), ThresholdFree(cutoffs=(0.069, 0.144)))
    ]
    assert strata[0] == SizeStrata("percentile of the evaluated set", (33.0, 67.0))
    assert strata[1].pool_size == 10
    shares = [np.asarray(Image.open(p)).mean() / 255 for p in lesions.glob("*segmentations*/*.png")]
    assert strata[1].cutoffs == pytest.approx(np.percentile(shares, [33, 67]), abs=1e-6)
    assert strata[2] == SizeStrata("fixed", cutoffs=(0.069, 0.144))
    with pytest.raises(BadInput, match="one of the two"):
        ThresholdFree(pool="two_factor", cutoffs=(0.1,))


def test_mistakes_are_named():
    with pytest.raises(BadInput, match="preset"):
        ThresholdFree(preset="papper")
    with pytest.raises(BadInput, match="need a model"):
        ThresholdFree().studies(datasets=["two_factor"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"temperature": 0.0}, "temperature must be a positive number, got 0"),
        ({"temperature": -2.0}, "temperature must be a positive number"),
        ({"temperature": float("nan")}, "temperature must be a positive number"),
        ({"cutoffs": (0.2, 0.1)}, "cutoffs must ascend between 0 and 1, got 0.2, 0.1"),
        ({"cutoffs": (5.0, 9.0)}, "cutoffs must ascend between 0 and 1"),
        ({"percentiles": (33.0, 167.0)}, "percentiles must ascend between 0 and 100"),
        ({"percentiles": (67.0, 33.0)}, "percentiles must ascend"),
        ({"thresholds": 1}, "thresholds must be at least 2"),
    ],
)
def test_settings_that_mean_nothing_are_refused(fields, words):
    with pytest.raises(BadInput, match=words):
        ThresholdFree(**fields)


def test_ham10000_runs_through_to_the_report(lesions, tmp_path):
    (study,) = ThresholdFree(temperature=1.0, percentiles=(50.0,)).studies(
        [small_model()], [str(lesions)], [Saliency(), Random(), Oracle(), LIME(samples=8, top=2)]
    )
    results = run(study, tmp_path / "out")
    assert results.complete
    ranking = results.ranking("auc_iou").table.set_index("method")["mean"]
    assert ranking["oracle"] == pytest.approx(1)
    assert ranking.drop("oracle").max() < 1
    reading = Reading(results)
    assert "region_share" not in reading.metrics  # it describes pictures and ranks no method
    (panel,) = [one for one in reading.panels if one.metric == "auc_iou"]
    whole = [np.asarray(Image.open(p)).mean() / 255 for p in sorted(lesions.glob("*segmentations*/*.png"))]
    assert sorted(region_shares(reading, panel)) == pytest.approx(sorted(whole), abs=1e-6)
    html = threshold_free(reading)
    for words in ("mean height", "By size of the region", "stratum 2", "Kendall", "normalising rule"):
        assert words in html
    assert "percentile of the evaluated set of 10 pictures" in html


def test_a_folder_of_pictures_with_a_folder_of_masks(tmp_path):
    for i, side in enumerate((8, 16, 24)):
        for kind in ("images", "masks"):
            (tmp_path / "set" / kind).mkdir(parents=True, exist_ok=True)
        picture = np.full((32, 32, 3), 40 * i, dtype=np.uint8)
        mask = np.zeros((32, 32), dtype=np.uint8)
        mask[:side, :side] = 255
        Image.fromarray(picture).save(tmp_path / "set" / "images" / f"{i}.png")
        Image.fromarray(mask).save(tmp_path / "set" / "masks" / f"{i}.png")
    (study,) = ThresholdFree().studies([small_model()], [str(tmp_path / "set")], [Saliency(), Oracle()])
    results = run(study, tmp_path / "out")
    assert results.complete
    shares = results.rows("region_share").drop_duplicates("image").set_index("image")["value"]
    assert shares.tolist() == pytest.approx([(side / 32) ** 2 for side in (8, 16, 24)])


def test_the_share_is_of_the_original_picture_not_of_the_cut(lesions):
    dataset = dataclasses.replace(data.load(str(lesions)), view=View(32, resize=32))
    batch = dataset.batch(range(10))
    shown = batch.regions.float().mean((1, 2))
    message = batch.labels["region_share"]
    assert float((message - shown).abs().max()) > 0.02  # the cut loses the sides

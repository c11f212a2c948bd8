"""The protocol from studies to its section of the report."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from heatproof import models
from heatproof.data.bam.classes import OBJECTS, SCENES
from heatproof.data.bam.layout import BAM
from heatproof.data.cutouts import Cutouts
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.data.two_factor.k_dataset import TwoFactorK
from heatproof.errors import BadInput
from heatproof.methods.cam import GradCam
from heatproof.methods.controls import Constant, Edges
from heatproof.methods.tcav import TCAV
from heatproof.protocols.relative_importance import RelativeImportance, accuracy, blind, clusters, heatmaps, rises
from heatproof.report import report
from heatproof.results import Results
from heatproof.run.loop import run
from heatproof.spec import recipe
from heatproof.types import Batch, Maps, Model

FIRST_CLASS = """
import torch
from torch import nn

class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 1)
    def forward(self, images):
        return self.conv(images).mean((2, 3)) * 0.01 + torch.tensor([1.0, 0.0])

def one():
    return First()

def two():
    return First()

one.mean = two.mean = (0.0, 0.0, 0.0)
one.std = two.std = (1.0, 1.0, 1.0)
one.size = two.size = 64
"""


@dataclass(frozen=True)
class Counting:
    """Brightness, and a list of the models it was given."""

    calls: ClassVar[list[str]] = []

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        self.calls.append(model.name)
        return batch.images.mean(1)


FEW = [GradCam(), Constant(), Edges()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    studies = RelativeImportance(pictures=6, robustness=False).studies(methods=FEW)
    return run(studies, tmp_path_factory.mktemp("run"), device="cpu")


def test_the_contestants_are_the_papers_nine() -> None:
    studies = RelativeImportance(pictures=2, robustness=False, series=False).studies()
    mcs = next(study for study in studies if study.notes["part"] == "mcs")
    contestants = [method for method in mcs.methods if not getattr(method, "control", False)]
    assert len(contestants) == 9
    assert len(heatmaps("default")) == 8
    assert all(getattr(method, "control", False) for method in blind())


def test_every_question_has_its_baseline_beside_it(finished: Results) -> None:
    names = {one.name for one in finished.info.metrics.values()}
    assert names == {"mcs", "idr", "iir", "iir_change", "mcs_relative"}
    labels = set(finished.metrics)
    laws = ("moved", "permuted", "pixels")
    assert {f"{name}(region={law})" for name in ("mcs", "idr", "iir") for law in laws} <= labels
    assert "mcs_relative(region=moved)" in labels
    assert not (finished.scores["status"] == "failed").any()


def test_blind_controls_score_what_blind_maps_must(finished: Results) -> None:
    def mean(metric: str, method: str) -> float:
        rows = finished.rows(metric)
        return float(rows[(rows["method"] == method) & (rows["status"] == "ok")]["value"].mean())

    mcs = next(label for label in finished.metrics if label == "mcs")
    assert mean(mcs, "edges") == 0
    assert mean("mcs_relative", "edges") == 0
    assert mean("idr", "constant") == 0.5
    assert mean("iir", "constant") == 1.0
    assert mean(mcs, "grad_cam") > 0.1


def test_the_series_has_every_k_and_its_drop(finished: Results) -> None:
    series = next(one for one in finished.info.studies if one.notes.get("part") == "series")
    assert len(series.model_names) == 9
    drops = {spec: row["with_object"] - row["without_object"] for spec, row in series.notes["series"].items()}
    assert len(drops) == 10
    # An object that goes with one scene alone matters; one that is everywhere hardly does.
    assert drops["embedded:scene_k1"] > drops["embedded:scene_k10"] + 0.1


def test_the_report_shows_premises_questions_series_and_pairs(finished: Results, tmp_path: Path) -> None:
    page = Path(report(finished, tmp_path / "report.html")).read_text()
    for words in ("The premises", "They hold", "Model contrast", "Input dependence", "Input independence"):
        assert words in page
    for words in ("The k-series", "Pearson r with the drop", "The same picture under both models", "blind"):
        assert words in page
    for words in ("moved region", "permuted region", "pixels region", "r of a moved region"):
        assert words in page
    assert "Patches verified after rounding to 8 bits (logits within tolerance, same class): 3 of 3, 100.0 %" in page
    assert "do not hold here" not in page
    # What chance scores stands beside the methods and ranks no method.
    cards = page[page.index('id="verdict"') : page.index("</section>", page.index('id="verdict"'))]
    assert "idr" in cards
    assert "region=" not in cards


def test_a_contrast_models_maps_are_not_computed_twice(tmp_path: Path) -> None:
    studies = RelativeImportance(pictures=3, series=False, robustness=False).studies(methods=[Counting()])
    Counting.calls.clear()
    run([one for one in studies if one.notes["part"] in ("idr", "mcs")], tmp_path / "run", device="cpu")
    # The scene model with and without objects for IDR, the object model for MCS, whose contrast is known by then.
    assert Counting.calls == ["embedded:scene", "embedded:scene", "embedded:object"]


def test_layers_a_concept_is_found_in_are_shown(tmp_path: Path) -> None:
    studies = RelativeImportance(pictures=4, series=False, robustness=False).studies(methods=[TCAV()])
    pictures = TwoFactorK(count=4, scenes="anchor")  # all show the concept
    mcs = next(one for one in studies if one.notes["part"] == "mcs")
    notes = {**mcs.notes, "datasets": [recipe.label(pictures)]}
    results = run(dataclasses.replace(mcs, datasets=[pictures], notes=notes), tmp_path / "run", device="cpu")
    rows = results.rows("mcs")
    own = rows[rows["method"] == "tcav"]
    assert (own["status"] == "ok").any()
    layers = set(results.details.query("metric == 'mcs' and method == 'tcav'")["detail"])
    assert any(name.startswith("model layer ") for name in layers)
    page = Path(report(results, tmp_path / "report.html")).read_text()
    assert "tcav counts these layers of embedded:object: " in page
    assert all(name.split(" layer ")[1] in page for name in layers)


def test_models_that_violate_the_premises_are_flagged(tmp_path: Path) -> None:
    swapped = RelativeImportance(pictures=2, robustness=False).studies(
        ["embedded:scene", "embedded:object"], methods=[Constant()]
    )
    page = Path(report(run(swapped, tmp_path / "run", device="cpu"), tmp_path / "report.html")).read_text()
    assert "do not hold here" in page
    assert "objects that are not there" in page
    assert "points of accuracy when objects are removed" in page


def test_pictures_of_ones_own_are_judged_by_the_role_of_each_model(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    for part, channels in (("things", 4), ("rooms", 3)):
        for name in ("a", "b"):
            (tmp_path / part / name).mkdir(parents=True)
            pixels = dice.integers(128, 256, (40, 40, channels), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / part / name / "0.png")
    own = Cutouts(str(tmp_path / "things"), str(tmp_path / "rooms"), count=4, size=64)
    # A model that always says the first class, under two names; neither tells which labels are its own.
    (tmp_path / "own.py").write_text(FIRST_CLASS)
    specs = [f"{tmp_path / 'own.py'}:{name}" for name in ("one", "two")]
    studies = RelativeImportance(pictures=4).studies(specs, [own], [Constant()])
    assert [study.notes["part"] for study in studies] == ["idr", "mcs"]
    scores = run(studies, tmp_path / "run", device="cpu").scores
    assert {"constant", "random", "edges", "random_weights"} <= set(scores["method"])  # named or not
    scores = scores[scores["method"] == "constant"]
    main = scores[scores["metric"].str.startswith("mcs(") & ~scores["metric"].str.contains("region|rule")]
    # The first class is right where both the object and the scene are the first: one picture of four.
    assert main["status"].tolist().count("ok") == 1
    assert set(main["status"]) == {"ok", "undefined"}
    assert main["note"].str.contains("misclassified by").sum() == 3


# Ten classes, of which a model says the first if the picture is bright enough; `bar` is how bright.
BRIGHT = """
import torch
from torch import nn

class Bright(nn.Module):
    def __init__(self, bar):
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 1)
        nn.init.zeros_(self.conv.weight)
        nn.init.zeros_(self.conv.bias)
        self.conv.weight.data[0] = 1 / 3
        self.conv.bias.data[1] = bar
    def forward(self, images):
        return self.conv(images).mean((2, 3))

def made(bar):
    factory = lambda: Bright(bar)
    factory.mean, factory.std, factory.size = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 48
    return factory

objects, scenes = made(0.0), made(0.0)
scenes_alone = made(0.0)
k1, k2, k3, k4 = (made(0.5 + k / 1000) for k in range(4))
k5, k6, k7, k8, k9, k10 = (made(0.1 + k / 1000) for k in range(6))
"""


def bam(root: Path, kind: str) -> BAM:
    """Dark scenes with bright dogs on them in the published layout, and what is given besides."""
    names = [
        f"{one}-090{i}.{kind}" for one in ("dog-bamboo_forest", "dog-track", "bird-bamboo_forest") for i in range(2)
    ]
    for part in ("obj", "scene", "scene_only"):
        folder = root / "data" / part
        (folder / "val").mkdir(parents=True)
        for at, name in enumerate(names):
            pixels = np.random.default_rng(at).integers(40, 90, (32, 32, 3), dtype=np.uint8)
            if part != "scene_only":
                pixels[2:30, 3:31] = 250
            Image.fromarray(pixels).save(folder / "val" / name)
        known, place = (OBJECTS, 0) if part == "obj" else (SCENES, 1)
        lines = [f"{name} {known.index(name.split('-')[place])}" for name in names]
        (folder / "val.txt").write_text("\n".join(lines))
        (folder / "val_loc.txt").write_text("\n".join(f"{name} 2,3,30,31" for name in names))
    return BAM(str(root))


def specs(folder: Path, *names: str) -> list[str]:
    (folder / "bright.py").write_text(BRIGHT)
    return [f"{folder / 'bright.py'}:{name}" for name in (*names, *(f"k{k}" for k in range(1, 11)))]


def test_the_k_series_runs_on_a_folder_of_bam(tmp_path: Path) -> None:
    studies = RelativeImportance(pictures=4).studies(
        specs(tmp_path, "objects", "scenes"), [bam(tmp_path, "png")], [Edges()]
    )
    assert [study.notes["part"] for study in studies] == ["idr", "mcs", "series"]
    series = studies[-1]
    assert series.datasets[0].ids() == ("dog-bamboo_forest-0900.png", "dog-bamboo_forest-0901.png")  # type: ignore[union-attr]
    message = list(series.notes["series"].values())
    assert [row["k"] for row in message] == list(range(1, 11))
    # Below k = 5 the models name the scene by the dog alone.
    assert [row["with_object"] - row["without_object"] for row in message] == [1.0] * 4 + [0.0] * 6
    assert set(series.notes["clusters"]) == set(series.datasets[0].ids())  # type: ignore[union-attr]
    results = run(series, tmp_path / "run", device="cpu")
    rows = results.scores[results.scores["method"] == "edges"]
    assert rows["model"].nunique() == 9
    assert set(rows["status"]) == {"ok"}
    assert (rows["value"] == 0).all()  # edges know nothing of models
    page = Path(report(results, tmp_path / "report.html")).read_text()
    assert "From k = 4 to 5 the drop goes from 1" in page


def test_null_patches_on_bam_are_explained_with_and_without_and_not_a_third_time(tmp_path: Path) -> None:
    three = specs(tmp_path, "objects", "scenes", "scenes_alone")[:3]
    iir = RelativeImportance(pictures=8).studies(three, [bam(tmp_path, "png")], [Counting()])[-1]
    assert iir.notes["part"] == "iir"
    Counting.calls.clear()
    scores = run(iir, tmp_path / "run", device="cpu").scores
    assert Counting.calls == [three[2]] * 2
    named = scores[(scores["metric"] == "iir(task=scene)") & (scores["method"] == "counting")].set_index("image")
    forest = {name for name in named.index if "bamboo_forest" in name}  # the others are misclassified
    assert forest
    assert set(named[named["status"] == "ok"].index) == forest


def test_the_k_series_needs_all_its_models_and_pictures_of_it(tmp_path: Path) -> None:
    every = specs(tmp_path, "objects", "scenes")
    with pytest.raises(BadInput, match=r"then the ten models of the k-series\], got 11"):
        RelativeImportance().studies(every[:-1])
    with pytest.raises(BadInput, match=r"pictures of bam.* or the embedded ones, got 'two_factor"):
        RelativeImportance(pictures=2).studies(every, [TwoFactor(count=2)], [Constant()])
    embedded = ["embedded:object", "embedded:scene", *every[2:]]
    studies = RelativeImportance(pictures=2, robustness=False).studies(embedded, methods=[Constant()])
    assert studies[-1].notes["part"] == "series"
    assert isinstance(studies[-1].datasets[0], TwoFactorK)
    left_out = RelativeImportance(pictures=2, robustness=False, series=False).studies(embedded, methods=[Constant()])
    assert [study.notes["part"] for study in left_out] == ["idr", "mcs"]


def test_twins_that_are_not_quite_the_picture_are_reported(tmp_path: Path) -> None:
    (tmp_path / "sharp").mkdir()
    models_, output = specs(tmp_path, "objects", "scenes")[:2], "6 of 6 pictures differ from their twins outside"
    with pytest.warns(UserWarning, match=output):
        lossy = RelativeImportance(pictures=6).studies(models_, [bam(tmp_path, "jpg")], [Constant()])
    assert all(study.notes["twins"].startswith(output) for study in lossy)
    exact = RelativeImportance(pictures=6).studies(models_, [bam(tmp_path / "sharp", "png")], [Constant()])
    assert not any(study.notes["twins"] for study in exact)


def test_pictures_of_ones_own_need_two_or_three_models() -> None:
    with pytest.raises(BadInput, match="models of your own"):
        RelativeImportance().studies(datasets=["two_factor"])
    with pytest.raises(BadInput, match="got 1"):
        RelativeImportance().studies(["embedded:object"])


def test_the_heatmaps_are_made_as_published() -> None:
    drawn = "smoothgrad(method=saliency(signed=True, pooling=positive_sum), mode=squared)"
    usual = [
        "grad_cam",
        "saliency(signed=True, pooling=positive_sum)",
        drawn,
        "integrated_gradients(steps=25, pooling=positive_sum)",
        "ig_smoothgrad(steps=8, draws=6, mode=squared, pooling=positive_sum)",
        "input_x_gradient(pooling=positive_sum)",
        "guided_backprop(pooling=positive_sum)",
        "guided_grad_cam(pooling=positive_sum)",
    ]
    assert [recipe.label(one) for one in heatmaps("default")] == usual
    fields = [recipe.plain(one)["fields"] for one in heatmaps("paper")]
    assert [fields[2]["draws"], fields[4]["steps"], fields[4]["draws"]] == [25, 25, 25]
    assert [one["mode"] for one in (fields[2], fields[4])] == ["squared", "squared"]


def test_pictures_that_share_an_object_or_a_scene_are_counted_as_clusters() -> None:
    pictures = TwoFactor(count=4)
    batch = pictures.batch(range(4))
    message = clusters(pictures, 3, None)
    assert list(message) == list(pictures.ids()[:3])
    for row, (scene, thing) in enumerate(message.values()):
        assert scene == int(batch.labels["scene_id"][row])
        assert thing == int(batch.labels["object_id"][row])


def test_objects_alone_tell_the_object_model_all_and_the_scene_model_nothing() -> None:
    batch = TwoFactor(count=20).batch(range(20))
    assert accuracy(models.load("embedded:object"), batch, "grey") > 0.9
    assert accuracy(models.load("embedded:scene"), batch, "grey") < 0.4


def test_confidence_falls_without_what_a_model_looks_for_and_rises_without_what_covers_it() -> None:
    batch = TwoFactor(count=20).batch(range(20))
    of_object, of_scene = (rises(models.load(f"embedded:{name}"), batch) for name in ("object", "scene"))
    assert of_object < 0.1 < of_scene <= 1
    assert math.isnan(rises(models.load("embedded:scene"), dataclasses.replace(batch, twins=None)))


def test_premises_are_measured_on_the_kind_of_pictures_that_are_judged() -> None:
    tiny = TwoFactor(count=8, scale=(0.1, 0.12))
    study = RelativeImportance(pictures=8).studies(["embedded:object", "embedded:scene"], [tiny], [Constant()])[0]
    assert study.notes["pictures"] == 200
    judged = dataclasses.replace(tiny, count=200)
    true = accuracy(models.load("embedded:object"), judged.batch(range(200)), "composite")
    assert true < 0.9
    assert study.notes["accuracy"]["object"]["composite"] == true


def test_models_of_ones_own_are_judged_by_role_on_the_embedded_pictures_too(tmp_path: Path) -> None:
    loaded = [models.load(f"embedded:{name}") for name in ("object", "scene")]
    own = [Model(f"my {one.task}", one.network, one.mean, one.std) for one in loaded]  # neither says its task
    studies = RelativeImportance(pictures=4, series=False).studies(own, methods=[Edges()])
    assert [study.notes["part"] for study in studies] == ["idr", "mcs", "robustness", "robustness"]
    assert studies[0].notes["accuracy"]["object"]["composite"] == 1
    scores = run(studies, tmp_path / "run", device="cpu").scores
    scores = scores[scores["method"] == "edges"]
    assert set(scores["status"]) <= {"ok", "undefined"}  # small objects are not always known
    assert (scores["status"] == "ok").mean() > 0.8
    contrast = scores[scores["metric"].str.startswith("mcs(contrast=my scene")]
    assert (contrast["value"].dropna() == 0).all()
    assert contrast["value"].notna().any()

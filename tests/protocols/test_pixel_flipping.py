"""The pixel-flipping protocol: the strategies it asks under, and that its answers add up."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from networks import small_cnn
from PIL import Image

from heatproof.audit.model_scope import NROMS, ROMS, RandomOrders
from heatproof.data.folder import Folder
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.methods.arch_attribute import ArchAttribute
from heatproof.methods.cam import GradCam
from heatproof.methods.controls import Centre, Constant, Edges, Random
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.methods.lrp import LRP
from heatproof.methods.mean_region import MeanRegion
from heatproof.methods.pred_diff import PredDiff
from heatproof.methods.saliency import Saliency
from heatproof.methods.shapley import Shapley
from heatproof.methods.smoothgrad import Smoothed
from heatproof.metrics.pixel_flipping import MIF
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.diffusion import Diffusion
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.imputers.train_set import TrainSet
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.protocols.pixel_flipping import PixelFlipping
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.pixel_flipping import pixel_flipping
from heatproof.run.loop import run
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import method_traits
from heatproof.types import View


def test_fast_steps_are_those_of_every_metric_and_not_of_the_paper() -> None:
    (study,) = PixelFlipping(steps="fast").studies()
    assert [getattr(one, "steps", "") or one.how.steps for one in study.metrics] == ["fast"] * 7
    with pytest.raises(BadInput, match="leave steps out"):
        PixelFlipping("paper", steps="fast")


def test_the_paper_has_forty_strategies_and_ten_methods() -> None:
    (study,) = PixelFlipping("paper").studies()
    assert len(study.models) * len(study.notes["setups"]) == 40
    labels = [recipe.label(method) for method in study.methods]
    assert len(labels[:-5]) == 9  # the tenth is chance
    assert labels[-5:] == ["random", "edges", "centre", "constant", "mean_region"]
    assert len(study.metrics) == 20 * 5
    stored = Study.from_plain(study.plain())
    assert [recipe.key(metric) for metric in stored.metrics] == [recipe.key(metric) for metric in study.metrics]


def test_every_setup_names_the_labels_of_its_metrics() -> None:
    for preset in ("quick", "paper"):
        (study,) = PixelFlipping(preset).studies()  # type: ignore[arg-type]
        labels = {recipe.label(metric) for metric in study.metrics}
        message = {setup[name] for setup in study.notes["setups"] for name in ("mif", "lif", "srg", "r_oms")}
        assert message <= labels


def test_quick_adds_up(tmp_path: Path) -> None:
    protocol = PixelFlipping(imputers=(Mean(),), numbers=(9,))
    (study,) = protocol.studies([small_cnn()], [TwoFactor()], ["saliency", "random"])
    results = run(dataclasses.replace(study, limit=3), tmp_path)
    scores = results.scores
    assert set(scores["status"]) == {"ok"}
    labels = {name: label for label in scores["metric"].unique() for name in [label.split("(")[0]]}
    table = scores.pivot_table(index=["method", "image"], columns="metric", values="value")
    mif, lif, srg, mrg, lrg, chance = (table[labels[name]] for name in ("mif", "lif", "srg", "mrg", "lrg", "r_oms"))
    assert (srg == lif - mif).all()
    assert (srg == mrg + lrg).all()
    assert (chance - mif - mrg).abs().max() < 1e-9
    assert chance.groupby("image").nunique().eq(1).all()


def test_the_papers_contestants_have_the_papers_settings() -> None:
    (study,) = PixelFlipping("paper").studies()
    own = Occlusion(Mean(), Slic(25), draws=1)
    path = IntegratedGradients(steps=50, baseline="mean")
    assert study.methods == (
        LRP(composite="epsilon_plus_flat", canonizer="none", start="one_hot", epsilon=1e-6, upright=False),
        Smoothed(Saliency(), draws=5, noise=1.0, unit="normalised"),
        Saliency(),
        path,
        Smoothed(path, draws=5, noise=1.0, unit="normalised"),
        InputXGradient(),
        Shapley(own, "log_odds", permutations=200),
        PredDiff(own, "log_odds"),
        ArchAttribute(own, "log_odds"),
        Random(),
        Edges(),
        Centre(),
        Constant(),
        MeanRegion(),
    )
    assert study.target == "label"
    assert study.limit == 100


def test_the_papers_strategies_have_the_papers_settings() -> None:
    (study,) = PixelFlipping("paper").studies()
    once = ("the paper’s steps", "1 draw, the paper’s steps")
    wanted = [
        (imputer, n, once[imputer == "diffusion"])
        for imputer in ("mean", "train_set", "histogram", "telea", "diffusion")
        for n in (25, 100, 500, 5000)
    ]
    assert [(s["imputer"], s["n_superpixels"], s["variant"]) for s in study.notes["setups"]] == wanted
    for metric in study.metrics:
        assert metric.occlusion.segmenter == Slic(metric.occlusion.segmenter.n, 1.0, "grey")
        assert metric.occlusion.draws == (1 if isinstance(metric.occlusion.imputer, Diffusion) else 5)
        if isinstance(metric, ROMS | NROMS):
            assert metric.how == RandomOrders(orders=5, steps="paper")
        else:
            assert metric.steps == "paper"
            assert metric.readout == "probability"


def test_quick_explains_the_prediction_with_lrp_as_it_is_best_known() -> None:
    (study,) = PixelFlipping().studies()
    assert study.target == "predicted"
    assert LRP() in study.methods
    assert GradCam() in study.methods
    assert study.metrics[0] == MIF(Occlusion(Telea(), Slic(25)))
    assert study.metrics[-2:] == (ROMS(Occlusion(Telea(), Slic(25))), NROMS(Occlusion(Telea(), Slic(25))))
    assert next(one for one in study.methods if isinstance(one, Shapley)).permutations == 20


def photos(place: Path, count: int = 4) -> str:
    place.mkdir()
    for i in range(count):
        noise = np.random.default_rng(i).integers(0, 256, (40, 48, 3), np.uint8)
        Image.fromarray(noise).save(place / f"{i}.png")
    return str(place)


def test_donors_of_ones_own_pictures_are_their_neighbours(tmp_path: Path) -> None:
    names = [photos(tmp_path / "birds"), photos(tmp_path / "boats"), "two_factor"]
    requested = PixelFlipping("paper").studies([small_cnn()], names)
    donors = {
        recipe.label(one): {
            recipe.label(m.occlusion.imputer.donors) if not isinstance(m.occlusion.imputer.donors, str) else "drawings"
            for m in study.metrics
            if isinstance(m.occlusion.imputer, TrainSet)
        }
        for study in requested
        for one in study.datasets
    }
    assert donors == {"two_factor": {"drawings"}, "birds": {"birds"}, "boats": {"boats"}}
    assert {study.target for study in requested} == {"predicted"}  # whose folders are no classes of the model
    assert {s["imputer"] for study in requested[1:] for s in study.notes["setups"]} >= {
        "train_set(donors=birds)",
        "train_set(donors=boats)",
    }
    assert [study.notes["donors"] for study in requested] == ["", "train_set(donors=birds)", "train_set(donors=boats)"]
    named = PixelFlipping(imputers=(TrainSet(donors=names[1]),)).studies([small_cnn()], names[:1])
    assert named[0].notes["donors"] == ""
    assert named[0].metrics[0].occlusion.imputer.donors == names[1]  # who names donors gets them
    (one,) = PixelFlipping(imputers=(Mean(),)).studies([small_cnn()], names)  # no imputer needs donors
    assert len(one.datasets) == 3
    with pytest.raises(BadInput, match="different labels"):
        PixelFlipping("paper").studies([small_cnn()], [names[0], Folder(names[0])])


def test_a_run_with_ones_own_donors_can_be_replayed(tmp_path: Path) -> None:
    folder = photos(tmp_path / "birds")
    model = dataclasses.replace(small_cnn(), view=View(32, 36))
    protocol = PixelFlipping(imputers=("train_set",), numbers=(9,), draws=2)  # type: ignore[arg-type]
    (study,) = protocol.studies([model], [folder], ["saliency", "random"])
    results = run(study, tmp_path / "run")
    assert set(results.scores["status"]) == {"ok"}
    stored = recipe.plain(study.metrics)
    assert recipe.plain(recipe.build(stored)) == stored


def test_strategies_that_differ_only_in_their_variant_make_a_report(tmp_path: Path) -> None:
    studies = [
        dataclasses.replace(study, limit=3)
        for protocol in (
            PixelFlipping(imputers=("train_set",), numbers=(9,)),  # type: ignore[arg-type]
            PixelFlipping(imputers=("train_set",), numbers=(9,), draws=2),  # type: ignore[arg-type]
            PixelFlipping("paper", imputers=("train_set",), numbers=(9,), draws=2),  # type: ignore[arg-type]
        )
        for study in protocol.studies([small_cnn()], [TwoFactor(size=32)], ["saliency", "random"])
    ]
    html = pixel_flipping(Reading(run(studies, tmp_path)))
    assert html is not None
    assert "3 setups put 2 methods in" in html
    for words in ("train_set, 2 draws<", "train_set, 2 draws, the paper’s steps<", "train_set<"):
        assert words in re.sub(r"<wbr>", "", html)


def test_pictures_of_ones_own_need_a_model() -> None:
    with pytest.raises(BadInput, match="need a model"):
        PixelFlipping().studies(datasets=[TwoFactor()])
    with pytest.raises(BadInput, match="preset"):
        PixelFlipping("slow")  # type: ignore[arg-type]


def test_one_number_of_segments_needs_no_brackets_and_nonsense_is_named() -> None:
    assert PixelFlipping(numbers=9).occlusions() == PixelFlipping(numbers=(9,)).occlusions()  # type: ignore[arg-type]
    assert PixelFlipping(numbers=[9, 16]).numbers == (9, 16)  # type: ignore[arg-type]
    for wrong in (0, (25, 0), "many", (2.5,)):
        with pytest.raises(BadInput, match=r"numbers must be whole numbers of segments from 1, such as \[25,100\]"):
            PixelFlipping(numbers=wrong)  # type: ignore[arg-type]


def test_abs_variants_are_never_negative_and_only_of_signed_methods() -> None:
    (study,) = PixelFlipping(abs_variants=True).studies()
    (plain,) = PixelFlipping().studies()
    more = [one for one in study.methods if one not in plain.methods]
    assert len(more) == 4
    assert not any(method_traits(one).signed for one in more)


def test_every_imputer_of_the_strategies_explains_too() -> None:
    (study,) = PixelFlipping(matching=True, imputers=(Mean(), Telea())).studies()
    labels = [recipe.label(one) for one in study.methods]
    assert set(study.notes["matching"].values()) == {"mean", "telea"}
    assert set(study.notes["matching"]) <= set(labels)
    assert len(set(labels)) == len(labels)

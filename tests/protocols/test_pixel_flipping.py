"""The pixel-flipping protocol: the strategies it asks under, and that its answers add up."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from networks import small_cnn

from heatproof import recipe
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.occlusion.imputers.mean import Mean
from heatproof.protocols.pixel_flipping import PixelFlipping
from heatproof.run import run
from heatproof.study import Study


def test_the_paper_has_forty_strategies_and_ten_methods() -> None:
    (study,) = PixelFlipping("paper").studies()
    assert len(study.models) * len(study.notes["setups"]) == 40
    assert len(study.methods) == 10
    assert len(study.metrics) == 20 * 4
    stored = Study.from_plain(study.plain())
    assert [recipe.key(metric) for metric in stored.metrics] == [recipe.key(metric) for metric in study.metrics]


def test_every_setup_names_the_labels_of_its_metrics() -> None:
    for preset in ("quick", "paper"):
        (study,) = PixelFlipping(preset).studies()  # type: ignore[arg-type]
        labels = {recipe.label(metric) for metric in study.metrics}
        told = {setup[name] for setup in study.notes["setups"] for name in ("mif", "lif", "srg", "r_oms")}
        assert told <= labels


def test_quick_adds_up(tmp_path: Path) -> None:
    protocol = PixelFlipping(imputers=(Mean(),), numbers=(9,))
    (study,) = protocol.studies([small_cnn()], [TwoFactor()], ["saliency", "random"])
    results = run(dataclasses.replace(study, limit=3), tmp_path)
    scores = results.scores
    assert set(scores["status"]) == {"ok"}
    setup = study.notes["setups"][0]
    table = scores.pivot_table(index=["method", "image"], columns="metric", values="value")
    mif, lif, srg, mrg, lrg, chance = (table[setup[name]] for name in ("mif", "lif", "srg", "mrg", "lrg", "r_oms"))
    assert (srg == lif - mif).all()
    assert (srg == mrg + lrg).all()
    assert (chance - mif - mrg).abs().max() < 1e-9
    assert chance.groupby("image").nunique().eq(1).all()


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

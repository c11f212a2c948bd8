"""All protocols in one breath: one line-up everywhere, and a reason for each protocol that is left out."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch import nn

import heatproof
from heatproof.errors import BadInput, HeatproofError
from heatproof.protocols._support.line_up import line_up
from heatproof.protocols.all import All
from heatproof.protocols.robustness import Robustness
from heatproof.protocols.sanity import Sanity
from heatproof.run.plan import in_words, left_out, settings
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.traits import Pairs, cost_of, method_traits, protocol_traits
from heatproof.types import Model, View


def contestants(study: Study) -> list[str]:
    return [recipe.label(method) for method in study.methods if not method_traits(method).control]


@pytest.fixture
def model() -> Model:
    network = nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 5))
    return Model("small", network, view=View(32))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for i in range(4):
        for folder in ("photos", "masks"):
            (tmp_path / folder).mkdir(exist_ok=True)
        pixels = np.random.default_rng(i).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i}.png")
        mask = np.zeros((32, 32), np.uint8)
        mask[8:20, 4:28] = 255
        Image.fromarray(mask).save(tmp_path / "masks" / f"{i}.png")
    return tmp_path


def test_on_embedded_pictures_every_protocol_has_the_same_line_up() -> None:
    studies = All().studies()
    wanted = {
        name
        for name in heatproof.names("protocol")
        if name != "all" and not protocol_traits(heatproof.find("protocol", name)).apart
    }
    assert {study.protocol for study in studies} == wanted
    assert not left_out(studies)
    assert {tuple(contestants(study)) for study in studies} == {tuple(map(recipe.label, line_up()))}
    assert all(study.limit is not None and study.limit <= 32 for study in studies)
    (first, *_) = in_words(studies)
    assert first.startswith(f"{len(line_up())} methods, the same in every protocol")


def test_the_line_up_is_small_and_cheap() -> None:
    labels = [recipe.label(one) for one in line_up()]
    assert 8 <= len(set(labels)) == len(labels) <= 10
    assert all(sum(cost_of(one)) <= 32 for one in line_up())


def test_photos_without_masks_or_labels(model: Model, photos: Path) -> None:
    studies = All().studies([model], [str(photos / "photos")])
    assert [study.protocol for study in studies] == ["pixel_flipping", "sanity", "robustness"]
    reasons = left_out(studies)
    assert set(reasons) == {"threshold_free", "mosaics", "relative_importance", "in_distribution"}
    assert "--masks" in reasons["threshold_free"]
    assert "index_name" in reasons["mosaics"]
    assert "2 models" in reasons["relative_importance"]
    assert "twins" in reasons["relative_importance"]
    assert "diffusion prior of such pictures" in reasons["in_distribution"]
    output = "\n".join(in_words(studies))
    for name, reason in reasons.items():
        assert f"Left out: {name}" in output
        assert reason in output


def test_masks_bring_localisation(model: Model, photos: Path) -> None:
    folder = heatproof.find("masked_folder", path=str(photos / "photos"), masks=str(photos / "masks"))
    studies = All(pictures=3).studies([model], [folder], ["saliency"])
    assert "threshold_free" in {study.protocol for study in studies}
    assert {tuple(contestants(study)) for study in studies} == {("saliency",)}
    assert all(setting.pictures == 3 for study in studies for setting in settings(study))


@pytest.mark.slow  # it fits temperatures and measures premises on a thousand pictures
def test_the_papers_keep_their_own_variants() -> None:
    studies = All("paper").studies()
    line_ups = {tuple(contestants(study)) for study in studies}
    assert len(line_ups) > 3
    assert all((study.notes["preset"] or study.notes.get("profile", "paper")) == "paper" for study in studies)


@pytest.mark.parametrize("name", [name for name in heatproof.names("protocol") if name != "all"])
def test_brief_and_published_fields_are_fields_of_the_protocol(name: str) -> None:
    make = type(heatproof.find("protocol", name))
    known = {field.name for field in dataclasses.fields(make)}
    pairs: Pairs
    for pairs in (protocol_traits(make()).brief, protocol_traits(make()).paper):
        assert {field for field, _ in pairs} <= known
        make(**dict(pairs))


def test_a_misspelt_method_is_not_a_reason_to_leave_protocols_out(model: Model, photos: Path) -> None:
    with pytest.raises(HeatproofError, match="saliency"):
        All().studies([model], [str(photos / "photos")], ["salience"])


def test_nothing_applies(model: Model, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(All, "protocols", lambda _: [("mosaics", heatproof.find("protocol", "mosaics"))])
    with pytest.raises(BadInput, match=r"no protocol applies.*mosaics: needs labels"):
        All().studies([model], [str(photos / "photos")])


@pytest.mark.parametrize("make", [lambda: Sanity(stages=0), lambda: Robustness(draws=0), lambda: All(pictures=0)])
def test_numbers_are_checked(make) -> None:
    with pytest.raises(BadInput, match="at least 1"):
        make()

"""A limited study judges every class alike, whatever the order of the files."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor, nn

from heatproof import Model, Study, run
from heatproof.data._support.sample import balanced, sample
from heatproof.data.folder import Folder
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.types import View

LABELS = st.lists(st.integers(-1, 6), min_size=1, max_size=80)


@given(labels=LABELS, seed=st.integers(0, 9), limit=st.integers(1, 80))
def test_every_sample_is_as_balanced_as_it_can_be(labels: list[int], seed: int, limit: int) -> None:
    ids = [f"{i}.png" for i in range(len(labels))]
    order = balanced(ids, labels, seed)
    assert sorted(order) == list(range(len(labels)))
    there, taken = Counter(labels), Counter(labels[place] for place in order[:limit])
    full = [taken[label] for label in there if taken[label] < there[label]]
    # Classes that still have pictures are within one of each other, and no class is ahead of them by more than one.
    assert not full or (max(full) - min(full) <= 1 and max(taken.values()) <= min(full) + 1)


@given(labels=LABELS, seed=st.integers(0, 9), shuffle=st.randoms())
def test_the_order_of_the_files_does_not_matter(labels: list[int], seed: int, shuffle: object) -> None:
    pictures = [(f"{i}.png", label) for i, label in enumerate(labels)]
    mixed = list(pictures)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]

    def chosen(some: list[tuple[str, int]]) -> list[str]:
        return [some[place][0] for place in balanced([name for name, _ in some], [label for _, label in some], seed)]

    assert chosen(pictures) == chosen(mixed)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Twenty cars, then twenty cats."""
    for at, name in enumerate(("cars", "cats")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(20):
            Image.fromarray(np.full((16, 16, 3), 100 * at + i, np.uint8)).save(
                tmp_path / "photos" / name / f"{i:02}.png"
            )
    return Folder(str(tmp_path / "photos"), view=View(16))


class Bright(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        light = images.mean((1, 2, 3))
        return torch.stack([-light, light], 1)


def requested(folder: Folder, **fields: object) -> Study:
    model = Model("bright", Bright())
    return Study([model], [folder], ["random"], ["smoothness"], shard=4, **fields)  # type: ignore[arg-type]


def test_half_of_a_limited_folder_is_of_each_class_and_a_larger_limit_goes_on_with_it(
    folder: Folder, tmp_path: Path
) -> None:
    def judged(limit: int) -> set[str]:
        return set(run(requested(folder, limit=limit), tmp_path / "out").scores["image"])

    def scored() -> set[str]:
        files = (tmp_path / "out" / "parts").glob("scores-*")
        return {key for file in files for key in pq.read_table(file)["unit"].unique().to_pylist()}

    twelve = judged(12)
    assert Counter(name.split("/")[0] for name in twelve) == {"cars": 6, "cats": 6}
    before = scored()
    twenty = judged(20)
    assert Counter(name.split("/")[0] for name in twenty) == {"cars": 10, "cats": 10}
    assert twelve < twenty
    assert len(before) == 3
    assert len(scored()) == 5  # the others were found again, not computed anew
    assert before < scored()
    assert requested(folder, limit=12).places(folder) != requested(folder, limit=12, seed=1).places(folder)
    assert requested(folder).places(folder) == tuple(range(40)) == requested(folder, limit=40).places(folder)


def test_a_study_says_how_its_pictures_were_chosen_and_one_that_does_not_took_the_first(folder: Folder) -> None:
    study = Study(["embedded:object"], [folder], ["random"], ["smoothness"], limit=12)
    stored = json.loads(json.dumps(study.plain()))
    assert stored["sample"] == "balanced"
    assert Study.from_plain(stored).places(folder) == study.places(folder) != tuple(range(12))
    old = dataclasses.replace(study, sample="first").plain()
    del old["sample"]
    again = Study.from_plain(old)
    assert again.sample == "first"
    assert again.places(folder) == tuple(range(12))
    with pytest.raises(BadInput, match="sample must be 'balanced', 'first', 'random', got 'last'"):
        dataclasses.replace(study, sample="last")


def test_data_whose_classes_take_turns_are_cut_after_the_first_pictures() -> None:
    assert sample(TwoFactor(), 24, 5) == tuple(range(24))
    scenes = Counter(TwoFactor().batch(range(60)).labels["scene"].tolist())
    assert set(scenes.values()) == {6}

"""Which groups the data sets declare, and that a run keeps them for its results."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from heatproof.data import load
from heatproof.data._support.picture_groups import by_class, groups_of
from heatproof.results import Results
from heatproof.run.groups import write_groups


@pytest.fixture
def pictures(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "set" / name).mkdir(parents=True)
        for at in range(3):
            Image.fromarray(np.full((8, 8, 3), 40 * at, dtype=np.uint8)).save(tmp_path / "set" / name / f"{at}.png")
    return tmp_path / "set"


def test_classes_of_a_folder_are_fixed(pictures):
    (found,) = groups_of(load(str(pictures))).values()
    assert (found.kind, found.labels) == ("fixed", ("0", "0", "0", "1", "1", "1"))
    assert groups_of(load(str(pictures / "cat"))) == {}
    assert by_class([-1, 2])["class"].labels == (None, "2")


def test_columns_of_a_table_are_sampled(pictures):
    rows = [(f"cat/{at}.png", "cat", patient) for at, patient in enumerate(("p", "p", ""))]
    with (pictures / "list.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("path", "label", "group:patient"), *rows])
    found = groups_of(load(str(pictures / "list.csv")))
    assert found["patient"].kind == "sampled"
    assert found["patient"].labels == ("p", "p", None)


def test_objects_and_scenes_are_fixed_and_are_those_of_the_names():
    data = load("two_factor(count=30)")
    found = groups_of(data)
    assert {one.kind for one in found.values()} == {"fixed"}
    for identity, thing, scene in zip(data.ids(), found["object"].labels, found["scene"].labels, strict=True):
        assert identity.endswith(f"-{thing}-{scene}")


def test_a_run_keeps_the_groups_of_the_pictures_it_judged(tmp_path):
    from heatproof import run
    from heatproof.spec.study import Study

    study = Study(
        models=["embedded:object"],
        datasets=["two_factor(count=9)"],
        methods=["edges", "centre"],
        metrics=["pointing_game"],
        limit=6,
    )
    results = run(study, tmp_path / "out")
    (groups,) = Results.load(tmp_path / "out").groups.values()
    assert groups.kinds == {"object": "fixed", "scene": "fixed"}
    assert set(groups.labels.index) == set(results.scores["image"])
    assert groups.labels["scene"].notna().all()


def test_no_groups_no_file(tmp_path, pictures):
    data = load(str(pictures / "cat"))
    (tmp_path / "groups.parquet").write_text("left by an earlier run")
    assert write_groups(tmp_path, [("set", data, data.ids())]) == {}
    assert not (tmp_path / "groups.parquet").exists()
    grouped = load(str(pictures))
    assert list(write_groups(tmp_path, [("set", grouped, grouped.ids()[:2])])) == ["groups.parquet"]
    assert len(pd.read_parquet(tmp_path / "groups.parquet")) == 2

"""Groups, their strata, and the outermost of nested ones."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.errors import BadInput
from heatproof.stats.fixed_groups import SMALLEST, strata
from heatproof.stats.groups import Groups, outermost


def made(**columns):
    frame = pd.DataFrame(columns, index=[f"{i}" for i in range(len(next(iter(columns.values()))))])
    return Groups(frame, {"patient": "sampled", "scene": "fixed"})


def test_a_picture_without_a_label_stands_alone_or_among_the_others():
    groups = made(patient=["a", "a", None, None], scene=["x", None, None, "x"])
    assert len(set(groups.codes("patient"))) == 3
    assert list(groups.codes("scene")) == [0, 1, 1, 0]


def test_what_groups_nothing_is_no_group():
    groups = made(patient=list("abcd"), scene=["x"] * 4)
    assert groups.named("sampled") == groups.named("fixed") == []


def test_pictures_are_found_by_name():
    groups = made(patient=list("aabb"), scene=list("xyxy")).of(["3", "0", "9"])
    assert groups.labels["patient"].tolist()[:2] == ["b", "a"]
    assert len(set(groups.codes("patient"))) == 3


def test_inner_clusters_are_left_out():
    patient, lesion, site = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 2, 2, 3]), np.array([0, 1, 0, 1, 0, 1])
    assert list(outermost({"lesion": lesion, "patient": patient, "site": site})) == ["patient", "site"]
    assert list(outermost({"a": patient, "b": patient + 5})) == ["b"]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=80))
def test_strata_are_large_enough_or_there_are_none(labels):
    index = np.array(labels)
    found = strata([index])
    if found is None:
        assert sum(np.bincount(index) >= SMALLEST) < 2
    else:
        assert np.bincount(found).min() >= SMALLEST
        for group in np.unique(index):  # a group is never split
            assert len(set(found[index == group])) == 1


def test_cells_are_strata_where_they_are_large():
    scene, thing = np.arange(400) % 4, np.arange(400) // 4 % 5
    found = strata([scene, thing])
    assert found is not None
    assert found.max() + 1 == 20
    sparse = strata([np.arange(40) % 4, np.arange(40) // 4 % 5])
    assert sparse is not None
    assert sparse.max() + 1 == 5
    assert strata([]) is None


def test_refuses():
    with pytest.raises(BadInput, match="needs a kind"):
        Groups(pd.DataFrame({"a": [1]}), {})
    with pytest.raises(BadInput, match="sampled or fixed"):
        Groups(pd.DataFrame({"a": [1]}), {"a": "random"})  # type: ignore[dict-item]
    with pytest.raises(BadInput, match="one row per picture"):
        Groups(pd.DataFrame({"a": [1, 2]}, index=["x", "x"]), {"a": "fixed"})


def test_units_of_an_interaction_are_means_of_whole_clusters():
    labels = pd.DataFrame({"class": list("aabbb"), "lesion": ["1", "1", "2", "3", "3"]})
    table = pd.DataFrame({"x": [1.0, 3.0, 5.0, np.nan, 7.0], "y": [0.0, 1.0, 2.0, 3.0, 5.0]})
    means, classes = Groups(labels, {"class": "fixed", "lesion": "sampled"}).by_cluster(table, "class")
    assert means["x"].tolist() == [2.0, 5.0, 7.0]
    assert means["y"].tolist() == [0.5, 2.0, 4.0]
    assert list(classes) == ["a", "b", "b"]
    alone, classes = Groups(labels[["class"]], {"class": "fixed"}).by_cluster(table, "class")
    assert alone is table
    assert list(classes) == list("aabbb")
    across = labels.assign(lesion=["1", "1", "1", "2", "2"])  # a lesion of two classes
    assert Groups(across, {"class": "fixed", "lesion": "sampled"}).by_cluster(table, "class") is None

"""Rows on disk: wholly there or not there, and never trusted when damaged."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.run import store
from heatproof.run.store import NotWritable, Store, StoreFull, Unit, write_atomically

UNIT = Unit(
    ["a", "b"],
    [0.1, None],
    ["ok", "failed"],
    ["", "why"],
    0.5,
    [[0.0, 1.0], []],
    [[1.0, 0.0], []],
    {"tied": [None, 0.5]},
)
PLACE = {"dataset": "d", "model": "m", "method": "x", "metric": "y"}


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.get("abcd") is None
    store.put("abcd", UNIT)
    assert store.get("abcd") == UNIT
    assert UNIT.failed


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_come_back_bit_for_bit(values: list[float]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        names = [str(i) for i in range(len(values))]
        store.put("k0", Unit(names, values, ["ok"] * len(values), [""] * len(values), 0.0))
        found = store.get("k0")
        assert found is not None
        assert [float(v or 0.0).hex() for v in found.values] == [float(v or 0.0).hex() for v in values]


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_unit_is_never_trusted(position: int, flip: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        store.put("abcd", UNIT)
        (path,) = Path(folder).rglob("abcd.json")
        raw = bytearray(path.read_bytes())
        raw[position % len(raw)] ^= flip
        path.write_bytes(bytes(raw))
        assert store.get("abcd") is None
        assert store.damaged == ["abcd.json"]
        store.put("abcd", UNIT)
        assert store.get("abcd") == UNIT


def test_a_truncated_unit_is_never_trusted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for size in (0, 1, 40, 64, 65, 80):
        store.put("abcd", UNIT)
        (path,) = tmp_path.rglob("abcd.json")
        path.write_bytes(path.read_bytes()[:size])
        assert store.get("abcd") is None


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.put("abcd", UNIT)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFull, match="everything finished is safe"):
        store.put("abcd", Unit([], [], [], [], 0.0))
    monkeypatch.undo()
    assert store.get("abcd") == UNIT
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_tables_hold_every_row_and_every_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "GROUP", 3)  # so that there are several groups
    places = [{**PLACE, "method": name} for name in "uvw"]
    hashes = Store(tmp_path).write_tables((place, UNIT) for place in places)
    scores, curves, details = (pd.read_parquet(tmp_path / name) for name in hashes)
    assert list(scores.columns) == [*PLACE, "image", "value", "status", "note", "seconds", "machine"]
    assert list(scores["method"]) == ["u", "u", "v", "v", "w", "w"]
    assert list(scores["image"]) == ["a", "b"] * 3
    assert scores["value"].isna().tolist() == [False, True] * 3
    assert list(curves["method"]) == ["u", "v", "w"]
    assert [list(x) for x in curves["x"]] == [[0.0, 1.0]] * 3
    assert details[["method", "image", "detail", "value"]].to_numpy().tolist() == [[m, "b", "tied", 0.5] for m in "uvw"]
    assert hashes == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in hashes}


def test_another_units_file_in_its_place_is_not_trusted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("abcd", UNIT)
    store.put("abff", dataclasses.replace(UNIT, values=[0.9, None]))
    shutil.copy(store.unit_path("abff"), store.unit_path("abcd"))
    assert store.get("abcd") is None
    assert store.damaged == ["abcd.json"]


def test_a_unit_of_other_pictures_is_not_trusted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("abcd", UNIT)
    assert store.get("abcd", ["a", "b"]) == UNIT
    assert store.get("abcd", ["b", "a"]) is None


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for place in (tmp_path / "taken" / "x", tmp_path / "taken" / "deep" / "x"):
        with pytest.raises(NotWritable, match=r"taken.*x cannot be written"):
            write_atomically(place, b"new")
    assert Store(tmp_path / "taken").get_json("anything") is None

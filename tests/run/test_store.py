"""Rows on disk: wholly there or not there, and never trusted when damaged."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.run import parts, store, tables
from heatproof.run.census import ShardRecord
from heatproof.run.columns import SCHEMAS, Unit
from heatproof.run.store import NotWritable, Store, StoreFull, write_atomically
from heatproof.run.tables import write_tables
from heatproof.storage import part
from heatproof.storage.sealed_json import Damaged

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
RECORD = ShardRecord("s1", ("a", "b"), ("cat", None), (True, None), ((0.0, 1.0), (0.25, 0.5)), ("cat", "dog"), "yes_no")
EMPTY = ShardRecord("s2", (), (), (), (), (), "value", per_label=True)  # none of its pictures could be read


def written(root: Path, **units: Unit) -> Store:
    """A store that has written these units, and one that has not read them yet."""
    filled = Store(root)
    for key, unit in units.items():
        filled.put(key, unit)
    filled.flush()
    return Store(root)


def part_of(root: Path, kind: str) -> Path:
    (found,) = (root / "parts").glob(f"{kind}-*.parquet")
    return found


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.get("abcd") is None
    store.put("abcd", UNIT)
    assert store.get("abcd") == UNIT  # also before it is written
    store.flush()
    assert store.get("abcd") == Store(tmp_path).get("abcd") == UNIT
    assert UNIT.failed


def test_records_of_shards_come_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for one in (RECORD, EMPTY):
        assert not store.has_record(one.key)
        store.put_record(one)
    store.flush()
    for one in (RECORD, EMPTY):
        assert Store(tmp_path).has_record(one.key)
        assert Store(tmp_path).record(one.key) == one
    assert Store(tmp_path).record("s3") is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_come_back_bit_for_bit(values: list[float]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        names = [str(i) for i in range(len(values))]
        curves = [values for _ in names]
        unit = Unit(names, values, ["ok"] * len(values), [""] * len(values), 0.0, curves, curves, {"d": values})
        found = written(Path(folder), k0=unit).get("k0")
        assert found is not None
        assert found.x is not None
        for side in (found.values, found.x[-1], found.details["d"]):
            assert [float(v or 0.0).hex() for v in side] == [float(v or 0.0).hex() for v in values]


@given(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from(["scores", "curves", "details"]))
def test_a_damaged_part_is_never_trusted(position: int, flip: int, kind: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        written(root, abcd=UNIT)
        path = part_of(root, kind)
        raw = bytearray(path.read_bytes())
        raw[position % len(raw)] ^= flip
        path.write_bytes(bytes(raw))
        store = Store(root)
        assert store.get("abcd") is None
        assert store.damaged == [path.name]
        store.put("abcd", UNIT)
        store.flush()
        assert store.get("abcd") == Store(root).get("abcd") == UNIT


@pytest.mark.parametrize("kind", ["scores", "curves", "details"])
def test_a_truncated_or_lost_part_is_never_trusted(tmp_path: Path, kind: str) -> None:
    for size in (None, 0, 1, 40, 400):
        written(tmp_path, abcd=UNIT)
        path = part_of(tmp_path, kind)
        if size is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:size])
        found = Store(tmp_path)
        assert found.get("abcd") is None
        shutil.rmtree(tmp_path / "parts")


def test_damage_to_the_rows_is_seen_before_they_are_used(tmp_path: Path) -> None:
    """What is there is read from footers alone; `check` reads the rest."""
    written(tmp_path, abcd=UNIT)
    path = part_of(tmp_path, "curves")
    raw = bytearray(path.read_bytes())
    raw[4] ^= 1
    path.write_bytes(bytes(raw))
    store, images = Store(tmp_path), ("a", "b")
    assert store.failed("abcd", images) is True
    assert not store.check([("abcd", images)], [])
    assert store.failed("abcd", images) is None
    assert store.check([("abcd", images)], [])
    assert store.damaged == [path.name]


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(tmp_path, abcd=UNIT)
    later = dataclasses.replace(UNIT, values=[0.5, None])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    store.put("abff", later)
    with pytest.raises(StoreFull, match="everything finished is safe"):
        store.flush()
    monkeypatch.undo()
    assert Store(tmp_path).get("abcd") == UNIT
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]
    store.flush()  # what waited is still there
    assert Store(tmp_path).get("abff") == later


def test_a_run_that_ends_anyhow_has_written_what_it_had(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def interrupted() -> None:
        with store.writing():
            store.put("abcd", UNIT)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert Store(tmp_path).get("abcd") == UNIT


def test_parts_are_written_when_there_is_much_or_some_time_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files() -> int:
        return len(list(tmp_path.rglob("scores-*.parquet")))

    now = [time.monotonic()]
    monkeypatch.setattr(store.time, "monotonic", lambda: now[0])
    filled = Store(tmp_path)
    filled.put("k1", UNIT)
    assert files() == 0
    now[0] += store.SOON
    filled.put("k2", UNIT)
    assert files() == 1  # both
    now[0] += 1e6
    filled.put("k3", UNIT)
    now[0] += store.LATE - 1  # a long run: its parts are fewer and larger
    filled.put("k4", UNIT)
    assert files() == 2
    monkeypatch.setattr(store, "NUMBERS", 2 * UNIT.numbers)
    filled.put("k5", UNIT)
    assert files() == 3
    assert [key for key in ("k1", "k2", "k3", "k4", "k5") if Store(tmp_path).get(key) != UNIT] == []


def test_what_two_writers_did_counts_once(tmp_path: Path) -> None:
    """Neither knows of the other, and there is no lock."""
    one, other = Store(tmp_path), Store(tmp_path)
    better = dataclasses.replace(UNIT, values=[0.1, 0.2], statuses=["ok", "ok"])
    assert one.get("abcd") is other.get("abcd") is None
    for writer, unit in ((one, UNIT), (other, better)):
        writer.put("abcd", unit)
        writer.put("same", UNIT)
        writer.flush()
    third = Store(tmp_path)
    assert third.get("abcd") == better  # one without failures
    write_tables(third, [({**PLACE}, "abcd", UNIT.images), ({**PLACE, "metric": "z"}, "same", UNIT.images)])
    assert len(pd.read_parquet(tmp_path / "scores.parquet")) == 4


def test_clearing_up_leaves_what_another_run_wrote_meanwhile(tmp_path: Path) -> None:
    """As by a run that looked at the directory and then waited for its lock."""
    waiting = Store(tmp_path)
    assert waiting.get("abcd") is None
    written(tmp_path, abcd=UNIT)
    orphan = tmp_path / "parts" / f"curves-{'0' * 64}.parquet"
    orphan.touch()
    waiting.clear_leftovers()
    assert not orphan.exists()
    assert waiting.get("abcd") == Store(tmp_path).get("abcd") == UNIT


def test_memory_of_unpacked_parts_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        written(tmp_path, **{f"k{number}": dataclasses.replace(UNIT, seconds=float(number))})
    monkeypatch.setattr(parts, "HELD", 800)
    store = Store(tmp_path)
    for number in (0, 1, 2, 3, 4, 0):
        found = store.get(f"k{number}")
        assert found is not None
        assert found.seconds == number
        assert sum(one.table.nbytes for one in store.parts._held.values()) <= 800


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
    monkeypatch.setattr(tables, "GROUP", 3)  # so that there are several groups
    store = written(tmp_path, k1=UNIT, k2=UNIT)
    store.put("k3", UNIT)  # not in a part yet
    places = [({**PLACE, "method": name}, f"k{at}", UNIT.images) for at, name in enumerate("uvw", start=1)]
    hashes = write_tables(store, [*places, (PLACE, "k4", UNIT.images)])  # and one that is not there
    scores, curves, details = (pd.read_parquet(tmp_path / name) for name in hashes)
    assert list(scores.columns) == [*PLACE, "image", "value", "status", "note", "seconds", "machine"]
    assert list(scores["method"]) == ["u", "u", "v", "v", "w", "w"]
    assert list(scores["image"]) == ["a", "b"] * 3
    assert scores["value"].isna().tolist() == [False, True] * 3
    assert list(curves["method"]) == ["u", "v", "w"]
    assert [list(x) for x in curves["x"]] == [[0.0, 1.0]] * 3
    assert details[["method", "image", "detail", "value"]].to_numpy().tolist() == [[m, "b", "tied", 0.5] for m in "uvw"]
    assert hashes == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in hashes}


def test_a_part_under_anothers_name_is_not_trusted(tmp_path: Path) -> None:
    written(tmp_path, abcd=UNIT)
    first = part_of(tmp_path, "scores")
    written(tmp_path, abff=dataclasses.replace(UNIT, values=[0.9, None]))
    (other,) = set(tmp_path.rglob("scores-*.parquet")) - {first}
    shutil.copy(other, first)
    store = Store(tmp_path)
    assert store.get("abcd") is None
    assert store.get("abff") is None or store.get("abff") == dataclasses.replace(UNIT, values=[0.9, None])


def test_a_unit_of_other_pictures_is_not_trusted(tmp_path: Path) -> None:
    store = written(tmp_path, abcd=UNIT)
    assert store.get("abcd", ["a", "b"]) == UNIT
    assert store.get("abcd", ["b", "a"]) is None
    assert store.failed("abcd", ["b", "a"]) is None


def test_units_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """One JSON file each, under a checksum."""
    body = json.dumps({"key": "abcd", **dataclasses.asdict(UNIT)}).encode()
    file = tmp_path / "units" / "ab" / "abcd.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    store = Store(tmp_path)
    assert store.get("abcd", ["a", "b"]) == UNIT
    assert store.failed("abcd", ["a", "b"]) is True
    assert store.get("abff") is None
    write_tables(store, [(PLACE, "abcd", UNIT.images)])
    assert pd.read_parquet(tmp_path / "curves.parquet")["image"].tolist() == ["a"]
    file.write_bytes(file.read_bytes()[:-3])
    assert store.get("abcd") is None
    assert store.damaged == ["abcd.json"]


def test_a_part_with_other_columns_or_too_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone can give a file the name of its content."""
    name = part.write(tmp_path, "scores", pa.table({"unit": ["abcd"], "value": ["much"]}), {})
    with pytest.raises(Damaged, match="cannot be read"):
        part.read(tmp_path / name, SCHEMAS["scores"])
    written(tmp_path, abcd=UNIT)
    monkeypatch.setattr(part, "LARGEST", 100)
    with pytest.raises(Damaged, match="unpacks to more than"):
        part.read(part_of(tmp_path, "curves"), SCHEMAS["curves"])


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for place in (tmp_path / "taken" / "x", tmp_path / "taken" / "deep" / "x"):
        with pytest.raises(NotWritable, match=r"taken.*x cannot be written"):
            write_atomically(place, b"new")
    assert Store(tmp_path / "taken").get_json("anything") is None

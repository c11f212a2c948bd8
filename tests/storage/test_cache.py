"""What comes from a cache is what was put there under that name, or is made again."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.data.two_factor import dataset
from heatproof.occlusion.diffusion import reconstruction_cache
from heatproof.storage import cache


@given(name=st.binary(max_size=20), content=st.binary(max_size=40), at=st.integers(0, 500))
def test_no_flipped_bit_and_no_other_name_passes(name: bytes, content: bytes, at: int) -> None:
    whole = cache.sealed(name, content)
    assert cache.unsealed(name, whole) == content
    flipped = bytearray(whole)
    flipped[at // 8 % len(whole)] ^= 1 << at % 8
    assert cache.unsealed(name, bytes(flipped)) is None
    assert cache.unsealed(name + b"x", whole) is None
    assert cache.unsealed(name, whole[:-1]) is None


def test_an_empty_cache_lasts_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEATPROOF_CACHE", "before")
    with cache.empty_cache() as folder:
        assert cache.cache_directory() == folder
        assert not list(folder.iterdir())
        (folder / "something").touch()
    assert cache.cache_directory() == Path("before")
    assert not folder.exists()
    monkeypatch.delenv("HEATPROOF_CACHE")
    with cache.empty_cache():
        pass
    assert "HEATPROOF_CACHE" not in os.environ


def test_swapped_blocks_of_pictures_are_drawn_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    draw = dataset._block.__wrapped__
    one, other = draw(0, 2000, 16, (0.4, 0.6)), draw(0, 2001, 16, (0.4, 0.6))
    files = sorted(tmp_path.rglob("*.sealed"))
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, reversed(contents), strict=True):
        file.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        again = draw(0, 2000, 16, (0.4, 0.6))
    assert "made again" in caplog.text
    assert not np.array_equal(one["image"], other["image"])
    assert np.array_equal(one["image"], again["image"])
    assert files[0].read_bytes() == contents[0]  # mended


def test_swapped_rows_of_the_diffusion_are_not_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    reconstruction_cache.keep({b"a": b"one", b"b": b"two", b"c": b"three"})
    with reconstruction_cache._opened() as base:
        (first,) = base.execute("SELECT value FROM kept WHERE key = ?", (b"a",)).fetchone()
        base.execute("UPDATE kept SET value = ? WHERE key = ?", (first, b"b"))
        base.commit()
    with caplog.at_level(logging.WARNING):
        assert reconstruction_cache.find([b"a", b"b", b"c"]) == {b"a": b"one", b"c": b"three"}
    assert "made again" in caplog.text

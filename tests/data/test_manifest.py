"""Pictures are hashed once, as long as they do not change."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heatproof.data._support import manifest
from heatproof.data._support.manifest import Manifests, manifests
from heatproof.data.folder import Folder
from heatproof.run import run
from heatproof.spec.study import Study
from heatproof.storage.cache import cache_directory, empty_cache
from heatproof.types import View


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(manifest, "SETTLED", -1.0)  # the tests do not wait


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "photos" / "a.png"
    path.parent.mkdir()
    path.write_bytes(b"one")
    return path


def digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def kept_of(picture: Path) -> Manifests:
    """What a later process finds, after this one has hashed the picture."""
    first = Manifests()
    assert first.hash_of(picture) == digest(picture.read_bytes())
    first.keep()
    return Manifests()


def test_a_file_that_did_not_change_is_not_read_again(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = kept_of(picture)
    monkeypatch.delattr(hashlib, "file_digest")
    assert later.hash_of(picture) == digest(b"one")


def test_a_change_is_seen_also_if_its_time_is_set_back(picture: Path) -> None:
    later, before = kept_of(picture), picture.stat()
    time.sleep(0.02)
    picture.write_bytes(b"two")
    os.utime(picture, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert picture.stat().st_size == before.st_size
    assert later.hash_of(picture) == digest(b"two")


def test_a_file_of_this_moment_is_read_every_time(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "SETTLED", 60.0)
    later = kept_of(picture)
    picture.write_bytes(b"two")
    assert later.hash_of(picture) == digest(b"two")
    assert not list(cache_directory().rglob("*.sealed"))


def test_a_damaged_manifest_is_made_again(picture: Path) -> None:
    kept_of(picture)
    (kept,) = cache_directory().rglob("*.sealed")
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    assert Manifests().hash_of(picture) == digest(b"one")


def test_an_empty_cache_knows_no_picture(picture: Path) -> None:
    assert manifests() is manifests()
    assert manifests().hash_of(picture) == digest(b"one")
    with empty_cache():
        assert manifests().read == {}


def test_a_run_keeps_what_it_has_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(photos / "a.png")
    study = Study(["embedded:object"], [Folder(str(photos), View(64))], ["random"], ["smoothness"])
    first = run(study, tmp_path / "run")
    monkeypatch.delattr(hashlib, "file_digest")
    assert Manifests().hash_of(photos / "a.png") == digest((photos / "a.png").read_bytes())
    assert first.complete

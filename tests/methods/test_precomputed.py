"""Maps from elsewhere."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from networks import batch, small_cnn

from heatproof.attribute import attribute
from heatproof.errors import BadInput, BadShape, NotApplicable
from heatproof.methods import precomputed
from heatproof.methods.precomputed import Precomputed, kept
from heatproof.spec.parse import parse
from heatproof.spec.recipe import build, key, label, plain

MAPS = np.random.default_rng(0).normal(size=(3, 32, 32)).astype(np.float64)


def archive(where: Path, maps: np.ndarray = MAPS) -> Precomputed:
    np.savez(where / "maps.npz", **{f"picture{i}": values for i, values in enumerate(maps)})
    return Precomputed(str(where / "maps.npz"))


def test_an_archive_and_a_folder_hold_one_map_per_image(tmp_path: Path) -> None:
    pictures = replace(batch(3), ids=("picture0", "picture1", "picture2.jpg"))
    folder = tmp_path / "maps"
    folder.mkdir()
    for i, values in enumerate(MAPS):
        np.save(folder / f"picture{i}.npy", values)
    for method in (archive(tmp_path), Precomputed(str(folder))):
        maps = attribute(small_cnn(), pictures, method).maps
        assert torch.equal(maps, torch.from_numpy(MAPS).float())
        turned = attribute(small_cnn(), pictures.select([2, 0]), method).maps
        assert torch.equal(turned, maps[[2, 0]])


def test_channels_are_added_up(tmp_path: Path) -> None:
    method = archive(tmp_path, np.stack([MAPS] * 3))
    assert torch.allclose(method(small_cnn(), batch(1))[0], torch.from_numpy(MAPS.sum(0)).float(), atol=1e-5)


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    pictures, model = batch(1), small_cnn()
    with pytest.raises(NotApplicable, match="path="):
        Precomputed()(model, pictures)
    with pytest.raises(BadInput, match="no file or folder"):
        Precomputed(str(tmp_path / "nowhere"))(model, pictures)
    with pytest.raises(BadInput, match="no map for image 'other'"):
        archive(tmp_path)(model, replace(pictures, ids=("other",)))
    with pytest.raises(BadShape, match=r"'picture0' .* must have shape \(32, 32\), got \(16, 16\)"):
        archive(tmp_path, MAPS[:, :16, :16])(model, pictures)
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    with pytest.raises(BadInput, match="cannot be read"):
        Precomputed(str(tmp_path / "broken.npz"))(model, pictures)
    np.save(tmp_path / "picture0.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BadInput, match="cannot be read"):
        Precomputed(str(tmp_path))(model, pictures)


def test_an_image_id_cannot_reach_outside_the_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", MAPS[0])
    (tmp_path / "maps").mkdir()
    with pytest.raises(BadInput, match="no map"):
        Precomputed(str(tmp_path / "maps"))(small_cnn(), replace(batch(1), ids=("../secret",)))


def test_other_maps_under_the_same_name_are_another_method(tmp_path: Path) -> None:
    before = key(archive(tmp_path))
    again = archive(tmp_path)
    assert build(plain(again)) == again
    assert key(archive(tmp_path, MAPS + 1)) != before


def test_the_file_that_explain_writes_can_be_judged(tmp_path: Path) -> None:
    ids = np.array([f"/photos/dogs/picture{i}.jpg" for i in range(3)])
    np.savez(tmp_path / "maps.npz", ids=ids, targets=np.array(["1", "0", "2"]), saliency=MAPS, lrp=2 * MAPS)
    path, pictures = str(tmp_path / "maps.npz"), replace(batch(2), ids=("dogs/picture1.jpg", ids[0].item()))
    found = attribute(small_cnn(), pictures, Precomputed(path, name="lrp")).maps
    assert torch.equal(found, torch.from_numpy(2 * MAPS[[1, 0]]).float())
    assert key(Precomputed(path, name="lrp")) != key(Precomputed(path, name="saliency"))
    with pytest.raises(BadInput, match=r"maps of saliency, lrp: name one of them, .* name='saliency'"):
        Precomputed(path)(small_cnn(), pictures)
    for unknown in ("picture9.jpg", "icture1.jpg"):
        with pytest.raises(BadInput, match="no map for image"):
            Precomputed(path, name="lrp")(small_cnn(), replace(batch(1), ids=(unknown,)))


def test_the_label_says_that_the_maps_are_precomputed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    method = Precomputed("maps.npz", name="saliency")
    assert label(method) == f"precomputed(path={tmp_path / 'maps.npz'}, name=saliency)"
    assert parse("method", label(method)) == method


def test_a_map_that_may_be_either_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "maps.npz", ids=np.array(["/a/1.png", "/b/1.png", "/c/2.png"]), lrp=MAPS)
    pictures = replace(batch(1), ids=("1.png",))
    with pytest.raises(BadInput, match=r"'1.png' may be '/a/1.png' or '/b/1.png'"):
        Precomputed(str(tmp_path / "maps.npz"))(small_cnn(), pictures)
    found = Precomputed(str(tmp_path / "maps.npz"))(small_cnn(), replace(pictures, ids=("2.png",)))
    assert torch.equal(found[0], torch.from_numpy(MAPS[2]).float())


def test_whether_maps_have_both_signs_is_declared_by_their_maker(tmp_path: Path) -> None:
    usual = archive(tmp_path)
    assert usual.signed
    heat = replace(usual, signed=False)
    assert not heat.signed
    assert build(plain(heat)) == heat
    assert key(heat) != key(usual)
    assert label(heat).endswith("signed=False)")


def test_a_map_of_another_class_is_refused(tmp_path: Path) -> None:
    model, pictures = small_cnn(), batch(3)
    output = [str(target) for target in pictures.targets.tolist()]
    np.savez(tmp_path / "maps.npz", ids=np.array(pictures.ids), targets=np.array(output), saliency=MAPS)
    maps = Precomputed(str(tmp_path / "maps.npz"))
    assert maps(model, pictures).shape == MAPS.shape
    named = replace(model, classes=tuple("abcdefghij"))  # numbers mean the same classes as their names
    assert maps(named, pictures).shape == MAPS.shape
    other = pictures.aimed((pictures.targets + torch.tensor([0, 1, 0])) % 10)
    with pytest.raises(BadInput, match=f"the map of '{pictures.ids[1]}' .* explains '{output[1]}', but"):
        maps(model, other)


def test_a_folder_is_known_by_its_content_not_by_size_and_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.zeros((2, 2), np.float32))
    file = tmp_path / "a.npy"
    before, state = Precomputed(str(tmp_path)).revision, file.stat()
    with file.open("r+b") as stream:  # the same file, size and time
        stream.seek(-4, os.SEEK_END)
        stream.write(np.float32(1).tobytes())
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    precomputed._hashed.cache_clear()  # as in a new process
    assert Precomputed(str(tmp_path)).revision != before
    with file.open("r+b") as stream:
        stream.seek(-4, os.SEEK_END)
        stream.write(np.float32(0).tobytes())
    assert Precomputed(str(tmp_path)).revision == before
    file.rename(tmp_path / "c.npy")
    assert Precomputed(str(tmp_path)).revision != before


def test_maps_in_memory_become_a_method_with_their_name(tmp_path: Path) -> None:
    pictures = batch(3)
    maps = torch.rand(3, 32, 32)
    (given,) = kept({"ours": maps}, pictures.ids, tmp_path / "run" / "maps.npz")
    assert label(given) == "ours"
    assert torch.equal(attribute(small_cnn(), pictures.select([2, 0]), given).maps, maps[[2, 0]])
    assert build(plain(given)) == given


def test_maps_that_do_not_fit_the_pictures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadShape, match=r"'ours' must have shape \(3, height, width\), got \(2, 8, 8\)"):
        kept({"ours": torch.rand(2, 8, 8)}, ("a", "b", "c"), tmp_path / "maps.npz")
    with pytest.raises(BadInput, match="not 'ids' or 'targets'"):
        kept({"ids": torch.rand(1, 8, 8)}, ("a",), tmp_path / "maps.npz")
    with pytest.raises(BadInput, match="name the maps otherwise, 'my_saliency'"):
        kept({"saliency": torch.rand(1, 8, 8)}, ("a",), tmp_path / "maps.npz")

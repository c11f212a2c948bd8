"""`heatproof explain`: what is drawn, what it is called, and where it goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner, Result

from heatproof import contact_sheet
from heatproof.cli import app
from heatproof.errors import BadInput, HeatproofError
from heatproof.methods.precomputed import Precomputed
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.types import Batch, Model, View


def network(channels: int = 3) -> nn.Module:
    torch.manual_seed(0)
    convolution = nn.Conv2d(channels, 4, 5, 4)
    return nn.Sequential(convolution, nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 5))


MODEL = Model("tiny", network(), view=View(32))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for seed, name in enumerate(("cat/0.png", "cat/1.png", "dog/0.png")):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / name)
    return tmp_path / "photos"


def _explain(*words: str) -> Result:
    return CliRunner().invoke(app, ["explain", "--model", "embedded:object", "--quiet", *words])


def test_two_methods_of_one_label_are_refused(photos: Path) -> None:
    answer = _explain("--methods", "edges,edges", str(photos))
    assert answer.exit_code == 2
    assert "methods must have different labels, got twice: edges" in answer.output


@pytest.mark.parametrize(
    ("given", "grid", "raw"),
    [
        ("x.npz", "x.png", "x.npz"),
        ("x.png", "x.png", "x.npz"),
        ("v1.2", "v1.2.png", "v1.2.npz"),
        ("x", "x.png", "x.npz"),
        ("cat", "cat/maps.png", "cat/maps.npz"),  # a folder that there is
    ],
)
def test_the_picture_is_a_png_and_the_maps_an_npz_beside_it(photos: Path, given: str, grid: str, raw: str) -> None:
    answer = _explain("--methods", "edges", "--out", str(photos / given), str(photos / "dog"))
    assert answer.exit_code == 0, answer.output
    with Image.open(photos / grid) as drawn:
        assert drawn.format == "PNG"
    with np.load(photos / raw) as maps:
        assert maps["edges"].shape == (1, 64, 64)
    assert answer.output.split() == [str(photos / grid), str(photos / raw)]


@pytest.mark.parametrize("given", ["odd.jpg", "odd.gif", "odd.npy"])
def test_another_ending_is_refused_before_anything_is_computed(photos: Path, given: str) -> None:
    answer = _explain("--methods", "edges", "--out", str(photos / given), str(photos / "dog"))
    assert answer.exit_code == 2
    assert f"got '{given}': take 'odd.png'" in answer.output
    assert not list(photos.glob("odd*"))


OWN = """
import sys
import numpy as np


def boom(model, batch):
    batch.images.zero_()
    raise ZeroDivisionError("nobody divides by this")


def leaves(model, batch):
    sys.exit(3)


def numpy_maps(model, batch):
    return np.zeros((len(batch), 64, 64))


def stopped(model, batch):
    raise KeyboardInterrupt
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("boom", "ZeroDivisionError: nobody divides by this"),
        ("leaves", "SystemExit: 3"),
        ("numpy_maps", "must return a tensor of maps, got ndarray"),
    ],
)
def test_a_method_that_fails_leaves_the_others_their_maps(
    photos: Path, own: Path, tmp_path: Path, name: str, says: str
) -> None:
    alone, beside = tmp_path / "alone.npz", tmp_path / "beside.npz"
    assert _explain("--methods", "saliency,edges", "--out", str(alone), str(photos)).exit_code == 0
    answer = _explain("--methods", f"saliency,{own}:{name},edges", "--out", str(beside), str(photos))
    assert answer.exit_code == 1, answer.output
    assert any(name in line and says in line for line in answer.output.splitlines()), answer.output
    assert beside.with_suffix(".png").read_bytes() == alone.with_suffix(".png").read_bytes()
    with np.load(alone) as first, np.load(beside) as second:
        assert set(first.files) == set(second.files)
        assert all(np.array_equal(first[key], second[key]) for key in first.files)


def test_a_person_who_stops_it_is_obeyed(photos: Path, own: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        contact_sheet.explain(MODEL, [photos], [parse("method", f"{own}:stopped")])
    answer = _explain("--methods", f"edges,{own}:stopped", "--out", str(tmp_path / "x.png"), str(photos))
    assert answer.exit_code != 0
    assert not (tmp_path / "x.png").exists()


def test_without_a_single_map_nothing_is_written(photos: Path, own: Path, tmp_path: Path) -> None:
    answer = _explain("--methods", f"attention_rollout,{own}:boom", "--out", str(tmp_path / "x.png"), str(photos))
    assert answer.exit_code == 1
    assert "no method gave a map" in answer.output
    assert "attention_rollout: " in answer.output
    assert not list(tmp_path.glob("x.*"))


def test_one_model_at_a_time_and_methods_in_one_word_or_several(photos: Path, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "x.png"))
    answer = _explain("--model", "embedded:scene", "--methods", "edges", *out, str(photos))
    assert answer.exit_code == 2
    assert "one --model, got 2: embedded:object, embedded:scene" in answer.output
    assert not list(tmp_path.glob("x.*"))
    assert _explain("--methods", "edges", "--methods", "centre", *out, str(photos)).exit_code == 0
    with np.load(tmp_path / "x.npz") as maps:
        assert {"edges", "centre"} <= set(maps.files)


NAMED = Model("named", network(), view=View(32), classes=("tench", "Great_white shark", "crane", "hen", "Crane"))


@pytest.mark.parametrize(("target", "index"), [("3", 3), ("hen", 3), ("great white_Shark", 1), ("4", 4), ("Crane", 4)])
def test_the_class_explained_is_the_chosen_one(photos: Path, target: str, index: int) -> None:
    seen: list[list[int]] = []

    def spy(model: Model, batch: Batch) -> torch.Tensor:
        seen.append(batch.targets.tolist())
        return batch.images.mean(1)

    sheet = contact_sheet.explain(NAMED, [photos], [spy], target=target)
    assert seen == [[index] * 3]
    assert sheet.targets == (NAMED.classes[index],) * 3


@pytest.mark.parametrize(
    ("model", "target", "says"),
    [
        (NAMED, "5", r"indices are 0 … 4, got 5"),
        (NAMED, "-1", r"indices are 0 … 4, got -1"),
        (NAMED, "tensh", "Did you mean 'tench'?"),
        (NAMED, "CRANE", "may be any of the classes 2, 4: give the index"),
        (MODEL, "hen", r"a class index in 0 … 4, since model 'tiny' names no classes, got 'hen'"),
    ],
)
def test_a_class_that_there_is_not_is_refused(photos: Path, model: Model, target: str, says: str) -> None:
    with pytest.raises(HeatproofError) as refused:
        contact_sheet.explain(model, [photos], [parse("method", "edges")], target=target)
    assert says in str(refused.value)


def test_the_chosen_class_is_stored_and_drawn(photos: Path, tmp_path: Path) -> None:
    grids = set()
    for target in ("0", "1"):
        out = tmp_path / f"x{target}.npz"
        answer = _explain("--methods", "edges", "--target", target, "--out", str(out), str(photos))
        assert answer.exit_code == 0, answer.output
        with np.load(out) as maps:
            assert len(set(maps["targets"].tolist())) == 1
        grids.add(out.with_suffix(".png").read_bytes())
    assert len(grids) == 2  # the same edges, another class under the pictures
    answer = _explain("--methods", "edges", "--target", "99", str(photos))
    assert answer.exit_code == 2
    assert "got 99" in answer.output


def test_maps_from_elsewhere_stand_beside_the_method_they_are_of(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "first.npz"
    assert _explain("--methods", "edges", "--out", str(out), str(photos)).exit_code == 0
    again = tmp_path / "again.npz"
    both = f"edges,precomputed(path={out}, name=edges)"
    answer = _explain("--methods", both, "--out", str(again), str(photos))
    assert answer.exit_code == 0, answer.output
    with np.load(again) as maps:
        names = set(maps.files) - {"ids", "targets"}
        assert names == {"edges", f"precomputed(path={out}, name=edges)"}
        first, second = (maps[name] for name in names)
        assert np.array_equal(first, second)


@pytest.mark.parametrize("named", ["id", "file name", "stem"])
@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_maps_are_found_by_id_file_name_or_stem(photos: Path, tmp_path: Path, named: str, kind: str) -> None:
    name = {"id": "cat/1.png", "file name": "1.png", "stem": "1"}[named]
    found = np.random.default_rng(0).normal(size=(32, 32)).astype(np.float32)
    if kind == "folder":
        file = tmp_path / "maps" / f"{name}.npy"
        file.parent.mkdir(parents=True)
        np.save(file, found)
    else:
        np.savez(tmp_path / "maps.npz", **{name: found})
    method = Precomputed(str(tmp_path / ("maps" if kind == "folder" else "maps.npz")))
    sheet = contact_sheet.explain(MODEL, [photos / "cat" / "1.png"], [method])
    assert np.array_equal(sheet.maps[recipe.label(method)][0], found)


def test_a_map_that_may_belong_to_either_picture_is_refused(photos: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "maps.npz", **{"cat/0": np.ones((32, 32)), "dog/0": np.eye(32)})
    method = Precomputed(str(tmp_path / "maps.npz"))
    refused = contact_sheet.explain(MODEL, [photos / "cat" / "0.png"], [method]).missing
    assert "'cat/0' or 'dog/0'" in refused[recipe.label(method)]
    both = contact_sheet.explain(MODEL, [photos / "dog" / "0.png", photos / "cat" / "0.png"], [method])
    assert np.array_equal(both.maps[recipe.label(method)][0], np.eye(32, dtype=np.float32))


def test_pictures_have_the_ids_a_data_set_gives_them_unless_two_would_have_the_same(photos: Path) -> None:
    def ids(*images: Path) -> list[str]:
        return list(contact_sheet.unique_ids(images).values())

    assert ids(photos) == ["cat/0.png", "cat/1.png", "dog/0.png"]
    assert ids(photos / "cat") == ["0.png", "1.png"]
    assert ids(photos / "cat" / "1.png", photos / "dog") == ["1.png", "0.png"]
    assert ids(photos / "cat", photos / "dog") == ["cat/0.png", "1.png", "dog/0.png"]


def test_no_two_titles_look_the_same() -> None:
    titles = [
        f"smoothgrad(draws=4, method=integrated_gradients(steps=32), unit={unit})" for unit in ("range", "pixels")
    ]
    titles.append("precomputed(path=" + "x" * 90 + ")")
    for title in titles:
        lines = contact_sheet.wrapped(title, lambda text: 7.0 * len(text))
        assert "".join(lines) == title
        assert all(7 * len(line) <= contact_sheet.SIDE for line in lines)
    pixels, maps = np.zeros((1, 8, 8, 3), np.uint8), np.zeros((1, 8, 8), np.float32)

    def drawn(title: str) -> Image.Image:
        return contact_sheet.draw(contact_sheet.Sheet(("a",), pixels, ("0",), {title: maps}, {}))

    assert drawn(titles[0]).tobytes() != drawn(titles[1]).tobytes()
    assert drawn(titles[0]).height > drawn("edges").height


def test_the_class_is_readable_however_long_the_name_of_the_picture() -> None:
    pixels, maps = np.zeros((1, 8, 8, 3), np.uint8), np.zeros((1, 8, 8), np.float32)

    def drawn(target: str) -> Image.Image:
        return contact_sheet.draw(contact_sheet.Sheet(("x" * 90 + ".png",), pixels, (target,), {"edges": maps}, {}))

    assert drawn("hen").tobytes() != drawn("hem").tobytes()


def test_a_model_of_one_channel_gets_grey_pictures(photos: Path) -> None:
    grey = Model("grey", network(1), view=View(32))
    sheet = contact_sheet.explain(grey, [photos], [parse("method", "saliency")])
    assert not sheet.missing
    assert sheet.pictures.shape == (3, 32, 32, 3)
    assert (sheet.pictures[..., 0] == sheet.pictures[..., 2]).all()


def test_a_place_that_cannot_be_written_is_a_sentence(photos: Path) -> None:
    answer = _explain("--methods", "edges", "--out", str(photos / "cat" / "0.png" / "x.png"), str(photos / "dog"))
    assert answer.exit_code == 2
    assert "cannot be written" in answer.output
    with pytest.raises(BadInput, match="at least one method"):
        contact_sheet.explain(MODEL, [photos], [])


def test_the_line_up_is_drawn_where_no_method_is_named(photos: Path) -> None:
    answer = _explain("--out", str(photos / "x.png"), str(photos / "dog"))
    assert answer.exit_code == 0, answer.output
    with np.load(photos / "x.npz") as maps:
        assert {"saliency", "lrp", "grad_cam"} < set(maps.files)


def test_a_method_of_the_line_up_that_does_not_apply_is_named_and_no_failure(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "flat.py").write_text(
        "import torch\n"
        "def make():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 4))\n"
        "make.size = 32\n"
    )
    words = ["explain", "--model", f"{tmp_path / 'flat.py'}:make", "--quiet", str(photos / "dog")]
    answer = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "x.png")])
    assert answer.exit_code == 0, answer.output
    assert "grad_cam: " in answer.output
    named = CliRunner().invoke(app, [*words, "--methods", "saliency,grad_cam", "--out", str(tmp_path / "x.png")])
    assert named.exit_code == 1


@pytest.mark.parametrize("ending", ["pdf", "svg"])
def test_the_grid_may_be_vectors(photos: Path, ending: str) -> None:
    answer = _explain("--methods", "edges,constant", "--out", str(photos / f"x.{ending}"), str(photos / "dog"))
    assert answer.exit_code == 0, answer.output
    content = (photos / f"x.{ending}").read_bytes()
    assert content.startswith(b"%PDF") if ending == "pdf" else b">edges</text>" in content
    assert (photos / "x.npz").is_file()


def test_the_class_stands_with_its_probability(photos: Path) -> None:
    sheet = contact_sheet.explain(MODEL, [photos], [parse("method", "edges")], target="3")
    images = torch.from_numpy(sheet.pictures).permute(0, 3, 1, 2) / 255
    shares = MODEL(images).softmax(1)[:, 3].tolist()
    assert sheet.answers == [f"3 {100 * share:.0f} %" for share in shares]
    value = Model("value", nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 1)), view=View(32), output="regression")
    (answer,) = contact_sheet.explain(value, [photos / "dog"], [parse("method", "edges")]).readouts
    with torch.no_grad():
        assert answer == f"{value(images[2:]).item():.3g}"


def test_a_map_of_zeros_says_so_and_the_colours_have_a_legend() -> None:
    pixels = np.zeros((1, 8, 8, 3), np.uint8)

    def drawn(values: np.ndarray) -> np.ndarray:
        sheet = contact_sheet.Sheet(("a",), pixels, ("0",), {"edges": values}, {})
        return np.asarray(contact_sheet.draw(sheet)).astype(int)

    nothing, faint = drawn(np.zeros((1, 8, 8), np.float32)), drawn(np.full((1, 8, 8), 1e-30, np.float32))
    place = np.s_[22:202, 192:372]
    assert len(np.unique(nothing[place].reshape(-1, 3), axis=0)) > 2  # words on one colour
    assert len(np.unique(faint[place].reshape(-1, 3), axis=0)) == 1
    bar = nothing[-28 + 12, :]
    assert ((bar[:, 0] - bar[:, 2]) > 80).any()
    assert ((bar[:, 2] - bar[:, 0]) > 80).any()


def test_deep_pictures_are_explained_between_the_stated_values(tmp_path: Path) -> None:
    dark = np.linspace(0, 4095, 64 * 64).astype(np.uint16).reshape(64, 64)
    Image.fromarray(dark).save(tmp_path / "a.png")
    out = tmp_path / "grid.png"
    answer = _explain("--methods", "edges", "--value-range", "0,4095", "--out", str(out), str(tmp_path / "a.png"))
    assert answer.exit_code == 0, answer.output
    with Image.open(out) as grid:
        assert np.asarray(grid.convert("L"))[30:200, 10:180].max() > 240  # white is there: it was not read as 16 bits
    refused = _explain("--methods", "edges", "--value-range", "dark", str(tmp_path / "a.png"))
    assert refused.exit_code == 2
    assert "levels must be the grey values of black and white" in refused.output

"""BAM on disk: the published layout, masks that may be hostile, and the builder."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.data._support.other_region import OTHER_REGION, lender
from heatproof.data.bam.build import Plan, build, cutouts, paste
from heatproof.data.bam.classes import OBJECTS, SCENES
from heatproof.data.bam.coco import Cutout, candidates, cut_out, rasterise
from heatproof.data.bam.layout import BAM, NATIVE, TWIN_GAP
from heatproof.data.bam.masks import read_masks, write_masks
from heatproof.data.bam.names import Entry, Set
from heatproof.data.bam.twins import warning
from heatproof.data.cutouts import Cutouts
from heatproof.errors import BadInput
from heatproof.testing import check_dataset
from heatproof.types import View

RAN: list[str] = []


def touch(name: str) -> np.ndarray[Any, Any]:
    RAN.append(name)
    return np.zeros((2, 2), dtype=np.uint8)


class Hostile:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return touch, ("ran",)


def noise(size: tuple[int, int, int], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


def published(root: Path) -> Path:
    """Four validation pictures in exactly the published layout: a thousand masks, 128-pixel JPEGs, flat `val`."""
    names = ["bird-track-0999.jpg", "dog-bedroom-0900.jpg", "dog-bedroom-0901.jpg", "zebra-cockpit-0950.jpg"]
    masks = [np.ones((7, 5), dtype=np.bool_) for _ in range(1000)]
    masks[200] = np.tri(10, 10, dtype=np.bool_)  # the first dog
    for name in ("obj", "scene", "scene_only"):
        folder = root / "data" / name
        (folder / "val").mkdir(parents=True)
        for at, file in enumerate(names):
            pixels = noise((128, 128, 3), at)
            if name != "scene_only":
                pixels[20:60, 30:70] = 255 - pixels[20:60, 30:70]
            Image.fromarray(pixels).save(folder / "val" / file)
        known, part = (OBJECTS, 0) if name == "obj" else (SCENES, 1)
        lines = [f"{file} {known.index(file.split('-')[part])}" for file in names]
        (folder / "val.txt").write_text("\n".join(lines))  # no newline at the end
        (folder / "val_loc.txt").write_text("\n".join(f"{file} 20,30,60,70" for file in names) + "\n")
        write_masks(folder / "val_mask", masks)
    return root


def test_published_pictures_come_with_region_twin_and_labels(tmp_path: Path) -> None:
    data = BAM(str(published(tmp_path)))
    names = ["bird-track-0999.jpg", "dog-bedroom-0900.jpg", "dog-bedroom-0901.jpg", "zebra-cockpit-0950.jpg"]
    batch = data.batch([data.ids().index(name) for name in names])
    assert batch.labels["object"].tolist() == [OBJECTS.index(one) for one in ("bird", "dog", "dog", "zebra")]
    assert batch.labels["scene"].tolist() == [SCENES.index(one) for one in ("track", "bedroom", "bedroom", "cockpit")]
    assert batch.labels["object_id"][1] != batch.labels["object_id"][2]
    assert batch.regions is not None
    assert batch.twins is not None
    assert int(batch.regions[0].sum()) == 40 * 40  # a full mask fills its box
    assert 0.4 < float(batch.regions[1].sum()) / 1600 < 0.65  # the first dog's is a triangle
    assert bool(batch.regions[1, 59, 30])
    assert not bool(batch.regions[1, 20, 69])
    outside = ~batch.regions[:, None].expand_as(batch.images)
    assert torch.equal(batch.images[outside], batch.twins[outside])
    assert not torch.equal(batch.images, batch.twins)
    assert all(verdict.holds for verdict in check_dataset(data))


def test_a_hostile_val_mask_is_refused_and_nothing_of_it_runs(tmp_path: Path) -> None:
    array = np.empty(1, dtype=object)
    array[0] = Hostile()
    with (tmp_path / "val_mask").open("wb") as file:
        np.save(file, array, allow_pickle=True)
    RAN.clear()
    with pytest.raises(BadInput, match="refused"):
        read_masks(tmp_path / "val_mask")
    assert RAN == []
    with (tmp_path / "val_mask").open("rb") as file:  # the file is loaded: without the guard it does run
        np.load(file, allow_pickle=True)
    assert RAN == ["ran"]


@pytest.mark.parametrize(
    "content",
    [b"", b"not an array", pickle.dumps([1, 2]), b"\x93NUMPY\x01\x00"],
    ids=["empty", "text", "pickle", "cut"],
)
def test_what_is_no_array_of_masks_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "val_mask").write_bytes(content)
    with pytest.raises(BadInput, match="val_mask"):
        read_masks(tmp_path / "val_mask")


def test_masks_read_as_they_were_written(tmp_path: Path) -> None:
    masks = [noise((h, w, 1))[..., 0] > 99 for h, w in ((3, 4), (8, 2), (5, 5))]
    write_masks(tmp_path / "val_mask", masks)
    assert all(np.array_equal(a, b) for a, b in zip(read_masks(tmp_path / "val_mask"), masks, strict=True))
    same = np.stack([masks[2], ~masks[2]]).astype(np.uint8)
    np.save(tmp_path / "val_mask.npy", same)
    assert [int(mask.sum()) for mask in read_masks(tmp_path / "val_mask.npy")] == same.sum((1, 2)).tolist()


def test_bad_layouts_are_named(tmp_path: Path) -> None:
    root = published(tmp_path)
    obj = root / "data" / "obj"
    (root / "data" / "scene_only" / "val" / "dog-bedroom-0901.jpg").unlink()
    assert "no twin" in BAM(str(root)).batch(range(4)).missing["dog-bedroom-0901.jpg"]
    lines = (obj / "val_loc.txt").read_text().splitlines()
    (obj / "val_loc.txt").write_text("\n".join([lines[0], lines[1].replace("60,70", "60,170")]))
    missing = BAM(str(root)).batch(range(4)).missing
    assert "within the picture" in missing["dog-bedroom-0900.jpg"]
    assert "val_loc.txt" in missing["zebra-cockpit-0950.jpg"]
    (obj / "val.txt").write_text("dog-bedroom-0900.jpg 3\n")
    with pytest.raises(BadInput, match="label 3, but its name says 2"):
        len(BAM(str(root)))
    with pytest.raises(BadInput, match="named <object>-<scene>"):
        Entry.of("cat-bedroom-0900.jpg")
    with pytest.raises(BadInput, match="obj, scene and scene_only"):
        len(BAM(str(tmp_path / "data" / "obj")))


def patched(root: Path, read_by: str) -> Path:
    """Patched pictures as the published script leaves them: flat, 224 pixels, no list, the change in the name."""
    masks = [np.ones((4, 4), dtype=np.bool_) for _ in range(1000 if read_by == "scene_only" else 100)]
    masks[201 if read_by == "scene_only" else 1] = np.tri(10, 10, dtype=np.bool_)  # the second dog
    folder = root / "data" / read_by
    (folder / "val").mkdir(parents=True)
    (root / "data" / "bamboo_forest_patch").mkdir()
    lines = []
    for at, change in ((900, 0), (901, 12)):
        file = f"dog-bamboo_forest-{at:04d}.jpg"
        bare = Image.fromarray(noise((16, 16, 3), at)).resize((128, 128))
        bare.save(folder / "val" / file)
        shown = np.asarray(bare.resize((224, 224), Image.Resampling.BILINEAR)).copy()
        shown[35:105, 52:122] = 255 - shown[35:105, 52:122]
        Image.fromarray(shown).save(root / "data/bamboo_forest_patch" / f"dog-bamboo_forest-{at:04d}_{change}.jpg")
        lines.append(f"{file} 20,30,60,70")
    (folder / "val_loc.txt").write_text("\n".join(lines))
    write_masks(folder / "val_mask", masks)
    return root


@pytest.mark.parametrize("read_by", ["bamboo_forest", "scene_only"])
def test_patched_pictures_are_read_as_the_published_script_leaves_them(tmp_path: Path, read_by: str) -> None:
    data = BAM(str(patched(tmp_path, read_by)), set="bamboo_forest_patch")
    assert data.ids() == ("dog-bamboo_forest-0900_0.jpg", "dog-bamboo_forest-0901_12.jpg")
    assert [entry.change for entry in data.entries] == [0, 12]
    batch = data.batch(range(2))
    assert not batch.missing
    assert batch.images.shape == (2, 3, 224, 224)
    assert batch.labels["scene"].tolist() == [0, 0]
    assert batch.targets.tolist() == [0, 0]
    assert batch.regions is not None
    assert batch.twins is not None
    # The box 20,30,60,70 of 128 pixels at 224, cut down to whole pixels.
    rows, columns = (batch.regions[0].any(axis).nonzero().flatten() for axis in (1, 0))
    assert (int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1) == (35, 105, 52, 122)
    assert 0.4 < float(batch.regions[1].sum()) / 4900 < 0.65  # the second dog's own mask
    outside = ~batch.regions[:, None].expand_as(batch.images)
    assert torch.equal(batch.images[outside], batch.twins[outside])
    inside = batch.regions[:, None].expand_as(batch.images)
    assert float((batch.images[inside] - batch.twins[inside]).abs().mean()) > 0.1
    assert all(verdict.holds for verdict in check_dataset(data))


def test_patched_pictures_may_also_come_with_lists(tmp_path: Path) -> None:
    folder = patched(tmp_path, "scene_only") / "data" / "bamboo_forest_patch"
    (folder / "val").mkdir()
    for path in folder.glob("*.jpg"):
        with Image.open(path) as picture:
            picture.resize((128, 128)).save(folder / "val" / path.name)
        path.unlink()
    files = sorted(path.name for path in (folder / "val").iterdir())
    (folder / "val.txt").write_text("\n".join(f"{file} 0" for file in files))
    (folder / "val_loc.txt").write_text("\n".join(f"{file} 10,10,50,60" for file in files))
    batch = BAM(str(tmp_path), set="bamboo_forest_patch").batch(range(2))
    assert not batch.missing
    assert batch.regions is not None
    assert int(batch.regions[0].sum()) == 40 * 50  # no val_mask: the box


def test_what_patched_pictures_lack_is_named(tmp_path: Path) -> None:
    data = patched(tmp_path, "scene_only") / "data"
    (data / "scene_only/val/dog-bamboo_forest-0900.jpg").unlink()
    boxes = (data / "scene_only/val_loc.txt").read_text().splitlines()
    (data / "scene_only/val_loc.txt").write_text(boxes[0])
    missing = BAM(str(tmp_path), set="bamboo_forest_patch").batch(range(2)).missing
    assert "no twin" in missing["dog-bamboo_forest-0900_0.jpg"]
    assert "not in scene_only/val_loc.txt" in missing["dog-bamboo_forest-0901_12.jpg"]
    (data / "scene_only/val_loc.txt").unlink()
    nothing_given = BAM(str(tmp_path), set="bamboo_forest_patch").batch(range(2))
    assert len(nothing_given) == 0
    assert "pictures without boxes" in nothing_given.missing["dog-bamboo_forest-0901_12.jpg"]
    (data / "bamboo_forest_patch/holiday.jpg").write_bytes(b"")
    with pytest.raises(BadInput, match=r"named <object>-<scene>.*holiday\.jpg"):
        len(BAM(str(tmp_path), set="bamboo_forest_patch"))
    for path in (data / "bamboo_forest_patch").iterdir():
        path.unlink()
    with pytest.raises(BadInput, match=r"must hold pictures, or its set a val\.txt"):
        len(BAM(str(tmp_path), set="bamboo_forest_patch"))


def coco(root: Path, per_class: int = 2) -> tuple[Path, Path]:
    """A COCO-style annotation file with two usable pictures per class, and some that must be left out."""
    (root / "train2017").mkdir()
    names = [name.replace("_", " ") for name in OBJECTS]
    message: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
    message["categories"] = [{"id": 10 + at, "name": name} for at, name in enumerate(names)]
    for at in range(len(names) * per_class):
        file = f"{at + 1:012d}.jpg"
        Image.fromarray(noise((90, 100, 3), at)).save(root / "train2017" / file)
        message["images"].append({"id": at + 1, "file_name": file, "width": 100, "height": 90})
        shared = {"image_id": at + 1, "category_id": 10 + at % len(names), "iscrowd": 0}
        polygon = [20.0, 10.0, 70.0, 10.0, 70.0, 60.0, 20.0, 60.0]
        message["annotations"].append({**shared, "segmentation": [polygon], "area": 2500.0, "bbox": [20, 10, 51, 51]})
        crumb = [80.0, 70.0, 85.0, 70.0, 85.0, 75.0]
        message["annotations"].append({**shared, "segmentation": [crumb], "area": 12.0, "bbox": [80, 70, 6, 6]})
    crowd = {"image_id": 1, "category_id": 11, "iscrowd": 1, "area": 9000.0, "bbox": [0, 0, 100, 90]}
    message["annotations"].append({**crowd, "segmentation": {"counts": [0, 9000], "size": [90, 100]}})
    (root / "instances.json").write_text(json.dumps(message))
    return root / "instances.json", root / "train2017"


def places(root: Path, count: int = 2) -> Path:
    for at, scene in enumerate(SCENES):
        inside = "track/outdoor" if scene == "track" else scene
        folder = root / inside[0] / inside
        folder.mkdir(parents=True)
        for i in range(count):
            Image.fromarray(noise((32, 32, 3), 100 * at + i)).save(folder / f"{i:08d}.png")
    return root


def test_the_builder_is_seeded_and_its_output_can_be_read(tmp_path: Path) -> None:
    annotations, images = coco(tmp_path)
    scenes = places(tmp_path / "places")
    plan = Plan(train=1, validation=1, size=32)
    manifests = [build(annotations, images, scenes, tmp_path / out, plan, lambda _: None) for out in ("one", "two")]
    message = [json.loads(path.read_text()) for path in manifests]
    assert message[0]["sha256"] == message[1]["sha256"]
    assert len(message[0]["pictures"]) == 200
    data = BAM(str(tmp_path / "one"))
    assert len(data) == 100
    batch = data.batch(range(0, 100, 7))
    assert not batch.missing
    assert batch.regions is not None
    stored = [np.asarray(Image.open(tmp_path / "one/data/masks/val" / name)) > 0 for name in batch.ids]
    assert all(np.array_equal(a, b) for a, b in zip(batch.regions.numpy(), stored, strict=True))
    twins = BAM(str(tmp_path / "one"), exact_twins=False).batch(range(0, 100, 7)).twins
    assert twins is not None
    assert batch.twins is not None
    assert torch.equal(twins, batch.twins)  # PNG: nothing outside the mask differs
    k3 = {path.parent.name for path in (tmp_path / "one/data/scene_k3").rglob("*.png")}
    assert k3 == set(SCENES)
    for name, objects in (("dog_bedroom", True), ("bamboo_forest", False)):  # one instance is held out
        few = BAM(str(tmp_path / "one"), set=name)  # type: ignore[arg-type]
        assert len(few) == 1
        shown = few.batch([0])
        assert not shown.missing
        assert shown.twins is not None
        assert torch.equal(shown.images, shown.twins) is not objects


def test_the_command_line_builds_and_names_what_is_lacking(tmp_path: Path) -> None:
    annotations, images = coco(tmp_path)
    words = ["data", "build", "bam", "--coco", str(annotations), str(images), "--size", "32", "--train", "1"]
    words += ["--miniplaces", str(places(tmp_path / "places")), "--out", str(tmp_path / "out"), "--validation"]
    built = CliRunner().invoke(app, [*words, "1", "--legacy"])
    assert built.exit_code == 0, built.output
    assert len(BAM(str(tmp_path / "out"))) == 100
    assert json.loads((tmp_path / "out/manifest.json").read_text())["legacy"] is True
    refused = CliRunner().invoke(app, [*words, "5"])
    assert refused.exit_code == 2
    assert "6 cut-outs of 'backpack' are needed" in refused.output


def test_the_published_category_defect_is_mended_and_kept_in_legacy_mode(tmp_path: Path) -> None:
    annotations, images = coco(tmp_path)
    message = json.loads(annotations.read_text())
    found = [image["id"] for image, _ in candidates(message, "stop_sign", legacy=False)]
    assert found == [7, 17]
    assert len(list(candidates(message, "stop_sign", legacy=True))) == 20  # any object of any picture
    largest = next(iter(candidates(message, "bird", legacy=True)))[1]
    assert largest["iscrowd"] == 1
    assert all(not one["iscrowd"] for _, one in candidates(message, "bird", legacy=False))
    message["images"].reverse()
    for one in message["images"]:  # far apart, as COCO's ids are: a set does not keep such in order
        one["id"] *= 7919
    for one in message["annotations"]:
        one["image_id"] *= 7919
    ids = [one["image_id"] for one in message["annotations"] if one["category_id"] == 12]
    walked = [image["id"] for image, _ in candidates(message, "dog", legacy=True)]
    assert walked == list(set(ids))  # the published walk
    assert [image["id"] for image, _ in candidates(message, "dog", legacy=False)] == sorted(set(ids))
    every = [image["id"] for image, _ in candidates(message, "stop_sign", legacy=True)]
    assert every == [one["id"] for one in message["images"]]  # no category: the file's own order
    image, annotation = next(iter(candidates(message, "dog", legacy=False)))
    made = cut_out(image, annotation, images, legacy=False)
    assert isinstance(made, Cutout)
    assert made.mask.all()
    small = {**annotation, "segmentation": [[80.0, 70.0, 85.0, 70.0, 85.0, 75.0]], "bbox": [80, 70, 6, 6]}
    assert cut_out(image, small, images, legacy=False) == "smaller than 32 pixels"
    border = {**annotation, "segmentation": [[0.0, 0.0, 60.0, 0.0, 60.0, 60.0, 0.0, 60.0]], "bbox": [0, 0, 60, 60]}
    assert cut_out(image, border, images, legacy=False) == "cut off by the picture's border"


def test_legacy_cut_outs_are_found_in_any_order_and_paired_by_name(tmp_path: Path) -> None:
    annotations, images = coco(tmp_path, per_class=3)
    message = json.loads(annotations.read_text())
    order = {3: 700001, 13: 64, 23: 9}  # the dogs
    for one in message["images"]:
        one["id"] = order.get(one["id"], one["id"] + 10**6)
    for one in message["annotations"]:
        one["image_id"] = order.get(one["image_id"], one["image_id"] + 10**6)
    walked = [image["id"] for image, _ in candidates(message, "dog", legacy=True)]
    plan = Plan(train=1, validation=1, legacy=True)
    found = cutouts(message, images, "dog", 2, plan, lambda _: None)
    assert [one.source for one in found] == sorted(f"{one:012d}" for one in walked[:2])
    with Image.open(images / f"{3:012d}.jpg") as picture:
        picture.convert("L").save(images / f"{3:012d}.jpg")
    image, annotation = next(one for one in candidates(message, "dog", legacy=True) if one[0]["id"] == 700001)
    assert cut_out(image, annotation, images, legacy=True) == "grey"
    assert isinstance(cut_out(image, annotation, images, legacy=False), Cutout)
    halves = {**annotation, "bbox": [20.6, 10.6, 40.7, 40.7]}  # far corners at 61.3 and 51.3
    rounded = [cut_out(next(iter(message["images"])), halves, images, legacy=old) for old in (True, False)]
    assert [one.mask.shape for one in rounded if isinstance(one, Cutout)] == [(41, 41), (42, 42)]


def test_run_lengths_go_down_columns() -> None:
    mask = rasterise({"counts": [1, 2, 3]}, width=3, height=2)
    assert mask.tolist() == [[False, True, False], [True, False, False]]
    with pytest.raises(BadInput, match="add up"):
        rasterise({"counts": [1, 2]}, width=3, height=2)


def test_pasted_objects_have_the_published_size_and_lie_inside() -> None:
    thing = Cutout("x", noise((40, 20, 3)), np.ones((40, 20), dtype=np.bool_))
    scene = noise((128, 128, 3), 1)
    for seed in range(20):
        composite, mask, box = paste(thing, scene, np.random.default_rng(seed), legacy=False)
        top, left, bottom, right = box
        assert 73 <= bottom - top < 90
        assert 0 <= top < bottom <= 128
        assert 0 <= left < right <= 128
        assert np.array_equal(composite[~mask], scene[~mask])
        assert mask.sum() == (bottom - top) * (right - left)


def test_cutouts_of_ones_own_folders(tmp_path: Path) -> None:
    for name in ("cup", "key"):
        (tmp_path / "things" / name).mkdir(parents=True)
        for i in range(2):
            pixels = noise((30, 40, 4), i)
            pixels[..., 3] = 0
            pixels[5:25, 5:35, 3] = 255
            Image.fromarray(pixels).save(tmp_path / "things" / name / f"{i}.png")
    for name in ("desk", "wall"):
        (tmp_path / "rooms" / name).mkdir(parents=True)
        Image.fromarray(noise((100, 120, 3))).save(tmp_path / "rooms" / name / "a.png")
    data = Cutouts(str(tmp_path / "things"), str(tmp_path / "rooms"), count=8, size=48)
    assert [str(verdict) for verdict in check_dataset(data) if not verdict.holds] == []
    batch = data.batch(range(8))
    assert batch.twins is not None
    assert batch.regions is not None
    outside = ~batch.regions[:, None].expand_as(batch.images)
    assert torch.equal(batch.images[outside], batch.twins[outside])
    assert {(int(o), int(s)) for o, s in zip(batch.labels["object"], batch.labels["scene"], strict=True)} == {
        (o, s) for o in range(2) for s in range(2)
    }
    groups = data.groups()
    assert {name: one.kind for name, one in groups.items()} == {
        "object": "fixed",
        "scene": "fixed",
        "cut-out": "sampled",
        "source photo": "sampled",
    }
    assert [Path(path).parent.name for path in groups["cut-out"].labels if path] == list(groups["object"].labels)
    assert len(set(groups["source photo"].labels)) == 2
    (tmp_path / "things" / "cup" / "0.png").unlink()
    Image.fromarray(noise((30, 40, 3))).save(tmp_path / "things" / "cup" / "1.png")
    broken = Cutouts(str(tmp_path / "things"), str(tmp_path / "rooms"), count=1, size=48).batch([0])
    assert "no transparency" in next(iter(broken.missing.values()))
    things, rooms = str(tmp_path / "things"), str(tmp_path / "rooms")
    with pytest.raises(BadInput, match="size must be at least 8"):
        Cutouts(things, rooms, size=7)


def folders(root: Path, classes: tuple[int, int], files: int) -> tuple[str, str]:
    """Cut-outs and scenes of one's own, as many classes of each."""
    for part, count, channels in (("things", classes[0], 4), ("rooms", classes[1], 3)):
        for name in range(count):
            (root / part / f"{part}{name}").mkdir(parents=True)
            for i in range(files):
                pixels = noise((30, 30, channels), i) | np.uint8(128)
                Image.fromarray(pixels).save(root / part / f"{part}{name}" / f"{i:02d}.png")
    return str(root / "things"), str(root / "rooms")


def test_any_first_few_cutouts_show_all_classes_alike(tmp_path: Path) -> None:
    data = Cutouts(*folders(tmp_path, (4, 6), 1), count=60, size=16)
    batch = data.batch(range(60))
    pairs = list(zip(batch.labels["object"].tolist(), batch.labels["scene"].tolist(), strict=True))
    assert len(set(pairs[:24])) == 24
    evenly(pairs, (4, 6), (5, 12, 24, 37, 60))
    assert len(set(data.ids())) == 60
    fewer = Cutouts(data.objects, data.scenes, count=7, size=16)
    assert fewer.ids() == data.ids()[:7]
    # A picture's number says its classes and what is drawn: the order is all that turns.
    assert {name for name in data.ids() if name.startswith("000007-")} == {"000007-things1-rooms1"}


def evenly(pairs: list[tuple[int, int]], classes: tuple[int, int], firsts: tuple[int, ...]) -> None:
    for part, count in enumerate(classes):
        for first in firsts:
            often = [[pair[part] for pair in pairs[:first]].count(one) for one in range(count)]
            assert max(often) - min(often) <= 1, (part, first, often)


@pytest.mark.parametrize("share", [0.9, 0.8, 0.7, 0.5, 0.3])
@pytest.mark.parametrize("files", [3, 5, 15])
def test_two_shares_meet_at_one_boundary(tmp_path: Path, share: float, files: int) -> None:
    paths = {"a": [Path(f"{i:02d}.png") for i in range(files)]}

    def part(of: float) -> list[Path]:
        try:
            return Cutouts("x", "y", share=of)._part(paths)["a"]
        except BadInput:
            return []

    assert part(share) + part(round(share - 1, 6)) == paths["a"]


def test_a_class_too_small_for_a_share_is_refused(tmp_path: Path) -> None:
    things, rooms = folders(tmp_path, (2, 2), 2)
    with pytest.raises(BadInput, match=r"share=-0.2 of class 'things0' must be at least one file, and it has 2"):
        len(Cutouts(things, rooms, share=-0.2).ids())


def test_any_first_few_pictures_show_all_classes_and_other_instances(tmp_path: Path) -> None:
    folder = tmp_path / "obj"
    folder.mkdir()
    names = [(thing, scene, i) for thing in OBJECTS for scene in SCENES for i in range(900, 903)]
    (folder / "val.txt").write_text("\n".join(f"{o}-{s}-{i:04d}.jpg {OBJECTS.index(o)}" for o, s, i in names))
    entries = BAM(str(tmp_path)).entries
    assert sorted(entry.file for entry in entries) == sorted(f"{o}-{s}-{i:04d}.jpg" for o, s, i in names)
    pairs = [(entry.object_label, entry.scene_label) for entry in entries]
    assert len(set(pairs[:100])) == 100
    evenly(pairs, (10, 10), (5, 10, 64, 100, 250))
    assert len({(entry.object_label, entry.instance) for entry in entries[:30]}) == 30
    assert len({(entry.scene_label, entry.instance) for entry in entries[:30]}) == 30


def test_null_patches_of_bare_pictures_start_from_the_picture_with_the_object(tmp_path: Path) -> None:
    annotations, images = coco(tmp_path)
    out = tmp_path / "out"
    build(annotations, images, places(tmp_path / "places"), out, Plan(train=1, validation=1, size=32), lambda _: None)
    bare = BAM(str(out), "bamboo_forest")
    shown = bare.batch([0])
    with_object = BAM(str(out), "scene")
    assert with_object.bare() == BAM(str(out), "scene_only")
    assert "with_object" in with_object.bare().batch([0]).labels
    there = with_object.batch([with_object.ids().index(shown.ids[0])])
    assert torch.equal(shown.labels["with_object"], there.images)
    assert not torch.equal(shown.labels["with_object"], shown.images)
    before = bare.digest([0])
    Image.fromarray(noise((32, 32, 3), 9)).save(out / "data/scene/val" / shown.ids[0])
    assert bare.digest([0]) != before
    (out / "data/scene/val" / shown.ids[0]).unlink()
    assert torch.equal(bare.batch([0]).labels["with_object"], there.images)  # the same is in obj
    (out / "data/obj/val" / shown.ids[0]).unlink()
    assert torch.equal(bare.batch([0]).labels["with_object"], shown.images)  # nothing to start from, and IIR says so


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the builder writes, one instance of each class held out; to be read only."""
    root = tmp_path_factory.mktemp("bam")
    annotations, images = coco(root)
    plan = Plan(train=1, validation=1, size=32)
    build(annotations, images, places(root / "places"), root / "out", plan, lambda _: None)
    return root / "out"


def test_every_set_the_builder_writes_can_be_read(built: Path) -> None:
    folders = {path.name for path in (built / "data").iterdir()} - {"masks"}
    assert folders == set(get_args(Set)) - {"bamboo_forest_patch"}
    for name in folders:
        data = BAM(str(built), name)  # type: ignore[arg-type]
        assert not data.batch(range(len(data))).missing, name
    assert all(verdict.holds for name in ("obj_grey", "scene_k4") for verdict in check_dataset(BAM(str(built), name)))


@pytest.mark.parametrize("k", [1, 4, 10])
def test_a_k_set_has_regions_where_the_dog_is_and_nowhere_else(built: Path, k: int) -> None:
    data = BAM(str(built), f"scene_k{k}")  # type: ignore[arg-type]
    batch = data.batch(range(len(data)))
    assert sorted(batch.labels["scene"].tolist()) == list(range(10))
    assert torch.equal(batch.targets, batch.labels["scene"])
    carries = batch.labels["scene"] < k
    assert batch.regions is not None
    assert batch.twins is not None
    assert torch.equal(batch.regions.flatten(1).any(1), carries)
    assert torch.equal((batch.images != batch.twins).flatten(1).any(1), carries)
    assert torch.equal(batch.labels["object"], torch.where(carries, OBJECTS.index("dog"), -1))
    assert torch.equal(batch.labels["object_id"] >= 0, carries)
    every = BAM(str(built), "scene")
    first = every.batch([every.ids().index("dog-bamboo_forest-0900.png")])
    row = batch.ids.index("dog-bamboo_forest-0900.png")
    assert first.regions is not None
    assert torch.equal(batch.images[row], first.images[0])
    assert torch.equal(batch.regions[row], first.regions[0])


def test_objects_on_grey_have_grey_twins_and_the_label_of_the_object(built: Path) -> None:
    batch = BAM(str(built), "obj_grey").batch(range(100))
    assert torch.equal(batch.targets, batch.labels["object"])
    assert batch.regions is not None
    assert batch.twins is not None
    assert batch.twins.unique().tolist() == [pytest.approx(128 / 255)]
    outside = ~batch.regions[:, None].expand_as(batch.images)
    assert torch.equal(batch.images[outside], batch.twins[outside])


def test_only_some_pictures_and_the_anchor_of_the_k_series(built: Path) -> None:
    dogs = BAM(str(built), only="dog-")
    assert len(dogs) == 10
    assert dogs.name == "bam obj dog-"
    assert dogs.anchor().ids() == ("dog-bamboo_forest-0900.png",)
    with pytest.raises(BadInput, match=r"names begin with 'cat', got none"):
        len(BAM(str(built), only="cat"))


def test_a_mask_kept_in_the_pictures_frame_is_the_region_pixel_by_pixel(tmp_path: Path) -> None:
    root = published(tmp_path)
    data = BAM(str(root))
    at = data.ids().index("dog-bedroom-0900.jpg")
    before = data.digest([at])
    drawn = noise((128, 128, 1))[..., 0] > 127  # no crop of any object looks like this
    (root / "data/masks/val").mkdir(parents=True)
    Image.fromarray(drawn.astype(np.uint8) * 255).save(root / "data/masks/val/dog-bedroom-0900.png")
    boxes = (root / "data/obj/val_loc.txt").rename(tmp_path / "boxes")  # nothing else is needed
    regions = BAM(str(root)).batch([at]).regions
    assert regions is not None
    assert np.array_equal(regions[0].numpy(), drawn)
    after = BAM(str(root)).digest([at])
    assert after != before
    Image.fromarray((~drawn).astype(np.uint8) * 255).save(root / "data/masks/val/dog-bedroom-0900.png")
    assert BAM(str(root)).digest([at]) != after
    # Its neighbour is lent this region, and so is given something else, too.
    boxes.rename(root / "data/obj/val_loc.txt")
    lent = BAM(str(root)).batch([lender(at)]).labels[OTHER_REGION]
    assert np.array_equal(lent[0].numpy(), ~drawn)
    requested = BAM(str(root)).digest([lender(at)])
    Image.fromarray(drawn.astype(np.uint8) * 255).save(root / "data/masks/val/dog-bedroom-0900.png")
    assert BAM(str(root)).digest([lender(at)]) != requested


def test_neighbours_are_lent_each_others_region_whoever_shares_the_batch(built: Path, tmp_path: Path) -> None:
    data = BAM(str(built))
    batch = data.batch(range(100))
    assert batch.regions is not None
    for index in range(100):
        assert torch.equal(batch.labels[OTHER_REGION][index], batch.regions[lender(index)])
    assert torch.equal(data.batch([7]).labels[OTHER_REGION], batch.labels[OTHER_REGION][[7]])
    alone = BAM(str(built), only="dog-bedroom").batch([0])  # there is no other one
    assert not bool(alone.labels[OTHER_REGION].any())
    listed = published(tmp_path) / "data/obj/val.txt"
    listed.write_text("\n".join(listed.read_text().splitlines()[:3]))
    three = BAM(str(tmp_path)).batch(range(3))
    assert len(three) == 3
    assert three.regions is not None
    assert torch.equal(three.labels[OTHER_REGION][2], three.regions[0])


def test_boxes_of_sets_without_lists_are_named_by_a_set_that_has_them_all(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built / "data", tmp_path / "data", ignore=shutil.ignore_patterns("masks", "train", "obj*"))
    kept, message = (BAM(str(root), "scene_k4").batch(range(10)) for root in (built, tmp_path))
    assert not message.missing
    assert kept.regions is not None
    assert message.regions is not None
    assert torch.equal(kept.regions, message.regions)


def test_regions_in_the_pictures_own_frame_are_not_resized(built: Path) -> None:
    data = BAM(str(built), view=View(48), frame="native")
    batch = data.batch(range(5))
    stored = [np.asarray(Image.open(built / "data/masks/val" / name)) > 0 for name in batch.ids]
    assert batch.images.shape[2:] == (48, 48)
    assert np.array_equal(batch.labels[NATIVE].numpy(), np.stack(stored))
    cropped = BAM(str(built), view=View(24, resize=48), frame="native").batch(range(5))
    assert np.array_equal(cropped.labels[NATIVE].numpy(), np.stack(stored)[:, 8:24, 8:24])  # the central half
    assert NATIVE not in BAM(str(built)).batch([0]).labels
    assert data.name != BAM(str(built)).name


def test_pictures_of_several_sizes_have_no_common_frame(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "two sizes")
    second = BAM(str(built)).batch([1]).ids[0]
    for path in (tmp_path / "two sizes").rglob(f"{Path(second).stem}.*"):
        picture = Image.open(path)
        picture.resize((2 * picture.width, 2 * picture.height), Image.Resampling.NEAREST).save(path)
    with pytest.raises(BadInput, match=rf"one size, got 32×32 .* and 64×64 \({second}\): take frame='input'"):
        BAM(str(tmp_path / "two sizes"), view=View(48), frame="native").batch([0, 1])
    assert len(BAM(str(tmp_path / "two sizes"), view=View(48)).batch([0, 1])) == 2


def test_how_far_twins_are_apart_outside_the_mask_is_measured(tmp_path: Path, built: Path) -> None:
    assert BAM(str(built)).batch(range(100)).labels[TWIN_GAP].tolist() == [0] * 100  # PNG
    root = published(tmp_path)
    exact, loose = BAM(str(root)), BAM(str(root), exact_twins=False)
    batch, raw = exact.batch(range(4)), loose.batch(range(4))
    assert raw.regions is not None
    assert raw.twins is not None
    outside = ~raw.regions[:, None]
    apart = (255 * (raw.images - raw.twins).abs()).where(outside, 0.0).flatten(1).amax(1).round().long()
    assert (apart > 0).all()  # JPEG
    assert torch.equal(raw.labels[TWIN_GAP], apart)
    assert torch.equal(batch.labels[TWIN_GAP], apart)  # of the files, whatever is shown


def test_a_twin_of_another_scene_is_refused(tmp_path: Path) -> None:
    root = published(tmp_path)
    Image.fromarray(noise((128, 128, 3), 77)).save(root / "data/scene_only/val/dog-bedroom-0901.jpg")
    batch = BAM(str(root)).batch(range(4))
    assert list(batch.missing) == ["dog-bedroom-0901.jpg"]
    assert "must show the same scene" in batch.missing["dog-bedroom-0901.jpg"]


def test_twins_apart_are_reported_in_a_sentence() -> None:
    assert warning([0, 0], exact=False) == ""
    assert warning([0, 37, 5], exact=True).startswith(
        "2 of 3 pictures differ from their twins outside the object's mask"
    )
    assert "by up to 37 of 255 levels" in warning([0, 37, 5], exact=True)
    assert warning([1], exact=True).endswith("so none of it is judged.")
    assert warning([1], exact=False).endswith("exact_twins=true leaves it out.")


def test_the_first_k_scenes_of_a_k_set_carry_the_dog(tmp_path: Path) -> None:
    annotations, images = coco(tmp_path)
    out = tmp_path / "out"
    build(annotations, images, places(tmp_path / "places"), out, Plan(train=1, validation=1, size=32), lambda _: None)
    data = out / "data"
    for k in (1, 3, 10):
        for at, scene in enumerate(SCENES):
            file = f"dog-{scene}-0900.png"
            shown = np.asarray(Image.open(data / f"scene_k{k}" / "val" / scene / file))
            source = "scene" if at < k else "scene_only"
            assert np.array_equal(shown, np.asarray(Image.open(data / source / "val" / file)))


def test_outlines_take_nothing_of_what_lay_behind_the_cutout() -> None:
    rows, columns = np.mgrid[:60, :60]
    disc = (rows - 30) ** 2 + (columns - 30) ** 2 < 29**2
    white = Cutout("x", np.full((60, 60, 3), 255, dtype=np.uint8), disc)
    scene = np.zeros((50, 50, 3), dtype=np.uint8)
    composite, mask, _ = paste(white, scene, np.random.default_rng(0), legacy=False)
    assert (composite[mask] == 255).all()
    darkened, mask, _ = paste(white, scene, np.random.default_rng(0), legacy=True)
    assert (darkened[mask] < 255).any()


@pytest.mark.parametrize("shape", [(321, 10), (10, 321)])
def test_the_longer_side_is_as_long_as_was_drawn(shape: tuple[int, int]) -> None:
    thing = Cutout("x", noise((*shape, 3)), np.ones(shape, dtype=np.bool_))
    for seed in range(60):
        drawn = int(np.random.default_rng(seed).integers(73, 90))
        _, _, (top, left, bottom, right) = paste(thing, noise((128, 128, 3)), np.random.default_rng(seed), False)
        assert max(bottom - top, right - left) == drawn


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [("--seed", "-1", "seed must be at least 0, got -1"), ("--size", "7", "size must be at least 8 pixels")],
)
def test_a_plan_that_cannot_be_built_is_refused_in_a_sentence(
    tmp_path: Path, option: str, value: str, says: str
) -> None:
    words = [
        "data",
        "build",
        "bam",
        "--coco",
        "a.json",
        "b",
        "--miniplaces",
        "c",
        "--out",
        str(tmp_path),
        option,
        value,
    ]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert says in refused.output


def test_objects_fit_on_the_smallest_scene() -> None:
    thing = Cutout("x", noise((40, 20, 3)), np.ones((40, 20), dtype=np.bool_))
    for size in range(8, 40):
        _, mask, _ = paste(thing, noise((size, size, 3)), np.random.default_rng(0), legacy=False)
        assert mask.any()

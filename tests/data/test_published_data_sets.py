"""Published data sets in their own layouts: labels, regions and groups, and what broken files say."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as packed

from heatproof.data import in_grey
from heatproof.data._support.picture_files import PictureFiles
from heatproof.data._support.picture_groups import groups_of
from heatproof.data._support.regions import Boxes, IndexMask, rasterise, unpacked
from heatproof.data._support.voc_xml import read_annotation
from heatproof.data.imagenet_s import ImageNetS
from heatproof.data.table import Table
from heatproof.errors import BadInput, HeatproofError, UnknownName
from tests.data.published_layouts import (
    PUBLISHED,
    SIZE,
    VIEW,
    a_chexlocalize,
    a_coco,
    a_cub,
    a_voc,
    a_waterbirds,
    an_imagenet_s,
    imagenet_boxes,
    numbers,
    oxford_pets,
    photo,
    square,
    xml,
)


def regions(dataset: PictureFiles) -> dict[str, torch.Tensor]:
    """Every region at the size of its picture, by id."""
    batch = dataclasses.replace(dataset, view=None).batch(range(len(dataset)))
    assert batch.regions is not None
    assert not batch.missing
    return dict(zip(batch.ids, batch.regions, strict=True))


def same(region: torch.Tensor, values: np.ndarray) -> bool:
    return bool((region.numpy() == (values > 0)).all())


UPPER = square(0, 12, 0, 30)


def test_coco(tmp_path: Path) -> None:
    dataset = a_coco(tmp_path)
    assert dataset.ids() == ("000000000042.jpg#dog", "000000000139.jpg#cat", "000000000139.jpg#dog")
    assert dataset.class_labels() == (1, 0, 1)  # cat, dog, person
    found = regions(dataset)
    assert same(found["000000000139.jpg#cat"], square(0, 6, 0, 11))  # the union of both cats
    assert found["000000000139.jpg#dog"][13:23, 16:29].all()
    assert not found["000000000139.jpg#dog"][:12].any()
    boxes = regions(dataclasses.replace(dataset, form="box"))
    assert same(boxes["000000000139.jpg#dog"], square(12, 23, 15, 29))
    groups = groups_of(dataset)
    assert (groups["picture"].kind, groups["class"].kind) == ("sampled", "fixed")
    assert groups["picture"].labels[1] == groups["picture"].labels[2] != groups["picture"].labels[0]
    assert dataclasses.replace(dataset, categories=("cat",)).ids() == ("000000000139.jpg#cat",)
    with pytest.raises(UnknownName, match="Did you mean 'cat'"):
        len(dataclasses.replace(dataset, categories=("cats",)))


def test_classes_of_the_model_decide_by_name(tmp_path: Path) -> None:
    dataset = dataclasses.replace(a_coco(tmp_path), classes=("DOG", "zebra", "person"))
    with pytest.warns(UserWarning, match=r"1 of 3 classes of instances_val2017\.json are not among the model's.*cat"):
        assert dataset.class_labels() == (0, 0)
    assert dataset.label_names == ()
    with pytest.raises(BadInput, match="the model has none of them"):
        len(dataclasses.replace(dataset, classes=("tench", "goldfish")))


def test_pascal_voc(tmp_path: Path) -> None:
    dataset = a_voc(tmp_path)
    assert dataset.ids() == ("2007_000033.jpg#dog", "2007_000042.jpg#dog", "2007_000042.jpg#person")
    assert dataset.class_labels() == (11, 11, 14)
    found = regions(dataset)
    assert same(found["2007_000033.jpg#dog"], UPPER)  # the rim, 255, is outside
    assert same(found["2007_000042.jpg#person"], square(0, 24, 15, 30))
    assert same(found["2007_000042.jpg#dog"], square(0, 24, 0, 5))
    boxes = dataclasses.replace(dataset, form="box")
    assert boxes.ids() == ("2007_000033.jpg#dog", "2007_000042.jpg#person")  # the other dog is difficult
    assert same(regions(boxes)["2007_000042.jpg#person"], square(0, 24, 15, 30))
    with pytest.raises(BadInput, match="splits in that folder are val"):
        len(dataclasses.replace(dataset, split="test"))


def test_imagenet_s(tmp_path: Path) -> None:
    dataset = an_imagenet_s(tmp_path)
    assert dataset.class_labels() == (3, 700)  # of the thousand, not of the folder's two
    assert all(same(region, UPPER) for region in regions(dataset).values())  # what is to be ignored is outside
    assert dataset.label_names == ()
    (tmp_path / "LOC_synset_mapping.txt").write_text("n00000003 a\nn00000700 b\n")
    with pytest.raises(BadInput, match="all 1000 must be known, got 2"):
        len(dataclasses.replace(dataset))


def test_without_a_list_timm_knows_the_synsets(tmp_path: Path) -> None:
    photo(tmp_path / "validation/n01443537/a.JPEG")
    upper = np.stack([UPPER, 0 * UPPER, 0 * UPPER], -1)
    numbers(tmp_path / "validation-segmentation/n01443537/a.png", upper)
    assert ImageNetS(str(tmp_path), VIEW).class_labels() == (1,)  # goldfish


def test_imagenet_boxes(tmp_path: Path) -> None:
    dataset = imagenet_boxes(tmp_path)
    assert dataset.class_labels() == (65, 970)  # the third picture has no annotation
    found = regions(dataset)
    assert same(found["ILSVRC2012_val_00000001.JPEG"], UPPER + square(12, 24, 0, 3))
    assert same(found["ILSVRC2012_val_00000002.JPEG"], square(0, 24, 15, 30))


def test_cub(tmp_path: Path) -> None:
    dataset = a_cub(tmp_path)
    assert dataset.class_labels() == (0, 1)
    assert dataset.label_names == ("Black footed Albatross", "Laysan Albatross")
    assert all(same(region, UPPER) for region in regions(dataset).values())  # where most annotators agree
    assert len(dataclasses.replace(dataset, split="all")) == 3
    boxes = regions(dataclasses.replace(dataset, form="box"))
    assert same(boxes["001.Black_footed_Albatross/a.jpg"], square(0, 24, 0, 15))
    with pytest.raises(BadInput, match=r"unpack segmentations\.tgz there"):
        len(dataclasses.replace(dataset, segmentations=str(tmp_path / "nowhere")))


def test_waterbirds(tmp_path: Path) -> None:
    dataset = a_waterbirds(tmp_path)
    assert dataset.class_labels() == (0, 1)
    assert all(same(region, UPPER) for region in regions(dataset).values())
    assert groups_of(dataset)["place"].labels == ("land", "land")
    assert groups_of(dataset)["place"].kind == "fixed"
    assert groups_of(dataclasses.replace(dataset, split="train"))["place"].labels == ("water",)


def test_oxford_pets(tmp_path: Path) -> None:
    dataset = oxford_pets(tmp_path)
    assert dataset.class_labels() == (0, 1, 1)
    assert dataset.label_names == ("Abyssinian", "american bulldog")
    assert all(same(region, UPPER) for region in regions(dataset).values())
    with_rim = dataclasses.replace(dataset, rim=True)
    assert all(same(region, square(0, 15, 0, 30)) for region in regions(with_rim).values())
    assert dataset.digest([0]) != with_rim.digest([0])
    species = dataclasses.replace(dataset, task="species")
    assert (species.class_labels(), species.label_names) == ((0, 1, 1), ("cat", "dog"))


def test_chexlocalize(tmp_path: Path) -> None:
    dataset = a_chexlocalize(tmp_path)
    assert dataset.ids() == (
        "patient64541_study1_view1_frontal#Airspace Opacity",
        "patient64541_study1_view1_frontal#Cardiomegaly",
        "patient64541_study1_view2_lateral#Edema",
        "patient64622_study1_view1_frontal#Support Devices",
    )  # what is absent has no entry
    assert dataset.class_labels() == (3, 2, 5, 13)
    assert all(same(region, UPPER) for region in regions(dataset).values())
    patients = groups_of(dataset)["patient"]
    assert (patients.kind, len(set(patients.labels))) == ("sampled", 2)


@pytest.mark.parametrize("make", PUBLISHED)
def test_read_in_grey(tmp_path: Path, make: Callable[[Path], PictureFiles]) -> None:
    batch = in_grey(make(tmp_path)).batch([0])
    assert batch.images.shape[1] == 1
    assert batch.regions is not None


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0, 1), st.integers(0, 2**31))
def test_packed_run_lengths_are_cocos(width: int, height: int, density: float, seed: int) -> None:
    mask = np.random.default_rng(seed).random((height, width)) < density
    run = packed.encode(np.asfortranarray(mask.astype(np.uint8)))
    assert (rasterise({"counts": run["counts"], "size": run["size"]}, width, height) == mask).all()
    assert (rasterise({"counts": unpacked(run["counts"])}, width, height) == mask).all()


@settings(max_examples=60, deadline=None)
@given(st.one_of(st.text(max_size=12), st.lists(st.integers(-5, 900), max_size=6), st.none(), st.integers()))
def test_any_run_lengths_are_a_mask_or_refused(counts: object) -> None:
    try:
        assert rasterise({"counts": counts}, 4, 3).shape == (3, 4)
    except BadInput as error:
        assert "run lengths" in str(error)  # noqa: PT017


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_as_an_annotation(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.xml"
    path.write_bytes(content)
    with pytest.raises(BadInput):
        read_annotation(path)


def test_entities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xml"
    path.write_text('<!DOCTYPE a [<!ENTITY b "bbbb">]><annotation><object><name>&b;</name></object></annotation>')
    with pytest.raises(BadInput, match="declares entities"):
        read_annotation(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("no json", "must be a COCO instances file"),
        ("[]", "got a JSON list"),
        ('{"images": [], "annotations": []}', "it has no categories"),
        ('{"images": [{"id": 1}], "annotations": [], "categories": []}', r"images\[0\] must have id, file_name"),
        ('{"images": [], "annotations": [7], "categories": []}', r"annotations\[0\] must have image_id"),
    ],
)
def test_annotations_that_cannot_be_used(tmp_path: Path, content: str, says: str) -> None:
    dataset = a_coco(tmp_path)
    Path(dataset.annotations).write_text(content)
    with pytest.raises(BadInput, match=says):
        len(dataset)


def test_an_object_of_an_unlisted_picture_and_one_garbled(tmp_path: Path) -> None:
    dataset = a_coco(tmp_path)
    content = json.loads(Path(dataset.annotations).read_text())
    Path(dataset.annotations).write_text(json.dumps({**content, "images": content["images"][:1]}))
    with pytest.raises(BadInput, match="picture 42, which is not listed"):
        len(dataclasses.replace(dataset))
    content["annotations"][0]["segmentation"] = {"size": [24, 30], "counts": [1, 2]}
    Path(dataset.annotations).write_text(json.dumps(content))
    batch = dataclasses.replace(dataset).batch(range(3))
    assert set(batch.missing) == {"000000000139.jpg#dog"}
    assert "must add up to the 720 pixels of a picture of 30x24, got 3" in batch.missing["000000000139.jpg#dog"]


def test_masks_that_do_not_fit_or_lack_the_class_are_named(tmp_path: Path) -> None:
    dataset = a_voc(tmp_path)
    numbers(Path(dataset.path, "SegmentationClass/2007_000033.png"), square(0, 0, 0, 0), "P")
    Image.new("P", (SIZE[1], SIZE[0])).save(Path(dataset.path, "SegmentationClass/2007_000042.png"))
    missing = dataset.batch(range(3)).missing
    assert "mask 2007_000033.png: no pixel has the number 12" in missing["2007_000033.jpg#dog"]
    assert "a quarter turn apart" in missing["2007_000042.jpg#dog"]
    xml(Path(dataset.path, "Annotations/2007_000033.xml"), [("unicorn", (1, 1, 2, 2), False)])
    with pytest.raises(BadInput, match="'unicorn' is no class of Pascal VOC"):
        len(dataclasses.replace(dataset))


def test_a_box_in_a_table(tmp_path: Path) -> None:
    photo(tmp_path / "a.png")
    photo(tmp_path / "b.png", 1)
    (tmp_path / "t.csv").write_text('path,label,box\na.png,1,"0, 0, 30, 12"\nb.png,0,15 0 30 24\n')
    dataset = Table(str(tmp_path / "t.csv"), VIEW)
    found = regions(dataset)
    assert same(found["a.png"], UPPER)
    assert same(found["b.png"], square(0, 24, 15, 30))
    shares = dataset.batch([0, 1]).labels["region_share"].tolist()
    assert shares == pytest.approx([0.5, 0.5])
    before = dataset.digest([0, 1])
    (tmp_path / "t.csv").write_text('path,label,box\na.png,1,"0, 0, 30, 11"\nb.png,0,15 0 30 24\n')
    assert Table(str(tmp_path / "t.csv"), VIEW).digest([0, 1]) != before


@pytest.mark.parametrize("box", ["1 2 3", "5 5 4 9", "a b c d", "-1 0 4 4", "1 2 nan 4", "1 2 inf 4"])
def test_boxes_that_are_none(tmp_path: Path, box: str) -> None:
    (tmp_path / "t.csv").write_text(f"path,label,box\na.png,1,{box}\n")
    with pytest.raises(BadInput, match="line 2: a box must be left top right bottom"):
        len(Table(str(tmp_path / "t.csv")))


def test_a_mask_and_a_box_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("path,label,mask,box\na.png,1,m.png,1 2 3 4\n")
    with pytest.raises(BadInput, match="line 2 has a mask and a box"):
        len(Table(str(tmp_path / "t.csv")))


def test_a_box_off_the_picture_and_a_mask_without_numbers(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no box lies on the picture"):
        Boxes(((40.0, 1.0, 50.0, 5.0),)).drawn(SIZE)
    photo(tmp_path / "m.tif")
    with Image.open(tmp_path / "m.tif") as stored:
        stored.convert("CMYK").save(tmp_path / "c.tif")
    with pytest.raises(BadInput, match="must hold numbers"):
        IndexMask(tmp_path / "c.tif", frozenset((1,))).drawn(SIZE)


@pytest.mark.parametrize("make", PUBLISHED)
def test_missing_parts_are_named(tmp_path: Path, make: Callable[[Path], PictureFiles]) -> None:
    dataset = make(tmp_path)
    with pytest.raises(HeatproofError, match="there is no folder"):
        len(dataclasses.replace(dataset, path=str(tmp_path / "nowhere")))
    with pytest.raises(HeatproofError, match="needs a path"):
        len(type(dataset)())

"""Folders, tables, masked folders and HAM10000: what all data sets on disk promise, and what each adds."""

import csv
import dataclasses
import os
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from heatproof import data
from heatproof.data._support.class_names import class_indices
from heatproof.data.folder import Folder
from heatproof.data.ham10000 import DIAGNOSES, HAM10000
from heatproof.data.masked_folder import MaskedFolder
from heatproof.data.table import Table
from heatproof.errors import BadInput, HeatproofError, UnknownName
from heatproof.run.shards import fitted
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.types import Dataset, Model, View
from tests.data.published_layouts import PUBLISHED

VIEW = View(16, 20)


def picture(path, seed=0, size=(30, 24)):
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(values).save(path)


def mask(path, size=(30, 24), rows=slice(0, 12)):
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.zeros((size[1], size[0]), dtype=np.uint8)
    values[rows] = 255
    Image.fromarray(values).save(path)


def a_folder(root):
    for seed, name in enumerate(("281_tabby/a.jpg", "281_tabby/b.png", "817_sports_car/a.jpg")):
        picture(root / name, seed)
    return Folder(str(root), VIEW)


def a_table(root):
    for seed, name in enumerate(("one.png", "deep/two.jpg", "three.png")):
        picture(root / name, seed)
        mask(root / "masks" / f"{seed}.png")
    lines = [
        "path,label,mask",
        "one.png,4,masks/0.png",
        "deep/two.jpg,,masks/1.png",
        "three.png,2,masks/2.png",
    ]
    (root / "table.csv").write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    return Table(str(root / "table.csv"), VIEW)


def a_masked_folder(root):
    for seed, name in enumerate(("cat/a", "cat/b", "dog/c")):
        picture(root / "images" / f"{name}.jpg", seed)
        mask(root / "masks" / f"{name}.png")
    return MaskedFolder(str(root), view=VIEW)


def a_ham10000(root):
    """Exactly the published layout: two folders of pictures, one of masks, one table."""
    rows = [("HAM_0000118", "ISIC_0027419", "bkl"), ("HAM_0000118", "ISIC_0025030", "bkl")]
    rows += [("HAM_0002730", "ISIC_0026769", "mel"), ("HAM_0001466", "ISIC_0031633", "nv")]
    with (root / "HAM10000_metadata.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["lesion_id", "image_id", "dx", "dx_type", "age", "sex", "localization"])
        for lesion, image, diagnosis in rows:
            table.writerow([lesion, image, diagnosis, "histo", "80.0", "male", "scalp"])
    for seed, (_, image, _) in enumerate(rows):
        picture(root / f"HAM10000_images_part_{1 + seed % 2}" / f"{image}.jpg", seed, (60, 45))
        mask(root / "HAM10000_segmentations_lesion_tschandl" / f"{image}_segmentation.png", (60, 45))
    return HAM10000(str(root), VIEW)


EVERY = [a_folder, a_table, a_masked_folder, a_ham10000, *PUBLISHED]


@pytest.mark.parametrize("make", EVERY)
def test_any_picture_can_be_had_alone_and_in_any_order(tmp_path, make):
    dataset = make(tmp_path)
    assert isinstance(dataset, Dataset)
    everything = dataset.batch(range(len(dataset)))
    assert everything.ids == dataset.ids()
    assert len(set(dataset.ids())) == len(dataset)
    assert everything.images.shape == (len(dataset), 3, 16, 16)
    assert not everything.missing
    for index in reversed(range(len(dataset))):
        alone = dataset.batch([index])
        assert alone.ids == (dataset.ids()[index],)
        assert torch.equal(alone.images[0], everything.images[index])
        assert alone.labels["label"][0] == everything.labels["label"][index]
        if everything.regions is not None:
            assert torch.equal(alone.regions[0], everything.regions[index])


@pytest.mark.parametrize("make", EVERY)
def test_the_digest_follows_the_files(tmp_path, make):
    dataset = make(tmp_path)
    everything = range(len(dataset))
    before = dataset.digest(everything)
    assert dataclasses.replace(dataset).digest(everything) == before
    assert dataset.digest([0]) != dataset.digest([1])
    picture(dataset.files[1].path, seed=99, size=(60, 45))
    assert dataset.digest([0]) == dataclasses.replace(dataset).digest([0])
    assert dataclasses.replace(dataset).digest(everything) != before
    if isinstance(dataset.files[0].mask, Path):
        now = dataset.digest([0])
        mask(dataset.files[0].mask, rows=slice(3, 9))
        assert dataset.digest([0]) != now


@pytest.mark.parametrize("make", EVERY)
def test_one_bad_file_is_named_and_the_rest_goes_on(tmp_path, make):
    dataset = make(tmp_path)
    dataset.files[1].path.write_bytes(b"broken")
    batch = dataset.batch(range(len(dataset)))
    lost = {file.id for file in dataset.files if file.path == dataset.files[1].path}
    assert len(batch) == len(dataset) - len(lost)
    assert set(batch.missing) == lost
    assert "not a readable picture" in batch.missing[dataset.ids()[1]]
    empty = dataset.batch([1])
    assert len(empty) == 0
    assert empty.images.shape == (0, 3, 16, 16)
    assert len(dataset.batch([])) == 0
    dataset.files[1].path.unlink()
    assert "there is no file" in dataset.batch([1]).missing[dataset.ids()[1]]
    assert dataset.digest([1])


@pytest.mark.parametrize("make", EVERY)
def test_a_recipe_finds_it_again(tmp_path, make):
    dataset = make(tmp_path)
    again = recipe.build(recipe.plain(dataset))
    assert again == dataset
    assert isinstance(again.view, View)
    assert torch.equal(again.batch([0]).images, dataset.batch([0]).images)


@pytest.mark.parametrize("kind", [Folder, Table, MaskedFolder, HAM10000])
def test_without_a_path_they_say_so_on_first_use(kind):
    with pytest.raises(BadInput, match="needs a path"):
        len(kind())
    with pytest.raises(BadInput, match="there is no"):
        len(kind("no/such/place"))


def test_an_index_outside(tmp_path):
    with pytest.raises(BadInput, match="0 … 2, got 3"):
        a_folder(tmp_path).batch([3])


def test_folders_named_by_index(tmp_path):
    dataset = a_folder(tmp_path)
    assert dataset.batch([0, 1, 2]).labels["label"].tolist() == [281, 281, 817]
    assert dataset.ids() == ("281_tabby/a.jpg", "281_tabby/b.png", "817_sports_car/a.jpg")
    assert dataset.batch([0, 1, 2]).regions is None


def test_folders_named_by_class(tmp_path):
    for name in ("zebra/a.png", "Arabian_camel/a.png"):
        picture(tmp_path / name)
    (tmp_path / "mule").mkdir()  # empty, and still the class between the two
    assert Folder(str(tmp_path), VIEW).batch([0, 1]).labels["label"].tolist() == [0, 2]
    known = ("zebra", "x", "mule", "Arabian camel")
    assert Folder(str(tmp_path), VIEW, known).batch([0, 1]).labels["label"].tolist() == [3, 0]
    with pytest.raises(UnknownName, match="Did you mean 'zebras'"):
        len(Folder(str(tmp_path), VIEW, ("zebras", "mule", "Arabian camel")))


def test_a_flat_folder_has_no_labels(tmp_path):
    for name in ("b.PNG", "a.png", ".hidden.png", "notes.txt"):
        picture(tmp_path / "x.png")
        (tmp_path / name).write_bytes((tmp_path / "x.png").read_bytes())
    picture(tmp_path / ".thumbnails" / "c.png")
    batch = Folder(str(tmp_path), VIEW).batch([0, 1, 2])
    assert batch.ids == ("a.png", "b.PNG", "x.png")
    assert batch.labels["label"].tolist() == [-1, -1, -1]
    assert batch.targets.tolist() == [0, 0, 0]


def test_links_are_followed_and_circles_left(tmp_path):
    picture(tmp_path / "elsewhere" / "a.png")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "0_link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "root")
    (tmp_path / "elsewhere" / "b.png").symlink_to(tmp_path / "elsewhere" / "a.png")
    (tmp_path / "elsewhere" / "dangling.png").symlink_to(tmp_path / "nowhere.png")
    dataset = Folder(str(tmp_path / "root"), VIEW)
    assert dataset.ids() == ("0_link/a.png", "0_link/b.png", "0_link/dangling.png")
    assert set(dataset.batch([0, 1, 2]).missing) == {"0_link/dangling.png"}


def test_names_that_are_no_text_still_have_ids(tmp_path):
    picture(tmp_path / "a.png")
    (tmp_path / "a.png").rename(tmp_path / os.fsdecode(b"\xff\xfe.png"))
    dataset = Folder(str(tmp_path), VIEW)
    assert dataset.ids() == ("\\xff\\xfe.png",)
    assert len(dataset.batch([0])) == 1
    assert dataset.digest([0])


def test_empty_and_mixed_folders(tmp_path):
    with pytest.raises(BadInput, match="holds no pictures"):
        len(Folder(str(tmp_path)))
    picture(tmp_path / "a.png")
    picture(tmp_path / "masks" / "a.png")
    with pytest.raises(BadInput, match=r"got both \(a\.png and masks/a\.png\)"):
        len(Folder(str(tmp_path)))


def test_without_a_view_sizes_must_agree(tmp_path):
    picture(tmp_path / "a.png")
    picture(tmp_path / "b.png")
    picture(tmp_path / "c.png", size=(24, 30))
    dataset = Folder(str(tmp_path))
    assert dataset.batch([0, 1]).images.shape == (2, 3, 24, 30)
    with pytest.raises(BadInput, match=r"a\.png is 30x24, c\.png is 24x30"):
        dataset.batch([0, 2])


def test_labels_out_of_range(tmp_path):
    picture(tmp_path / "7_x" / "a.png")
    with pytest.raises(BadInput, match="got 7"):
        len(Folder(str(tmp_path), classes=("a", "b")))
    data.check_labels(torch.tensor([0, -1, 9]), 10, ("a", "b", "c"))
    with pytest.raises(BadInput, match="got 10 for 'c'"):
        data.check_labels(torch.tensor([0, -1, 10]), 10, ("a", "b", "c"))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True))
def test_any_names_get_indices(names):
    indices = class_indices(names)
    assert set(indices) == set(names)
    assert all(0 <= index < 10**9 for index in indices.values())


def test_a_table(tmp_path):
    dataset = a_table(tmp_path)
    batch = dataset.batch([0, 1, 2])
    assert batch.ids == ("one.png", "deep/two.jpg", "three.png")
    assert batch.labels["label"].tolist() == [4, -1, 2]
    assert batch.regions.any()
    assert not batch.regions.all()
    assert dataset.name == "table"


def test_a_table_of_class_names_and_repeated_pictures(tmp_path):
    picture(tmp_path / "a.png")
    (tmp_path / "t.csv").write_text("label,path\ndog,a.png\ncat,a.png\n")
    dataset = Table(str(tmp_path / "t.csv"), VIEW)
    assert dataset.ids() == ("a.png", "a.png#2")
    batch = dataset.batch([0, 1])
    assert batch.labels["label"].tolist() == [1, 0]
    assert batch.regions is None
    assert Table(dataset.path, VIEW, ("x", "cat", "dog")).batch([0]).labels["label"].tolist() == [2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "column 'path'"),
        ("file,label\na.png,1\n", "column 'path' in its first line, got file, label"),
        ("path,label\n", "no rows"),
        ("path,label\n,1\n", "line 2 has no path"),
        ("path,label\na.png,-3\n", "got '-3'"),
        ("path,label\na.png,99999999999999999999\n", "got '9999"),
        ("path,label,mask\na.png,1,m.png\nb.png,1,\n", "line 3 has no mask"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, says):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(BadInput, match=says):
        len(Table(str(tmp_path / "t.csv")))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=120), st.sampled_from([b"", b"path\n", b"path,label\n", b"path,label,mask\n"]))
def test_any_bytes_as_a_table(tmp_path_factory, content, header):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    path.write_bytes(header + content)
    dataset = Table(str(path), VIEW)
    batch = None
    with suppress(HeatproofError):
        batch = dataset.batch(range(len(dataset)))
    assert batch is None or len(batch) + len(batch.missing) == len(dataset) > 0


def test_masks_by_name(tmp_path):
    dataset = a_masked_folder(tmp_path)
    batch = dataset.batch([0, 1, 2])
    assert batch.labels["label"].tolist() == [0, 0, 1]
    assert batch.regions[:, 0].all()  # the upper half of every picture
    assert not batch.regions[:, -1].any()
    separate = MaskedFolder(str(tmp_path / "images"), view=VIEW, masks=str(tmp_path / "masks"))
    assert torch.equal(separate.batch([0, 1, 2]).regions, batch.regions)


def test_a_missing_mask_or_one_of_another_size_is_named(tmp_path):
    dataset = a_masked_folder(tmp_path)
    (tmp_path / "masks/cat/a.png").unlink()
    mask(tmp_path / "masks/cat/b.png", size=(24, 30))
    batch = dataclasses.replace(dataset).batch([0, 1, 2])
    assert batch.ids == ("dog/c.jpg",)
    assert "no mask" in batch.missing["cat/a.jpg"]
    assert "mask is 24x30 pixels and the picture 30x24" in batch.missing["cat/b.jpg"]
    picture(tmp_path / "masks/dog/c.jpg")
    with pytest.raises(BadInput, match="two masks"):
        len(dataclasses.replace(dataset))


@pytest.mark.parametrize("orientation", [2, 3, 4])
def test_turned_pictures_whose_masks_may_lie_otherwise_are_named_once(tmp_path, orientation):
    dataset, exif = a_masked_folder(tmp_path), Image.Exif()
    exif[0x0112] = orientation
    for name in ("cat/b", "dog/c"):
        path = tmp_path / "images" / f"{name}.jpg"
        with Image.open(path) as stored:
            stored.save(path, exif=exif)
    with pytest.warns(UserWarning, match="drawn on it as it is shown") as output:
        assert [len(dataset.batch([at])) for at in range(3)] == [1, 1, 1]
    assert [str(one.message).split(" is shown")[0] for one in output] == ["b.jpg (and 1 more)"]


def test_a_mask_drawn_on_the_unturned_picture_is_refused_and_one_on_the_turned_is_taken(tmp_path):
    dataset, exif = a_masked_folder(tmp_path), Image.Exif()
    exif[0x0112] = 6
    for name in ("cat/a", "cat/b"):
        path = tmp_path / "images" / f"{name}.jpg"
        with Image.open(path) as stored:
            stored.save(path, exif=exif)
    mask(tmp_path / "masks/cat/b.png", size=(24, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = dataset.batch([0, 1, 2])
    assert batch.ids == ("cat/b.jpg", "dog/c.jpg")
    assert "a quarter turn apart" in batch.missing["cat/a.jpg"]


def test_masks_that_belong_to_other_pictures(tmp_path):
    dataset = a_masked_folder(tmp_path)
    for name in ("cat/a", "cat/b", "dog/c"):
        path = tmp_path / "masks" / f"{name}.png"
        path.rename(path.with_name(f"{path.stem}_mask.png"))
    with pytest.raises(BadInput, match="no mask in"):
        len(dataclasses.replace(dataset))


def test_ham10000_by_the_names_of_the_models_classes(tmp_path):
    usual = a_ham10000(tmp_path)
    turned = dataclasses.replace(usual, classes=tuple(name.upper() for name in reversed(DIAGNOSES)))
    strange = dataclasses.replace(usual, classes=tuple("abcdefg"))
    labels = [file.label for file in usual.files]
    assert [len(DIAGNOSES) - 1 - file.label for file in turned.files] == labels
    assert [file.label for file in strange.files] == labels


def test_ham10000(tmp_path):
    dataset = dataclasses.replace(a_ham10000(tmp_path), one_per_lesion=False)
    batch = dataset.batch(range(4))
    order = [identity.rpartition("/")[2] for identity in batch.ids]
    assert order == ["ISIC_0026769.jpg", "ISIC_0027419.jpg", "ISIC_0025030.jpg", "ISIC_0031633.jpg"]
    assert [DIAGNOSES[label] for label in batch.labels["label"]] == ["mel", "bkl", "bkl", "nv"]
    clusters = batch.labels["cluster"].tolist()
    assert clusters[1] == clusters[2]
    assert len(set(clusters)) == 3
    assert batch.regions.any()
    assert dataset.batch([0]).labels["cluster"][0] == clusters[0]


def test_one_photo_of_each_lesion_unless_all_are_wanted(tmp_path):
    dataset = a_ham10000(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [file.path.stem for file in dataset.files] == ["ISIC_0026769", "ISIC_0027419", "ISIC_0031633"]
    assert len(set(dataset.batch(range(3)).labels["cluster"].tolist())) == 3
    every = dataclasses.replace(dataset, one_per_lesion=False)
    assert len(every) == 4
    lesions = every.groups()["lesion"]
    assert lesions.kind == "sampled"
    assert len(set(lesions.labels)) == 3
    assert every.name != dataset.name
    assert recipe.build(recipe.plain(every)) == every
    (tmp_path / "HAM10000_segmentations_lesion_tschandl/ISIC_0027419_segmentation.png").unlink()
    assert "ISIC_0025030" in {file.path.stem for file in dataclasses.replace(dataset).files}, "the one with an outline"
    table = tmp_path / "HAM10000_metadata.csv"
    table.write_text(table.read_text().replace("HAM_0000118", ""))
    assert len(dataclasses.replace(dataset)) == 4, "nobody knows that these show the same lesion"


def test_a_subset_holds_no_lesion_twice(tmp_path):
    for seed in range(9):
        found = dataclasses.replace(a_ham10000(tmp_path), subset=(1, 2), seed=seed)
        assert len({file.cluster for file in found.files}) == 3
    with pytest.raises(BadInput, match="0 to 2 others"):
        len(dataclasses.replace(found, subset=(1, 3)))


def test_every_lesion_has_its_own_outline(tmp_path):
    for file in dataclasses.replace(a_ham10000(tmp_path), one_per_lesion=False).files:
        assert file.mask.stem == f"{file.path.stem}_segmentation"


def test_melanoma_or_not(tmp_path):
    usual = a_ham10000(tmp_path)
    requested = dataclasses.replace(usual, task="melanoma")
    assert [file.label for file in requested.files] == [1, 0, 0]
    assert requested.name != usual.name
    for classes, wanted in ((("Melanoma", "other"), 0), (("rest", "mel"), 1), (("benign", "malignant"), 1)):
        first, *others = (file.label for file in dataclasses.replace(requested, classes=classes).files)
        assert (first, set(others)) == (wanted, {1 - wanted})
    with pytest.raises(BadInput, match="a model of two classes, and the model has 7"):
        len(dataclasses.replace(requested, classes=DIAGNOSES))
    with pytest.raises(BadInput, match="must be one of 'diagnosis', 'melanoma'"):
        HAM10000(task="moles")


def test_a_subset_of_melanomas_and_others_is_drawn_by_the_seed(tmp_path):
    usual = dataclasses.replace(a_ham10000(tmp_path), one_per_lesion=False)
    found = dataclasses.replace(usual, subset=[1, 2])
    assert [DIAGNOSES[file.label] == "mel" for file in found.files] == [True, False, False]
    assert recipe.build(recipe.plain(found)) == found
    several = {dataclasses.replace(found, seed=seed).ids() for seed in range(9)}
    assert len(several) == 3, "each of the three others is left out at some seed"
    with pytest.raises(BadInput, match="0 to 1 melanomas, as many as the folder shows, got 167"):
        len(dataclasses.replace(usual, subset=(167, 333)))
    with pytest.raises(BadInput, match="two numbers"):
        HAM10000(subset=(1, 2, 3))


def test_ham10000_not_unpacked(tmp_path):
    a_ham10000(tmp_path)
    table = tmp_path / "HAM10000_metadata.csv"
    whole = table.read_text()
    table.write_text(whole.replace(",mel,", ",mole,"))
    with pytest.raises(BadInput, match="got 'mole'"):
        len(HAM10000(str(tmp_path)))
    table.write_text(whole)
    masks = tmp_path / "HAM10000_segmentations_lesion_tschandl"
    masks.rename(tmp_path / "masks")
    with pytest.raises(BadInput, match="unpack the masks"):
        len(HAM10000(str(tmp_path)))
    (tmp_path / "masks").rename(masks)
    assert len(HAM10000(str(tmp_path))) == 3
    for part in (1, 2):
        (tmp_path / f"HAM10000_images_part_{part}").rename(tmp_path / f"part_{part}")
    with pytest.raises(BadInput, match="unpack the archives"):
        len(HAM10000(str(tmp_path)))


def test_load_finds_the_kind(tmp_path):
    for make, kind in zip(EVERY[:4], (Folder, Table, MaskedFolder, HAM10000), strict=True):
        root = tmp_path / make.__name__
        root.mkdir()
        made = make(root)
        found = data.load(made.path, view=VIEW)
        assert type(found) is kind
        assert found.ids() == made.ids()
    folder = tmp_path / "a_masked_folder"
    assert type(data.load(str(folder / "images"), masks=str(folder / "masks"))) is MaskedFolder


@pytest.mark.parametrize(
    "spec", ["", "no/such/folder", "no_such_name", "no_such.csv", "folder(pth='x')", "two words", "(("]
)
def test_specs_that_name_nothing(spec):
    with pytest.raises(HeatproofError):
        len(data.load(spec))


def test_masks_without_a_folder(tmp_path):
    with pytest.raises(BadInput, match="masks belong to a folder"):
        data.load(a_table(tmp_path).path, masks=str(tmp_path))


@pytest.mark.parametrize("make", [a_folder, a_table, a_masked_folder])
def test_grey_pictures_have_one_channel_of_their_brightness(tmp_path, make):
    colour = make(tmp_path)
    grey = dataclasses.replace(colour, grey=True)
    shown, brightness = grey.batch([0, 1]).images, torch.tensor([0.299, 0.587, 0.114])
    assert shown.shape == (2, 1, 16, 16)
    assert torch.allclose(shown[:, 0], torch.einsum("bchw,c->bhw", colour.batch([0, 1]).images, brightness), atol=0.02)
    assert grey.digest([0]) != colour.digest([0])
    assert recipe.build(recipe.plain(grey)) == grey


def test_only_a_model_of_one_channel_takes_grey(tmp_path):
    one, three = (Model(str(c), torch.nn.Sequential(torch.nn.Conv2d(c, 4, 3)), view=VIEW) for c in (1, 3))
    named = Model("n", one.network, mean=(0.5, 0.5, 0.5), std=(1.0, 1.0, 1.0), view=VIEW)
    folder = Folder(str(tmp_path))
    study = Study(models=[one, three, named], datasets=[folder], methods=["edges"], metrics=["srg"])
    seen = [fitted(folder, model, study) for model in (one, three, named)]
    assert [dataset.grey for dataset in seen] == [True, False, False]
    assert len({recipe.label(dataset) for dataset in seen}) == 1  # one data set in the table


@pytest.mark.parametrize("make", [a_folder, a_table, a_masked_folder, a_ham10000])
def test_paths_are_whole_so_that_another_directory_does_not_matter(tmp_path, monkeypatch, make):
    (tmp_path / "here").mkdir()
    known = make(tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    typed = dataclasses.replace(known, path=os.path.relpath(known.path, tmp_path))
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    assert typed == known
    assert recipe.build(recipe.plain(typed)).digest([0]) == known.digest([0])


@pytest.mark.parametrize(
    ("masks", "pattern"),
    [
        ("{0}_mask.png", "*_mask.png"),
        ("masks/{0}_mask.png", "masks/*_mask.png"),
        ("masks/{0}_mask.png", "masks/*_mask"),
        ("masks/deep_{0}.png", "masks/deep_*"),
    ],
)
def test_masks_are_found_by_a_pattern_also_among_the_pictures(tmp_path, masks, pattern):
    home = tmp_path / "photos"
    for seed, name in enumerate(("a", "b")):
        picture(home / f"{name}.jpg", seed)
        mask(home / masks.format(name), rows=slice(0, 6 + 6 * seed))
    given = pattern if "/" not in pattern else str(home / pattern)
    found = data.load(str(home), given)
    assert found.ids() == ("a.jpg", "b.jpg")
    assert [file.mask.name for file in found.files] == [Path(masks.format(name)).name for name in "ab"]
    batch = dataclasses.replace(found, view=VIEW).batch([0, 1])
    assert batch.regions[1].sum() > batch.regions[0].sum() > 0
    again = recipe.build(recipe.plain(found))
    assert again.files == found.files


def test_masks_of_class_folders_are_found_by_a_pattern(tmp_path):
    for name in ("281_tabby/a", "817_sports_car/a"):
        picture(tmp_path / "photos" / f"{name}.jpg")
        mask(tmp_path / "masks" / f"{name}_seg.png")
    found = MaskedFolder(str(tmp_path / "photos"), masks=str(tmp_path / "masks" / "*_seg.png"))
    assert [file.mask.parent.name for file in found.files] == ["281_tabby", "817_sports_car"]
    assert found.class_labels() == (281, 817)


def test_a_pattern_that_would_help_is_named(tmp_path):
    picture(tmp_path / "photos" / "a.jpg")
    mask(tmp_path / "masks" / "a_segmentation.png")
    place = tmp_path / "masks"
    with pytest.raises(BadInput, match=rf"as in --masks '{place}/\*_segmentation.png'"):
        data.load(str(tmp_path / "photos"), str(place)).ids()
    with pytest.raises(BadInput, match=r"masks named .*_mask.png .*there are 1 .png"):
        data.load(str(tmp_path / "photos"), str(place / "*_mask.png")).ids()
    with pytest.raises(BadInput, match=r"one \*"):
        data.load(str(tmp_path / "photos"), str(place / "*_*.png")).ids()


def test_files_that_are_not_read_are_counted_by_ending(tmp_path):
    picture(tmp_path / "a.jpg")
    for name in ("b.raw", "c.RAW", "d.heic", "notes.txt", "README.md", ".hidden.raw", "e"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.warns(UserWarning, match=r"not read as pictures: 2 .raw, 1 .heic, 1 without an ending$"):
        assert Folder(str(tmp_path)).ids() == ("a.jpg",)
    (tmp_path / "a.jpg").unlink()
    with pytest.raises(BadInput, match=r"holds no pictures .*there are 2 .raw, 1 .heic.*convert them"):
        Folder(str(tmp_path)).ids()


def test_notes_beside_pictures_are_no_reason_to_warn(tmp_path):
    picture(tmp_path / "a.jpg")
    (tmp_path / "labels.csv").write_text("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Folder(str(tmp_path)).ids()

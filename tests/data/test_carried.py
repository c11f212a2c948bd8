"""Several labels per picture: how tables list them, and the rows that are made of them."""

from __future__ import annotations

from pathlib import Path

import planted_outputs as stage
import pytest
import torch
from PIL import Image

from heatproof import Study, contact_sheet, run
from heatproof.data.table import Table
from heatproof.errors import BadInput, HeatproofError, UnknownName
from heatproof.results.census_text import in_words
from heatproof.run.shards import shards
from heatproof.spec.parse import parse
from heatproof.types import View

NAMES = ("Edema", "Effusion", "Mass, benign")


def written(folder: Path, text: str, classes: tuple[str, ...] = NAMES) -> Table:
    for name in "abcd":
        Image.new("RGB", (32, 32), (90, 120, 150)).save(folder / f"{name}.png")
    (folder / "table.csv").write_text(text)
    return Table(str(folder / "table.csv"), View(32), classes)


LISTS = "path,label\na.png,Edema|Effusion\nb.png,none\nc.png,\nd.png,edema\n"
COLUMNS = "path,label:Edema,label:Effusion\na.png,1,1.0\nb.png,0,0\nc.png,,-1\nd.png,yes,no\n"
BARE = "path,Edema,Effusion\na.png,true,1\nb.png,false,0\nc.png,,\nd.png,1,0\n"


@pytest.mark.parametrize("text", [LISTS, COLUMNS, BARE])
def test_lists_and_columns_say_the_same(text: str, tmp_path: Path) -> None:
    found = written(tmp_path, text).present()
    assert [None if one is None else sorted(one.there) for one in found] == [[0, 1], [], None, [0]]
    assert found[3] is not None
    assert (found[3].has(0), found[3].has(1)) == (1, 0)


def test_numbers_and_names_with_commas(tmp_path: Path) -> None:
    found = written(tmp_path, 'path,label\na.png,"0, 2"\nb.png,0;2\nc.png,1\n').present()
    assert [sorted(one.there) for one in found if one] == [[0, 2], [0, 2], [1]]
    alone = written(tmp_path, 'path,label\na.png,"Mass, benign"\nb.png,none\n').present()
    assert [sorted(one.there) for one in alone if one] == [[2], []]
    both = written(tmp_path, 'path,label\na.png,"Edema|Mass, benign"\n').present()[0]
    assert both is not None
    assert sorted(both.there) == [0, 2]


def test_an_uncertain_label_is_not_an_absent_one(tmp_path: Path) -> None:
    (one,) = written(tmp_path, "path,label:Edema,label:Effusion\na.png,1,-1\n").present()
    assert one is not None
    assert [one.has(label) for label in range(3)] == [1, -1, 0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("path,label:Edema\na.png,perhaps\n", "line 2 must say in column 'label:Edema' whether the label is there"),
        ("path,label\na.png,Edema|Oedema\n", "No class of the model is called 'oedema'. Did you mean 'edema'"),
        ("path,label\na.png,0;7\n", r"must have an index in 0 … 2"),
    ],
)
def test_cells_that_say_nothing_are_refused(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises((BadInput, UnknownName), match=says):
        written(tmp_path, text).present()


@pytest.fixture(scope="module")
def x_rays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pictures with up to three of fourteen labels, listed in a table."""
    folder = tmp_path_factory.mktemp("x-rays")
    data = stage.planted(12, (0, 3, 5), seed=3)
    lines = ["path,label"]
    for row, (image, there) in enumerate(zip(data.images, data.there, strict=True)):
        pixels = (image * 255).round().byte().permute(1, 2, 0).numpy()
        Image.fromarray(pixels).save(folder / f"{row}.png")
        lines.append(
            f"{row}.png,{'|'.join(f'colour {label}' for label in there.nonzero().flatten().tolist()) or 'none'}"
        )
    (folder / "table.csv").write_text("\n".join(lines))
    return folder


def test_a_network_of_fourteen_labels_is_judged_label_by_label(x_rays: Path, tmp_path: Path) -> None:
    table = Table(str(x_rays / "table.csv"), View(32))
    there = stage.planted(12, (0, 3, 5), seed=3).there
    methods = ["integrated_gradients(baseline=mid_grey)", "random"]
    study = Study(
        [stage.model("many")], [table], methods, ["srg", "insertion", "sensitivity_n"], target="label", shard=4
    )
    with pytest.warns(UserWarning, match="carry no label, so there is nothing to explain in them"):
        found = run(study, tmp_path / "run")
    scores = found.scores
    wanted = {f"{row}.png#colour {label}" for row, label in there.nonzero().tolist()}
    assert set(scores["image"]) == wanted
    assert set(scores["status"]) == {"ok"}
    mean = scores[scores["metric"] == "srg"].groupby("method")["value"].mean()
    assert mean[methods[0]] > mean["random"] + 0.1
    assert set(found.pictures["label"]) == {"colour 0", "colour 3", "colour 5"}
    seen = stage.network("many")((stage.planted(12, (0, 3, 5), seed=3).images * 255).round() / 255) > 0
    finds = {f"{row}.png#colour {label}": bool(seen[row, label]) for row, label in there.nonzero().tolist()}
    assert dict(zip(found.pictures["image"], found.pictures["right"], strict=True)) == finds
    assert {*finds.values()} == {True, False}
    (entry,) = found.info.pictures
    pictures = len({row for row, _ in there.nonzero().tolist()})
    assert f"{len(wanted)} labels on {pictures} pictures" in in_words(entry)


def test_every_label_that_is_found_and_one_by_name(x_rays: Path) -> None:
    table = Table(str(x_rays / "table.csv"), View(32))

    def rows(target: str, limit: int | None = None) -> list[str]:
        study = Study([stage.model("many")], [table], ["saliency"], ["srg"], target=target, limit=limit)
        return [name for shard in shards(study, torch.device("cpu")) for name in shard.ids]

    data = stage.planted(12, (0, 3, 5), seed=3)
    found = (stage.network("many")((data.images * 255).round() / 255) > 0).nonzero().tolist()
    assert rows("predicted") == [f"{row}.png#colour {label}" for row, label in found]
    assert rows("colour 3", limit=2) == rows("3", limit=2)
    assert all(name.endswith(".png#colour 3") for name in rows("3"))
    assert len(rows("3")) == 12
    assert len(rows("label", limit=5)) == 5


def test_the_rows_of_a_picture_are_one_sampled_group(x_rays: Path) -> None:
    table = Table(str(x_rays / "table.csv"), View(32))
    study = Study([stage.model("many")], [table], ["saliency"], ["srg"], target="label")
    dataset = next(shards(study, torch.device("cpu"))).dataset
    groups = dataset.groups()  # type: ignore[attr-defined]
    assert groups["picture"].kind == "sampled"
    assert [name.partition("#")[0] for name in dataset.ids()] == list(groups["picture"].labels)
    assert set(groups["label"].labels) == {"colour 0", "colour 3", "colour 5"}


@pytest.mark.parametrize(("ask", "says"), [("one", "answers with a yes or no on 'colour 0'"), ("value", "a value")])
def test_several_labels_need_a_network_of_several(ask: stage.Ask, says: str, x_rays: Path, tmp_path: Path) -> None:
    table = Table(str(x_rays / "table.csv"), View(32))
    with pytest.raises(HeatproofError, match=says):
        run(Study([stage.model(ask)], [table], ["saliency"], ["srg"], target="label"), tmp_path)


def test_a_sheet_says_what_is_explained(x_rays: Path) -> None:
    methods = [parse("method", "saliency")]
    picture = x_rays / "0.png"
    label = contact_sheet.explain(stage.model("many"), [picture], methods, target="colour 5")
    assert label.answers[0].startswith("colour 5 ")
    assert label.answers[0].endswith(" %")
    value = contact_sheet.explain(stage.model("value"), [picture], methods)
    assert float(value.answers[0].removeprefix("0 ")) == pytest.approx(5, abs=3)

"""What the pictures of a run are to its model: counted right, once, and shown wherever a result is shown."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from statsmodels.stats.proportion import proportion_confint
from torch import Tensor, nn
from typer.testing import CliRunner

from heatproof import Model, Study, engine, run
from heatproof.cli import app
from heatproof.data.folder import Folder
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.models import embedded
from heatproof.report import report
from heatproof.results import Results
from heatproof.results.census_text import in_words
from heatproof.results.run_info import Census
from heatproof.run import verify
from heatproof.run.census import census, recorded
from heatproof.types import Batch, View


class Brightness(nn.Module):
    """Class 0 for dark pictures, 1 for bright ones."""

    def forward(self, images: Tensor) -> Tensor:
        bright = images.mean((1, 2, 3)) - 0.5
        return torch.stack([-bright, bright], 1) * 20


def photos(root: Path, dark: int, bright: int, names: tuple[str, str] = ("car", "zebra")) -> Path:
    """Dark pictures in one class and bright ones in the other; the first bright one is dark."""
    for name, count, level in ((names[0], dark, 40), (names[1], bright, 180)):
        (root / name).mkdir(parents=True)
        for i in range(count):
            ramp = np.linspace(-30, 30, 256).reshape(16, 16) + (40 if level > 100 and i == 0 else level)
            Image.fromarray(ramp.clip(0, 255).astype(np.uint8)).convert("RGB").save(root / name / f"{i:02d}.png")
    return root


def test_the_numbers_of_a_run_are_those_of_its_pictures(tmp_path: Path) -> None:
    data, model = TwoFactor(count=21), embedded.load("object")
    study = Study([model], [data], ["random"], ["smoothness"], shard=8)
    (entry,) = run(study, tmp_path).info.pictures
    batch = data.batch(range(21))
    labels = batch.labels[model.task]
    right = int((engine.forward(model, batch.images).argmax(1) == labels).sum())
    assert (entry.pictures, entry.known, entry.right) == (21, 21, right)
    low, high = proportion_confint(right, 21, method="wilson")
    assert entry.accuracy is not None
    assert dataclasses.asdict(entry.accuracy) == pytest.approx({"share": right / 21, "low": low, "high": high})
    assert sorted(entry.classes.values()) == sorted(Counter(labels.tolist()).values())
    again = run([study, dataclasses.replace(study, seed=1)], tmp_path).info.pictures
    assert again == (entry,)  # of two studies of the same pictures each counts once


def test_a_run_says_which_classes_it_saw_and_how_often_the_model_is_right(tmp_path: Path) -> None:
    model = Model("b", Brightness(), classes=("car", "zebra"))
    folder = Folder(str(photos(tmp_path / "photos", 20, 12)), View(16))
    study = Study([model], [folder], ["random"], ["smoothness"])
    for limit, classes, right in ((None, {"car": 20, "zebra": 12}, 31), (10, {"car": 5, "zebra": 5}, None)):
        results = run(dataclasses.replace(study, limit=limit), tmp_path / "out")
        (entry,) = results.info.pictures
        assert entry.classes == classes
        assert right is None or entry.right == right
    page = report(results, tmp_path / "report.html").read_text()
    assert "10 pictures: 5 car, 5 zebra. The model is right on" in page


def test_classes_whose_order_is_a_guess_give_no_accuracy(tmp_path: Path) -> None:
    home = Folder(str(photos(tmp_path / "photos", 3, 3)), View(16))
    unnamed = Model("b", Brightness())
    (entry,) = run(Study([unnamed], [home], ["random"], ["smoothness"]), tmp_path / "out").info.pictures
    assert entry.classes == {"car": 3, "zebra": 3}
    assert entry.known == 0
    assert entry.accuracy is None
    # The model's names say that its first class is the zebra: every answer but one is wrong.
    swapped = Model("s", Brightness(), classes=("Zebra", "car"))
    (entry,) = run(Study([swapped], [home], ["random"], ["smoothness"]), tmp_path / "swapped").info.pictures
    assert (entry.right, entry.known) == (1, 6)


def test_records_that_are_damaged_or_in_anothers_place_are_made_again(tmp_path: Path) -> None:
    study = Study([embedded.load("object")], [TwoFactor(count=4)], ["random"], ["smoothness"], shard=2)
    first = run(study, tmp_path).info.pictures
    (whole,) = (tmp_path / "parts").glob("pictures-*")
    for content in (whole.read_bytes()[:-9] + b"x" * 9, min(whole.parent.glob("scores-*")).read_bytes()):
        (kept,) = (tmp_path / "parts").glob("pictures-*.parquet")
        kept.write_bytes(content)
        assert [found.file for found in verify.check(tmp_path) if found.problem]
        again = run(study, tmp_path).info
        assert again.pictures == first
        assert again.damaged == (kept.name,)


def test_little_range_is_named_in_the_end(tmp_path: Path) -> None:
    ramp = np.linspace(0, 4095, 256).reshape(16, 16).astype(np.uint16)
    (tmp_path / "p").mkdir()
    Image.fromarray(ramp).save(tmp_path / "p" / "scan.png")
    study = Study([Model("b", Brightness())], [Folder(str(tmp_path / "p"), View(16))], ["random"], ["smoothness"])
    with pytest.warns(UserWarning, match=r"1 of 1 pictures fill less than a tenth .*scan\.png: 0\.000 … 0\.06"):
        results = run(study, tmp_path / "out")
    assert "1 fill less than a tenth of their value range (first: scan.png)" in in_words(results.info.pictures[0])
    right = dataclasses.replace(study, datasets=[Folder(str(tmp_path / "p"), View(16), levels=(0, 4095))])
    assert run(right, tmp_path / "right").info.pictures[0].narrow_count == 0


def test_a_picture_of_two_records_counts_once_and_unknown_classes_are_reported() -> None:
    batch = Batch(images=torch.rand(2, 3, 8, 8), targets=torch.zeros(2, dtype=torch.int64), ids=("a", "b"))
    place = {"dataset": "d", "model": "m"}
    found = recorded("key", Model("m", Brightness()), batch, torch.tensor([0, 1]), (), False)
    (entry,) = census([(place, found), (place, found)])
    assert in_words(entry) == "2 pictures, of classes that are not known."


def test_the_command_line_shows_it_and_a_run_of_nothing_but_a_control_is_refused(tmp_path: Path) -> None:
    words = ["run", "--images", "two_factor(count=3)", "--metrics", "smoothness", "--quiet", "--workers", "1", "--out"]
    whole = CliRunner().invoke(app, [*words, str(tmp_path / "a"), "--methods", "saliency"])
    assert whole.exit_code == 0, whole.output
    assert f"{in_words(Results.load(tmp_path / 'a').info.pictures[0])}\n" in whole.output
    # A convolutional network has no attention to roll out: the only score is the control's.
    none = CliRunner().invoke(app, [*words, str(tmp_path / "b"), "--methods", "attention_rollout,random"])
    assert none.exit_code == 2, none.output
    assert "no method of this study can have a score; attention_rollout:" in none.output


@pytest.mark.parametrize(("counts", "words"), [([6] * 5, "6 of each"), ([5, 6, 7, 6, 6], "5 to 7 of each")])
def test_many_classes_are_counted_by_their_extremes(counts: list[int], words: str) -> None:
    entry = Census("d", "m", sum(counts), {str(i): n for i, n in enumerate(counts)})
    assert in_words(entry) == f"{sum(counts)} pictures of 5 classes, {words}."

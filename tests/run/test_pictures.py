"""Which pictures the model is right on is kept with a run, and results can be cut down to them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heatproof import Study, engine, run
from heatproof.cli import app
from heatproof.data.mosaic import Mosaic
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.models import embedded
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.pictures import correct_only, misgivings
from heatproof.results import Results
from heatproof.results.run_info import Accuracy, Census

HARD = TwoFactor(count=24, scale=(0.2, 0.45))  # objects so small that the model misses some


def judged(out: Path, dataset=HARD) -> Results:
    study = Study([embedded.load("object")], [dataset], ["edges", "centre", "random"], ["pointing_game"], shard=10)
    return run(study, out)


def test_the_table_holds_every_answer_and_the_filter_keeps_the_right_ones(tmp_path: Path) -> None:
    results = judged(tmp_path)
    model, batch = embedded.load("object"), HARD.batch(range(24))
    right = engine.forward(model, batch.images).argmax(1) == batch.labels[model.task]
    assert 0 < int(right.sum()) < 24
    assert dict(zip(results.pictures["image"], results.pictures["right"], strict=True)) == dict(
        zip(batch.ids, right.tolist(), strict=True)
    )
    same = results.pictures["label"] == results.pictures["predicted"]
    assert (same == results.pictures["right"]).all()
    alone = Results.load(tmp_path).correct_only()
    kept = {name for name, yes in zip(batch.ids, right.tolist(), strict=True) if yes}
    assert set(alone.scores["image"]) == set(alone.pictures["image"]) == kept
    assert set(alone.ranking("pointing_game").table["n"]) == {len(kept)}
    whole = results.table("pointing_game").droplevel(["dataset", "model"])
    part = alone.table("pointing_game").droplevel(["dataset", "model"])
    assert part.equals(whole.loc[part.index])
    page = correct_only(Reading(results))
    assert f">{len(kept)}<" in page
    assert "correct only" in page
    message = CliRunner().invoke(app, ["table", str(tmp_path), "--correct-only", "--format", "csv"])
    assert message.exit_code == 0, message.output
    assert f",{len(kept)}," in message.stdout


def test_mosaics_say_how_often_the_model_sees_their_class(tmp_path: Path) -> None:
    mosaics = Mosaic(TwoFactor(count=60), (0, 1), 3, task="object")
    results = judged(tmp_path, mosaics)
    model, batch = embedded.load("object"), mosaics.batch(range(6))
    right = engine.forward(model, batch.images).argmax(1) == batch.targets
    (entry,) = results.info.pictures
    assert (entry.known, entry.right) == (6, int(right.sum()))


def test_without_labels_nothing_is_called_correct(tmp_path: Path) -> None:
    results = judged(tmp_path)
    with pytest.raises(BadInput, match="do not say on which pictures"):
        Results(results.scores, None, None, results.info).correct_only()
    unknown = results.pictures.assign(right=None)
    with pytest.raises(BadInput, match="do not say on which pictures"):
        Results(results.scores, None, None, results.info, truth=unknown).correct_only()
    with pytest.raises(BadInput, match="right on none"):
        Results(results.scores, None, None, results.info, truth=unknown.assign(right=False)).correct_only()


def test_a_model_that_is_mostly_wrong_is_flagged() -> None:
    entry = Census("d", "m", 40, {}, known=40, right=8, accuracy=Accuracy(0.2, 0.1, 0.35))
    assert "32 of 40" in misgivings(entry)
    assert misgivings(dataclasses.replace(entry, accuracy=Accuracy(0.4, 0.3, 0.55))) == ""
    assert misgivings(Census("d", "m", 40, {})) == ""

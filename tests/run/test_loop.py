"""The loop: nothing finished is lost, and the order of work is not in the numbers."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from networks import small_cnn
from PIL import Image
from torch import Tensor

import heatproof
from heatproof import engine
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, BadModel, NotApplicable
from heatproof.methods.controls import Inverted
from heatproof.results import run_state
from heatproof.run import loop
from heatproof.run.gallery import PICTURES
from heatproof.run.loop import run
from heatproof.run.store import Store
from heatproof.spec.study import Study, load
from heatproof.types import Attribution, Batch, Curve, Model, Scored

STUDY = """
import heatproof
study = heatproof.Study(
    models=["embedded:object"],
    datasets=["two_factor(count=24)"],
    methods=["saliency", "smoothgrad(draws=3)", "random", "grad_cam"],
    metrics=["srg", "mif"],
    shard=8,
)
"""


def brightness(model: Model, batch: Batch) -> Tensor:
    return batch.images.mean(1)


def nan_on_the_first(model: Model, batch: Batch) -> Tensor:
    maps = batch.images.mean(1)
    maps[[i for i, name in enumerate(batch.ids) if name == TwoFactor().ids()[0]]] = float("nan")
    return maps


def refuses(model: Model, batch: Batch) -> Tensor:
    raise NotApplicable("there is nothing to explain here")


@dataclasses.dataclass(frozen=True)
class MeanMap:
    """The mean of the map; undefined on dark ones."""

    higher_is_better: ClassVar[bool] = True

    def __call__(self, attribution: Attribution, /) -> Scored:
        means = attribution.maps.mean((1, 2))
        return Scored(
            means.where(means > 0.45, float("nan")), tuple("" if m > 0.45 else "too dark" for m in means.tolist())
        )


def study(
    methods: Sequence[Any] = (brightness, "random"), metrics: Sequence[Any] = ("srg(points=5)",), **rest: Any
) -> Study:
    settings = {"models": [small_cnn()], "datasets": [TwoFactor(count=20)], "shard": 8, **rest}
    return Study(methods=list(methods), metrics=list(metrics), **settings)


def numbers(results: heatproof.Results) -> pd.DataFrame:
    """The table without the one column that is measured in seconds."""
    return results.scores.drop(columns="seconds").sort_values(["method", "metric", "image"]).reset_index(drop=True)


def test_a_run_gives_one_row_per_image_method_and_metric(tmp_path: Path) -> None:
    results = run(study(metrics=["srg(points=5)", "mif(points=5)"]), tmp_path)
    assert len(results.scores) == 20 * 2 * 2
    assert results.complete
    assert set(results.scores["status"]) == {"ok"}
    assert (tmp_path / "scores.parquet").is_file()
    pd.testing.assert_frame_equal(numbers(heatproof.Results.load(tmp_path)), numbers(results))


def test_a_second_run_computes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(study(), tmp_path)

    def never(*_: object) -> Tensor:
        raise AssertionError("the network was requested again")

    monkeypatch.setattr(engine, "forward", never)
    pd.testing.assert_frame_equal(numbers(run(study(), tmp_path)), numbers(first))


def test_one_more_method_pays_only_for_itself(tmp_path: Path) -> None:
    requested: list[int] = []

    def counting(model: Model, batch: Batch) -> Tensor:
        requested.append(len(batch))
        return batch.images.mean(1)

    run(study([counting]), tmp_path)
    assert sum(requested) == 20 + 1  # the first picture again, in double precision
    run(study([counting, "random"]), tmp_path)
    assert sum(requested) == 20 + 1


@pytest.mark.parametrize("methods", [("random", "saliency", brightness), (brightness, "random", "saliency")])
def test_the_order_of_methods_is_not_in_the_numbers(tmp_path: Path, methods: Sequence[Any]) -> None:
    one = run(study(methods, ["srg(points=5)", "mif"]), tmp_path / "one")
    other = run(study(methods[::-1], ["mif", "srg(points=5)"]), tmp_path / "other")
    pd.testing.assert_frame_equal(numbers(one), numbers(other), check_exact=True)


def test_the_order_of_shards_is_not_in_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = run(study(), tmp_path / "one")
    in_order = loop.shards
    monkeypatch.setattr(loop, "shards", lambda *given: list(in_order(*given))[::-1])
    other = run(study(), tmp_path / "other")
    pd.testing.assert_frame_equal(numbers(one), numbers(other), check_exact=True)


def test_shards_of_another_size_give_the_same_numbers(tmp_path: Path) -> None:
    one = run(study(["saliency", "random"]), tmp_path / "one")
    other = run(study(["saliency", "random"], shard=5), tmp_path / "other")
    pd.testing.assert_frame_equal(numbers(one), numbers(other), rtol=1e-5, atol=1e-6)


def test_one_bad_picture_costs_one_row(tmp_path: Path) -> None:
    results = run(study([nan_on_the_first]), tmp_path)
    bad = results.scores[results.scores["status"] == "failed"]
    assert len(bad) == 1
    assert "finite" in bad.iloc[0]["note"]
    assert not results.complete


def test_failed_units_are_tried_again(tmp_path: Path) -> None:
    mended = False

    def fails_at_first(model: Model, batch: Batch) -> Tensor:
        if not mended:
            raise RuntimeError("out of luck")
        return batch.images.mean(1)

    results = run(study([fails_at_first]), tmp_path)
    assert set(results.scores["status"]) == {"failed"}
    assert "out of luck" in results.scores.iloc[0]["note"]
    mended = True
    assert run(study([fails_at_first]), tmp_path).complete


def test_a_method_that_does_not_apply_is_an_answer(tmp_path: Path) -> None:
    results = run(study([refuses, "random"]), tmp_path)
    rows = results.scores[results.scores["method"] == "refuses"]
    assert set(rows["status"]) == {"not_applicable"}
    assert results.complete
    assert list(results.ranking("srg(points=5)")) == ["random"]


def test_an_undefined_score_is_a_row_with_a_reason(tmp_path: Path) -> None:
    results = run(study([brightness], [MeanMap()]), tmp_path)
    undefined = results.scores[results.scores["status"] == "undefined"]
    assert set(undefined["note"]) == {"too dark"}
    assert undefined["value"].isna().all()
    assert 0 < len(undefined) < 20


def test_a_damaged_unit_is_computed_again_and_named(tmp_path: Path) -> None:
    first = run(study(), tmp_path)
    victim = min((tmp_path / "parts").glob("scores-*"))
    victim.write_bytes(victim.read_bytes()[:-7])
    again = run(study(), tmp_path)
    assert again.info.damaged == (victim.name,)
    pd.testing.assert_frame_equal(numbers(again), numbers(first), check_exact=True)


def test_labels_out_of_range_are_reported(tmp_path: Path) -> None:
    images = TwoFactor(count=4)
    odd = dataclasses.replace(small_cnn(), task="object_id")
    with pytest.raises(BadInput, match="target='label' needs a label from 0 to"):
        run(Study([odd], [images], [brightness], ["srg"], target="label"), tmp_path)


def test_a_stored_study_replays_exactly(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(STUDY)
    first = run(load(tmp_path / "study.py"), tmp_path / "first")
    again = run(load(tmp_path / "first" / "study.json"), tmp_path / "again")
    pd.testing.assert_frame_equal(numbers(first), numbers(again), check_exact=True)


@pytest.mark.parametrize("field", ["models", "datasets", "methods", "metrics"])
def test_a_study_of_nothing_is_refused(field: str) -> None:
    with pytest.raises(BadInput, match=f"at least one of {field}"):
        study(**{field: []})


def test_two_components_with_one_label_are_refused() -> None:
    with pytest.raises(BadInput, match="different labels"):
        study(["random", "random"])


def kill_and_resume(folder: Path, moments: Sequence[float]) -> heatproof.Results:
    (folder / "study.py").write_text(STUDY)
    out = folder / "run"
    command = [sys.executable, "-m", "heatproof.cli", "run", str(folder / "study.py"), "--out", str(out)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for moment in moments:
        process = subprocess.Popen(command, **quiet, env={**os.environ, "OMP_NUM_THREADS": "1"})  # type: ignore[call-overload]
        deadline = time.monotonic() + 60
        already = len(list(out.rglob("scores-*")))
        # Wait until work is under way, then a random moment longer: kill -9 in the middle of a unit.
        while process.poll() is None and len(list(out.rglob("scores-*"))) <= already and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, **quiet, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})  # type: ignore[call-overload]
    assert done.returncode == 0
    return heatproof.Results.load(out)


def test_kill_nine_and_the_table_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(STUDY)
    whole = run(load(tmp_path / "study.py"), tmp_path / "whole")
    resumed = kill_and_resume(tmp_path, [0.2])
    pd.testing.assert_frame_equal(numbers(whole), numbers(resumed), check_exact=True)


@pytest.mark.slow
def test_kill_nine_at_ten_random_moments_and_the_table_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(STUDY)
    whole = run(load(tmp_path / "study.py"), tmp_path / "whole")
    resumed = kill_and_resume(tmp_path, [random.Random(1).random() * 0.3 for _ in range(10)])
    pd.testing.assert_frame_equal(numbers(whole), numbers(resumed), check_exact=True)


def test_the_gallery_needs_no_model(tmp_path: Path) -> None:
    results = run(study([brightness, "random"]), tmp_path)
    gallery = heatproof.Results.load(tmp_path).gallery
    assert len(gallery) == min(PICTURES, 8)  # of the first shard
    assert set(gallery[0].maps) == {"brightness", "random"}
    assert gallery[0].picture.shape == (64, 64, 3)
    assert gallery[0].region is not None
    assert torch.allclose(
        torch.from_numpy(gallery[0].maps["brightness"]),
        torch.from_numpy(gallery[0].picture).float().mean(-1) / 255,
        atol=5e-3,
    )
    assert results.complete


def test_what_the_model_saw_is_kept_beside_the_maps_and_a_damaged_book_is_left_out(tmp_path: Path) -> None:
    wanted = study(["saliency", "random"], metrics=["mif"], datasets=[TwoFactor(count=3)])
    shown = run(wanted, tmp_path).gallery
    assert [set(picture.flips) for picture in shown] == [{"saliency", "random"}] * 3
    book = shown[0].flips["saliency"]["mif"]
    assert book.gone.shape == (64, 64)
    assert book.hidden is not None
    assert (book.hidden == book.hidden[0, 0]).all()  # the mean colour
    files = sorted((tmp_path / "gallery").rglob("*.flips.npz"))
    assert len(files) == 2
    files[0].write_bytes(files[0].read_bytes()[:100])
    assert sum(len(picture.flips) for picture in run(wanted, tmp_path).gallery) == 3  # of one method each


def test_equal_models_and_data_sets_of_two_names_both_have_their_rows(tmp_path: Path) -> None:
    one = small_cnn()
    other = dataclasses.replace(one, name="the same again")
    pictures = TwoFactor(count=4)

    @dataclasses.dataclass(frozen=True)
    class Renamed(TwoFactor):
        @property
        def name(self) -> str:
            return "renamed"

    results = run(study(models=[one, other], datasets=[pictures, Renamed(count=4)], methods=["saliency"]), tmp_path)
    assert len(results.settings) == 4
    assert (results.scores.groupby(["dataset", "model"]).size() == 4).all()


def test_an_edited_method_and_another_cam_layer_are_computed_anew(tmp_path: Path) -> None:
    def made(sign: float) -> Any:
        def signed(model: Model, batch: Batch) -> Tensor:
            return sign * batch.images.mean(1)

        return signed

    first, second = (run(study([made(sign)]), tmp_path).scores["value"] for sign in (1.0, -1.0))
    assert not first.equals(second)
    assert first.equals(run(study([made(1.0)]), tmp_path).scores["value"])
    layers = [dataclasses.replace(small_cnn(), cam_layer=name) for name in ("0", "2")]
    assert layers[0].revision != layers[1].revision != small_cnn().revision


def test_the_gallery_is_that_of_the_last_run_also_if_nothing_was_computed(tmp_path: Path) -> None:
    def shown(**settings: Any) -> dict[str, Any]:
        pictures = run(study(["random", "saliency"], datasets=[TwoFactor(count=4)], **settings), tmp_path).gallery
        return {f"{p.image} {name}": values.tolist() for p in pictures for name, values in p.maps.items()}

    first, second = shown(seed=0), shown(seed=1)
    assert len(first) == 8
    assert first != second
    assert shown(seed=0) == first  # all of it was known


def test_more_pictures_than_last_time_are_shown_too(tmp_path: Path) -> None:
    for limit in (2, 4):
        results = run(study(["saliency"], datasets=[TwoFactor(count=4)], limit=limit), tmp_path)
        assert [picture.image for picture in results.gallery] == list(TwoFactor(count=4).ids()[:limit])
        assert all(set(picture.maps) == {"saliency"} for picture in results.gallery)


def test_a_metric_of_the_label_reads_folders_by_the_models_classes(tmp_path: Path) -> None:
    classes = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay")
    model = dataclasses.replace(small_cnn(), classes=classes, view=heatproof.View(64))
    pictures = TwoFactor(count=2).batch([0, 1]).images
    for layout, names in (("named", ("dog", "jay")), ("numbered", ("3_dog", "9_jay"))):
        for name, picture in zip(names, pictures, strict=True):
            (tmp_path / layout / name).mkdir(parents=True)
            Image.fromarray((picture * 255).byte().permute(1, 2, 0).numpy()).save(tmp_path / layout / name / "x.png")
    requested = {
        layout: run(
            study(["saliency"], ["mif(target=label)"], models=[model], datasets=[str(tmp_path / layout)]),
            tmp_path / f"run {layout}",
        )
        for layout in ("named", "numbered")
    }
    named, numbered = (sorted(results.scores["value"]) for results in requested.values())
    assert named == numbered


def spoils_weights(model: Model, batch: Batch) -> Tensor:
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.add_(0.01)
    return batch.images.mean(1)


def spoils_pictures(model: Model, batch: Batch) -> Tensor:
    return batch.images.mul_(0.5).mean(1)


@pytest.mark.parametrize(
    ("spoils", "what"), [(spoils_weights, "the model's weights"), (spoils_pictures, "the pictures")]
)
def test_a_method_that_changes_things_fails_and_harms_nothing_after_it(tmp_path: Path, spoils: Any, what: str) -> None:
    alone = run(study(["saliency"]), tmp_path / "alone").scores["value"]
    results = run(study([spoils, "saliency", Inverted(spoils)]), tmp_path / "run").scores
    assert results[results["method"] == "saliency"]["value"].tolist() == alone.tolist()
    for name in (spoils.__name__, f"inverted(method={spoils.__name__})"):
        rows = results[results["method"] == name]
        assert len(rows) == 20
        assert (rows["status"] == "failed").all()
        assert rows["note"].str.contains(what).all()


@dataclasses.dataclass(frozen=True)
class Broken:
    """A curve without a number where there is no score."""

    higher_is_better: ClassVar[bool] = True

    def __call__(self, attribution: Attribution, /) -> Scored:
        count = len(attribution.batch)
        values = torch.arange(count).double()
        values[0] = torch.nan
        line = torch.zeros(count, 3)
        line[0] = torch.nan
        return Scored(values, ("nothing to see",) + ("",) * (count - 1), Curve(torch.arange(3.0), line))


def test_a_curve_without_a_number_is_left_out(tmp_path: Path) -> None:
    results = run(study(["saliency"], [Broken()], limit=4), tmp_path)
    assert results.scores["status"].tolist() == ["undefined", "ok", "ok", "ok"]
    assert len(results.curves) == 3


def test_a_metric_without_a_direction_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="must say whether higher_is_better"):
        study(["saliency"], [brightness])


def _in_folders(tmp_path: Path, names: Sequence[str]) -> str:
    pictures = TwoFactor(count=len(names)).batch(range(len(names))).images
    for name, picture in zip(names, pictures, strict=True):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        pixels = (picture * 255).byte().permute(1, 2, 0).numpy()
        Image.fromarray(pixels).save(tmp_path / "pictures" / name / "x.png")
    return str(tmp_path / "pictures")


@pytest.mark.parametrize("requested", [{"target": "label"}, {"metrics": ["mif(target=label)"]}])
def test_folders_named_by_class_are_not_guessed_at(tmp_path: Path, requested: dict[str, Any]) -> None:
    model = dataclasses.replace(small_cnn(), view=heatproof.View(64))
    folder = _in_folders(tmp_path, ("dog", "jay"))
    with pytest.raises(BadInput, match=r"names 2 classes \(dog, jay\), and model 'small_cnn' has 10"):
        run(study(models=[model], datasets=[folder], **requested), tmp_path / "run")
    predicted = run(study(models=[model], datasets=[folder]), tmp_path / "predicted")
    assert predicted.complete  # nothing reads the label


def test_as_many_folders_as_classes_are_taken_in_the_alphabets_order_with_a_warning(tmp_path: Path) -> None:
    model = dataclasses.replace(small_cnn(), view=heatproof.View(64))
    names = ("jay", "ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis")
    folder = _in_folders(tmp_path, names)
    with pytest.warns(UserWarning, match="numbered in the data set's own order"):
        run(study(["random"], models=[model], datasets=[folder], target="label"), tmp_path / "run")


def test_localisation_without_a_region_is_refused_at_once(tmp_path: Path) -> None:
    model = dataclasses.replace(small_cnn(), view=heatproof.View(64))
    folder = _in_folders(tmp_path, ("dog", "jay"))
    requested: list[int] = []

    def counting(model: Model, batch: Batch) -> Tensor:
        requested.append(len(batch))
        return batch.images.mean(1)

    localising = ["auc_iou", "pointing_game", "region_share"]
    with pytest.raises(BadInput, match="has no regions: give a mask"):
        run(study([counting], localising, models=[model], datasets=[folder]), tmp_path / "run")
    assert not requested
    mixed = run(study([brightness], ["srg", "auc_iou"], models=[model], datasets=[folder]), tmp_path / "mixed")
    assert set(mixed.scores["status"]) == {"ok", "not_applicable"}
    one_of_two = study([brightness], localising, models=[model], datasets=[folder, TwoFactor(count=2)])
    assert "ok" in set(run(one_of_two, tmp_path / "two").scores["status"])


def test_the_time_of_all_calls_is_kept_and_that_of_other_work_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 1_000_000, 100))
    monkeypatch.setattr(run_state, "TICK", float("inf"))
    monkeypatch.setattr(run_state.time, "monotonic", lambda: float(next(now)))
    seconds = [run(study(methods), tmp_path).info.seconds for methods in (["random"], ["random"], ["edges"])]
    assert seconds[1] > seconds[0] > 0
    assert seconds[2] == seconds[0]  # nothing of what was done before is in this table


def test_a_run_that_is_stopped_can_be_reported_on_as_far_as_it_came(tmp_path: Path) -> None:
    def stop(done: int, total: int, label: str) -> None:
        if done in (5, 8):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study(["random", "edges"]), tmp_path, watch=stop)  # three shards of two units
    early = heatproof.Results.load(tmp_path)
    assert early.scores.groupby("method").size().to_dict() == {"edges": 16, "random": 16}
    assert early.info.stopped == "after 16 of 20 pictures"
    assert (
        "The run was stopped after 16 of 20 pictures." in heatproof.report(early, tmp_path / "early.html").read_text()
    )
    assert heatproof.report(early, tmp_path / "report.html").is_file()
    whole = run(study(["random", "edges"]), tmp_path)
    assert len(whole.scores) == 40
    assert not whole.info.stopped
    with pytest.raises(KeyboardInterrupt):
        run(study(["random", "edges", "saliency"]), tmp_path, watch=stop)
    assert len(heatproof.Results.load(tmp_path).scores) == 40  # a whole table is not exchanged for half of one


def test_a_run_that_is_stopped_in_its_first_pictures_shows_the_units_it_has(tmp_path: Path) -> None:
    def stop(done: int, total: int, label: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study(["random", "edges"]), tmp_path, watch=stop)
    early = heatproof.Results.load(tmp_path)
    assert set(early.scores["method"]) == {"random"}
    assert early.info.stopped.startswith("after 1 of 6 units of work")
    assert "The run was stopped after 1 of 6 units" in heatproof.report(early, tmp_path / "r.html").read_text()


def test_a_run_of_several_protocols_that_is_stopped_counts_by_protocol(tmp_path: Path) -> None:
    def stop(done: int, total: int, label: str) -> None:
        if done == 4:
            raise KeyboardInterrupt

    requested = [study(["random"], protocol="one"), study(["edges"], protocol="two")]
    with pytest.raises(KeyboardInterrupt):
        run(requested, tmp_path, watch=stop)
    early = heatproof.Results.load(tmp_path)
    assert early.info.stopped == "after one (20 of 20 pictures), two (8 of 20 pictures)"


def test_time_before_the_first_unit_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise KeyboardInterrupt  # as SIGTERM does

    requested = study(["random"])
    with monkeypatch.context() as patched:
        patched.setattr(loop, "settle", refuses)
        with pytest.raises(KeyboardInterrupt):
            run(requested, tmp_path)
    before = run_state.known(tmp_path)
    assert before is not None
    assert run(requested, tmp_path).info.started
    after = run_state.known(tmp_path)
    assert after is not None
    assert after.began == before.began
    assert after.seconds > before.seconds > 0


def test_a_network_that_cannot_be_looked_into_is_refused() -> None:
    scripted = torch.jit.trace(small_cnn().network, torch.rand(1, 3, 32, 32))
    with pytest.raises(BadModel, match="is TorchScript"):
        study(models=[Model("scripted", scripted)])


def test_models_that_answer_other_questions_share_no_numbers(tmp_path: Path) -> None:
    """The same weights judged by another label are another unit."""
    scores = []
    for task in ("object", "scene"):
        model = dataclasses.replace(heatproof.models.load("embedded:object"), task=task)
        requested = Study([model], ["two_factor(count=6)"], ["saliency"], ["mif"], target="label")
        scores.append(run(requested, tmp_path).scores["value"])
    assert not scores[0].equals(scores[1])


def test_workers_give_the_same_table_and_code_of_ones_own_needs_no_file(tmp_path: Path) -> None:
    there = "a value that a closure holds"

    def own(model: Model, batch: Batch) -> Tensor:
        return batch.images.mean(1) * len(there)

    requested = study([own, "smoothgrad(draws=2)", "random", "shapley(permutations=2)"], ["srg(points=5)", MeanMap()])
    message: list[tuple[int, int]] = []
    with pytest.warns(UserWarning, match="will not find"):
        alone = run(requested, tmp_path / "alone")
    with pytest.warns(UserWarning, match="will not find"):
        together = run(
            requested, tmp_path / "together", workers=2, watch=lambda done, total, _: message.append((done, total))
        )
    pd.testing.assert_frame_equal(numbers(alone), numbers(together))
    assert together.complete == alone.complete
    # 4 methods, 2 metrics, 3 shards; and twice again for the two random methods, under 2 other seeds
    assert message == [(i + 1, 32) for i in range(32)]
    chosen = [json.loads((tmp_path / which / "engine.json").read_text()) for which in ("alone", "together")]
    assert chosen[0] == chosen[1]
    assert together.info.engine == alone.info.engine


@pytest.mark.usefixtures("ctrl_c")
def test_workers_go_on_where_the_run_stopped(tmp_path: Path) -> None:
    parent, requested = os.getpid(), study(["random"])
    first = TwoFactor(count=20).ids()[0]

    def stops(model: Model, batch: Batch) -> Tensor:
        if os.getpid() != parent and first not in batch.ids:
            for _ in range(30):  # as Ctrl-C would, until the worker is ended
                os.kill(parent, signal.SIGINT)
                time.sleep(2)
        return batch.images.mean(1)

    run(requested, tmp_path)
    both = dataclasses.replace(requested, methods=[stops, *requested.methods])
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="will not find"):
        run(both, tmp_path, workers=2)
    message: list[int] = []
    with pytest.warns(UserWarning, match="will not find"):
        results = run(both, tmp_path, watch=lambda done, *_: message.append(done))
    assert results.complete
    assert message[-1] == 6
    damaged = min((tmp_path / "parts").glob("scores-*"))
    gone = len(pq.read_table(damaged)["unit"].unique())
    damaged.write_bytes(b"nonsense")
    message.clear()
    with pytest.warns(UserWarning, match="will not find"):
        mended = run(both, tmp_path, workers=2, watch=lambda done, *_: message.append(done))
    assert mended.info.damaged == (damaged.name,)
    assert message == list(range(7 - gone, 7))  # the others were there
    lost = next(file for file in (tmp_path / "gallery").rglob("*.npz") if file.name != "pictures.npz")
    lost.unlink()
    with pytest.warns(UserWarning, match="will not find"):
        run(both, tmp_path)
    assert lost.is_file()


def test_what_another_worker_chose_stays_in_the_record(tmp_path: Path) -> None:
    chosen = {"a question of another worker": {"backend": "eager", "layout": "contiguous", "size": 3}}

    def meanwhile(model: Model, batch: Batch) -> Tensor:
        Store(tmp_path).put_json("engine.json", {**(Store(tmp_path).get_json("engine.json") or {}), **chosen})
        return batch.images.mean(1)

    with pytest.warns(UserWarning, match="will not find"):
        run(study([meanwhile]), tmp_path)
    kept = Store(tmp_path).get_json("engine.json") or {}
    assert chosen.items() < kept.items()

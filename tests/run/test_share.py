"""Parts of a study in directories of their own: together they are the whole run, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.results import Results
from heatproof.run import task
from heatproof.run.gather import gather
from heatproof.run.loop import run
from heatproof.run.share import Share
from heatproof.run.until import Solid
from heatproof.spec.study import Study


def study(methods: Sequence[str] = ("saliency", "random"), seed: int = 0) -> Study:
    return Study(["embedded:object"], [TwoFactor(count=10)], list(methods), ["mif"], shard=2, seed=seed)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    run(study(), root)
    return root


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("parts")
    for number in (1, 2, 3):
        run(study(), root / str(number), share=Share(number, 3))
    return [root / str(number) for number in (1, 2, 3)]


def table(results: Results) -> pd.DataFrame:
    return results.scores.drop(columns="seconds")


def test_parts_are_alike_in_size_and_together_all_of_it() -> None:
    work: list[Any] = list(range(50))
    shares = [Share(number, 16).of_work(work) for number in range(1, 17)]
    assert sorted(one for share in shares for one in share) == work
    assert {len(share) for share in shares} == {3, 4}


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1.5/3", "1/3/5", ""])
def test_other_words_for_a_part_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="a part must be like 3/16"):
        Share.parse(text)


def test_a_part_without_pictures_is_refused() -> None:
    with pytest.raises(BadInput, match="part 9/9 has nothing to do: the study has 5 shards"):
        Share(9, 9).of_work(list(range(5)))  # type: ignore[arg-type]


def test_parts_put_together_are_the_whole_run_and_nothing_is_computed(
    whole: Path, parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [len(Results.load(part).scores) for part in parts] == [8, 8, 4]
    monkeypatch.setattr(task, "judge", None)
    together = gather([parts[2], parts[0], parts[1]], tmp_path / "out")
    before = Results.load(whole)
    assert together.complete
    pd.testing.assert_frame_equal(table(together), table(before), check_exact=True)
    assert together.info.pictures == before.info.pictures
    assert [one.picture.tobytes() for one in together.gallery] == [one.picture.tobytes() for one in before.gallery]
    kept, wanted = (json.loads((root / "study.json").read_bytes()) for root in (tmp_path / "out", whole))
    assert kept["studies"] == wanted["studies"]
    assert "part" not in kept
    again = run(study(), tmp_path / "out", watch=lambda *_: pytest.fail("everything is there"))
    assert again.complete


def test_what_is_missing_is_named(parts: list[Path], tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"4 units of work are in none .* \(part 2 of 3 was not given\); first: saliency"
    ):
        gather([parts[0], parts[2]], tmp_path / "out")
    with pytest.raises(BadInput):
        Results.load(tmp_path / "out")


def test_parts_of_different_studies_are_refused(whole: Path, parts: list[Path], tmp_path: Path) -> None:
    run(study(seed=1), tmp_path / "seed", share=Share(2, 3))
    run(study(methods=["saliency"]), tmp_path / "methods", share=Share(2, 3))
    run(study(), tmp_path / "of", share=Share(2, 4))
    for name, reason in {"seed": "seed", "methods": "methods", "of": r"the number of parts \(4 and 3\)"}.items():
        with pytest.raises(BadInput, match=f"is a part of another study than .*: they differ in {reason}"):
            gather([parts[0], tmp_path / name], tmp_path / "out")
    with pytest.raises(BadInput, match="holds all of its study, not a part of one"):
        gather([parts[0], whole], tmp_path / "out")
    with pytest.raises(BadInput, match="needs the directories"):
        gather([], tmp_path / "out")


def test_a_part_and_a_rule_to_stop_by_are_two_ways_to_take_pictures(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="leave one of them out"):
        run(study(), tmp_path, share=Share(1, 2), until=Solid())


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "STUDY.py").write_text(
        "import heatproof\nfrom heatproof.data.two_factor.dataset import TwoFactor\n"
        "study = heatproof.Study(['embedded:object'], [TwoFactor(count=4)], ['saliency'], ['mif'], shard=2)\n"
    )
    for number in "12":
        words = ["run", str(tmp_path / "STUDY.py"), "--part", f"{number}/2", "--out", str(tmp_path / number), "--quiet"]
        answer = CliRunner().invoke(app, [*words, "--workers", "1"])
        assert answer.exit_code == 0, answer.output
        assert f"Part {number}/2" in answer.output
    words = ["gather", str(tmp_path / "1"), str(tmp_path / "2"), "--out", str(tmp_path / "all"), "--trust-code"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert len(Results.load(tmp_path / "all").scores) == 4
    assert (tmp_path / "all" / "report.html").is_file()
    again = CliRunner().invoke(app, ["run", str(tmp_path / "1" / "study.json"), "--out", str(tmp_path / "again")])
    assert len(Results.load(tmp_path / "again").scores) == 2, again.output  # a replay of a part is that part

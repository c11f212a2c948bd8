"""`--output` and `--target` on the command line, and a replay that reads the network as the run did."""

from __future__ import annotations

from pathlib import Path

import planted_outputs as stage
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.results import Results

FACTORY = """
import torch
def factory():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 4, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(32, OUTPUTS),
    )
    torch.manual_seed(0)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return network
factory.size = 32
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    for row, image in enumerate(stage.planted(3, (0, 1), seed=4).images):
        pixels = (image * 255).round().byte().permute(1, 2, 0).numpy()
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{row}.png")
    for outputs in (1, 3):
        (tmp_path / f"answers{outputs}.py").write_text(FACTORY.replace("OUTPUTS", str(outputs)))
    return tmp_path


def called(*words: str | Path) -> str:
    torch.manual_seed(1)
    answer = CliRunner().invoke(app, [str(word) for word in words])
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_a_run_of_a_value_and_its_replay(place: Path) -> None:
    model = f"{place}/answers1.py:factory"
    judged = ["--methods", "saliency,input_x_gradient", "--metrics", "srg,mif"]
    words = ["run", "--model", model, "--images", place / "pictures", *judged]
    output = called(*words, "--output", "regression", "--out", place / "value")
    assert "answers with a value" in " ".join(output.split())
    page = (place / "value" / "report.html").read_text(encoding="utf-8")
    assert "answers with a value" in page
    called(*words, "--out", place / "sided")
    value, sided = Results.load(place / "value"), Results.load(place / "sided")
    assert value.info.studies[0].models[0]["output"] == "regression"
    assert (value.info.pictures[0].question, sided.info.pictures[0].question) == ("value", "yes_no")
    assert value.scores["value"].tolist() != pytest.approx(sided.scores["value"].tolist(), abs=1e-3)
    called("run", place / "value" / "study.json", "--trust-code", "--out", place / "again")
    again = Results.load(place / "again").scores["value"]
    assert again.tolist() == pytest.approx(value.scores["value"].tolist(), abs=1e-5)


def test_labels_are_explained_by_name(place: Path) -> None:
    given = ["--model", f"{place}/answers3.py:factory", "--output", "sigmoid", "--target", "2"]
    called("explain", place / "pictures", *given, "--methods", "saliency", "-o", place / "sheet.png")
    assert (place / "sheet.png").is_file()
    judged = ["--methods", "saliency,random", "--metrics", "srg"]
    called("run", "--images", place / "pictures", *given, *judged, "--out", place / "labels")
    found = Results.load(place / "labels")
    assert set(found.scores["image"]) == {f"{row}.png#2" for row in range(3)}
    page = (place / "labels" / "report.html").read_text(encoding="utf-8")
    assert "3 labels on 3 pictures" in page


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--output", "sigmoids"], "declares the output 'sigmoids', and an output is softmax, sigmoid or regression"),
        (["--output", "sigmoid", "--target", "9"], "must be a label of model"),
        (
            ["--output", "regression", "--target", "label"],
            "answers with 3 values, and none of them is the",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(words: list[str], says: str, place: Path) -> None:
    model = f"{place}/answers3.py:factory"
    given = ["run", "--model", model, "--images", str(place / "pictures"), "--methods", "saliency", "--metrics", "srg"]
    answer = CliRunner().invoke(app, [*given, *words, "--out", str(place / "out")])
    assert answer.exit_code == 2
    assert says in " ".join(answer.output.split())
    assert "Traceback" not in answer.output


def test_output_needs_a_model(place: Path) -> None:
    answer = CliRunner().invoke(app, ["run", "--output", "sigmoid", "--metrics", "srg", "--out", str(place / "out")])
    assert answer.exit_code == 2
    assert "no model is named: add --model" in " ".join(answer.output.split())

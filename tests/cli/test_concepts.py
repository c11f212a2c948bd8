"""`heatproof tcav` on folders of pictures and a network whose concept is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from heatproof.cli import app

# Class 0 likes red, class 1 dislikes it, class 2 does not care; `blind` answers with numbers that depend on nothing.
RED = """
import torch
from torch import nn

class Red(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.seen = nn.Conv2d(3, 3, 1, bias=False)
        self.seen.weight.data = torch.eye(3).view(3, 3, 1, 1) * weight
    def forward(self, images):
        red, green, _ = self.seen(images).mean((2, 3)).unbind(1)
        return torch.stack([red - green, green - red, 0 * red], 1)

def factory():
    return Red(1.0)

def blind():
    return Red(0.0)

for one in (factory, blind):
    one.mean, one.std, one.size, one.cam_layer = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 16, "seen"
"""


@pytest.fixture
def shell() -> CliRunner:
    return CliRunner()


@pytest.fixture
def words(tmp_path: Path) -> dict[str, str]:
    """The options of a sensible question, to be spoilt one at a time."""
    (tmp_path / "red.py").write_text(RED)
    for name, count, red in (("concept", 12, 120), ("without", 24, 0), ("images", 5, 40)):
        (tmp_path / name).mkdir()
        for i in range(count):
            pixels = np.random.default_rng([len(name), i]).integers(0, 130, (16, 16, 3), dtype=np.uint8)
            pixels[..., 0] += np.uint8(red)
            Image.fromarray(pixels).save(tmp_path / name / f"{i:02d}.png")
    folders = {f"--{name}": str(tmp_path / name) for name in ("concept", "without", "images")}
    return {"--model": f"{tmp_path / 'red.py'}:factory", **folders, "--size": "12", "--target": "0"}


def spoken(words: dict[str, str], **changed: str) -> list[str]:
    message = {**words, **{f"--{name}": value for name, value in changed.items()}}
    return ["tcav", *(word for pair in message.items() for word in pair)]


@pytest.mark.parametrize(("target", "score"), [("0", 1.0), ("1", 0.0)])
def test_a_known_concept_is_found_for_and_against_a_class(
    shell: CliRunner, words: dict[str, str], target: str, score: float
) -> None:
    answer = shell.invoke(app, [*spoken(words, target=target), "--json"])
    assert answer.exit_code == 0, answer.output
    message = json.loads(answer.stdout)
    assert message["score"] == score
    assert message["pictures"] == 5
    assert [row["layer"] for row in message["layers"]] == ["seen"]
    assert message["layers"][0]["p"] < 0.01
    assert message["layers"][0]["kept"] is True


def test_layers_and_score_can_be_read(shell: CliRunner, words: dict[str, str]) -> None:
    answer = shell.invoke(app, spoken(words, layers="seen", seed="3"))
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.splitlines()[0].startswith("seen")
    assert "score 1.000" in answer.stdout
    assert "TCAV 1.000 (5 pictures, mean of 1 of 1 layers)" in answer.stdout


def test_a_network_blind_to_the_concept_is_not_applicable(shell: CliRunner, words: dict[str, str]) -> None:
    blind = spoken(words, model=words["--model"].replace(":factory", ":blind"))
    answer = shell.invoke(app, blind)
    assert answer.exit_code == 0, answer.output
    assert "not applicable: the concept differs from chance in no layer" in answer.stdout
    assert json.loads(shell.invoke(app, [*blind, "--json"]).stdout)["score"] is None


def test_pictures_that_cannot_be_read_are_left_out_and_named(
    shell: CliRunner, words: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "images" / "00.png").write_bytes(b"not a picture")
    answer = shell.invoke(app, spoken(words))
    assert answer.exit_code == 0, answer.output
    assert "1 of the pictures of --images cannot be read, e.g. 00.png" in answer.stderr
    assert "4 pictures" in answer.stdout
    for path in (tmp_path / "images").iterdir():
        path.write_bytes(b"not a picture")
    refused = shell.invoke(app, spoken(words))
    assert refused.exit_code == 2
    assert "--images must hold pictures that can be read, got none" in refused.stderr


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("target", "3", "--target must be a class of the model, 0 … 2, got 3"),
        ("target", "-1", "--target must be a class of the model"),
        ("layers", "sen", "Did you mean 'seen'"),
        ("runs", "9", "runs must be at least 10"),
        ("size", "13", "26 pictures without the concept, got 24"),
        ("size", "1", "size must be at least 2"),
        ("limit", "0", "--limit must be at least 1"),
        ("seed", "-1", "seed must be at least 0"),
        ("model", "embedded:objct", "object"),
        ("concept", "nowhere/at/all", "no folder"),
        ("device", "toaster", "device must be one of"),
    ],
)
def test_bad_input_is_a_sentence_and_status_two(
    shell: CliRunner, words: dict[str, str], option: str, value: str, says: str
) -> None:
    answer = shell.invoke(app, spoken(words, **{option: value}))
    assert answer.exit_code == 2, answer.output
    assert says in answer.output
    assert "Traceback" not in answer.output


def test_fewer_concept_pictures_than_wanted_are_reported_and_still_tested(
    shell: CliRunner, words: dict[str, str], tmp_path: Path
) -> None:
    for path in sorted((tmp_path / "concept").iterdir())[8:]:
        path.unlink()
    answer = shell.invoke(app, spoken(words))
    assert answer.exit_code == 0, answer.output
    assert "8 concept pictures are fewer than --size 12" in answer.stderr
    assert "TCAV 1.000" in answer.stdout


def test_concept_pictures_without_and_images_must_be_named(shell: CliRunner, words: dict[str, str]) -> None:
    for option in ("--model", "--concept", "--without", "--images"):
        rest = {name: value for name, value in words.items() if name != option}
        answer = shell.invoke(app, spoken(rest))
        assert answer.exit_code == 2
        assert option in answer.output

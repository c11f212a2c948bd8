"""The same methods by the libraries people use, at the same settings, ready to be timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.types import Batch, Model

Work = Callable[[], Any]


@dataclass(frozen=True)
class Reference:
    """A library, how to make it ready, and on how many images of the batch it is timed."""

    library: str
    prepare: Callable[[Model, Batch, Any], Work]
    most: int = 8
    shortens: bool = True  # it can be requested as few steps as ours

    def images(self, batch: Batch) -> int:
        return min(self.most, len(batch))


class Normalised(nn.Module):
    """The model as a module that takes pictures in [0, 1], as those libraries want it."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.network = model.network
        self.register_buffer("mean", torch.tensor(model.mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(model.std).view(1, -1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.network((x - self.mean) / self.std)  # type: ignore[no-any-return]


def captum(name: str, **fixed: Any) -> Callable[[Model, Batch, Any], Work]:
    """A captum attribution; fields named in `fixed` by a string are read off our method."""

    def prepare(model: Model, batch: Batch, method: Any) -> Work:
        from captum import attr

        explainer = getattr(attr, name)(Normalised(model))
        settings = {k: getattr(method, v) if isinstance(v, str) else v for k, v in fixed.items()}
        if name == "IntegratedGradients":
            settings["internal_batch_size"] = engine.batch_size(model, batch.images, "gradient")
        if name in ("DeepLift", "GradientShap"):
            settings["baselines"] = torch.zeros_like(batch.images[:1])
        return lambda: explainer.attribute(batch.images, target=batch.targets, **settings)

    return prepare


def captum_occlusion(model: Model, batch: Batch, method: Any) -> Work:
    from captum import attr

    explainer = attr.Occlusion(Normalised(model))
    side = batch.images.shape[-1]
    window = max(1, round(method.window * side))
    stride = max(1, (side - window) // (method.positions - 1))
    shapes = {"sliding_window_shapes": (3, window, window), "strides": (3, stride, stride)}
    return lambda: explainer.attribute(batch.images, target=batch.targets, **shapes)


def grad_cam(name: str) -> Callable[[Model, Batch, Any], Work]:
    def prepare(model: Model, batch: Batch, method: Any) -> Work:
        import_torchvision("pytorch-grad-cam")
        import pytorch_grad_cam
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

        layers = [m for m in model.network.modules() if isinstance(m, nn.Conv2d)]
        named = dict(model.network.named_modules())
        layer = named.get(model.cam_layer or "", layers[-1])
        explainer = getattr(pytorch_grad_cam, name)(Normalised(model), [layer])
        aims = [ClassifierOutputTarget(t) for t in batch.targets.tolist()]
        return lambda: explainer(batch.images, targets=aims)

    return prepare


def zennit_lrp(model: Model, batch: Batch, method: Any) -> Work:
    from zennit.attribution import Gradient
    from zennit.canonizers import SequentialMergeBatchNorm
    from zennit.composites import EpsilonPlusFlat

    aims = torch.eye(engine.forward(model, batch.images[:1]).shape[1])[batch.targets]

    def work() -> None:
        with Gradient(model.network, EpsilonPlusFlat(canonizers=[SequentialMergeBatchNorm()])) as attributor:
            attributor(model.normalised(batch.images), aims)

    return work


def pair(name: str, most: int) -> Callable[[Model, Batch, Any], Work]:
    def prepare(model: Model, batch: Batch, method: Any) -> Work:
        import saliency.core as saliency

        if name == "GuidedIG":  # its call is for an older numpy
            saliency.guided_ig.np = _OldNumpy()
        rows = engine.batch_size(model, batch.images, "gradient")

        def slopes(shown: Any, call_model_args: int, expected_keys: Any) -> dict[str, Any]:
            images = torch.from_numpy(np.asarray(shown, np.float32)).permute(0, 3, 1, 2).requires_grad_()
            (found,) = torch.autograd.grad(model(images)[:, call_model_args].sum(), images)
            return {"INPUT_OUTPUT_GRADIENTS": found.permute(0, 2, 3, 1).numpy()}

        settings: dict[str, Any] = {"batch_size": rows}
        if name == "XRAI":
            settings["extra_parameters"] = saliency.XRAIParameters(steps=method.steps)
        if name == "BlurIG":
            side = min(batch.images.shape[2:])
            settings |= {"steps": method.steps, "max_sigma": float(method.sigmas(side)[-1])}
        if name == "GuidedIG":
            settings = {"x_steps": method.steps, "fraction": method.fraction, "max_dist": method.max_dist}
        explainer = getattr(saliency, name)()
        pictures = [p.permute(1, 2, 0).numpy() for p in batch.images[:most]]

        def work() -> None:
            for picture, target in zip(pictures, batch.targets.tolist(), strict=False):
                explainer.GetMask(picture, slopes, target, **settings)

        return work

    return prepare


class _OldNumpy:
    """numpy with the spelling of `quantile` that the library was written for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def quantile(values: Any, share: float, interpolation: str) -> Any:
        return np.quantile(values, share, method=interpolation)  # type: ignore[call-overload]


def lime_package(model: Model, batch: Batch, method: Any) -> Work:
    from lime import lime_image

    def classify(shown: Any) -> Any:
        images = torch.from_numpy(np.asarray(shown, np.float32)).permute(0, 3, 1, 2)
        with torch.inference_mode():
            return model(images).softmax(1).numpy()

    explainer = lime_image.LimeImageExplainer(random_state=0)
    picture, target = batch.images[0].permute(1, 2, 0).double().numpy(), int(batch.targets[0])
    rows = engine.batch_size(model, batch.images, "forward")
    settings = {"num_samples": method.samples, "batch_size": rows, "hide_color": 0}
    lime_image.tqdm = lambda rows: rows  # no progress bar between the lines of the table

    def work() -> None:
        explainer.explain_instance(picture, classify, labels=(target,), top_labels=None, **settings)

    return work


REFERENCES: dict[str, Reference] = {
    "saliency": Reference("captum", captum("Saliency")),
    "input_x_gradient": Reference("captum", captum("InputXGradient")),
    "integrated_gradients": Reference("captum", captum("IntegratedGradients", n_steps="steps")),
    "guided_backprop": Reference("captum", captum("GuidedBackprop")),
    "deconvnet": Reference("captum", captum("Deconvolution")),
    "deep_lift": Reference("captum", captum("DeepLift")),
    "gradient_shap": Reference("captum", captum("GradientShap", n_samples="draws")),
    "occlusion": Reference("captum", captum_occlusion),
    "grad_cam": Reference("pytorch-grad-cam", grad_cam("GradCAM")),
    "grad_cam_pp": Reference("pytorch-grad-cam", grad_cam("GradCAMPlusPlus")),
    "layer_cam": Reference("pytorch-grad-cam", grad_cam("LayerCAM")),
    "score_cam": Reference("pytorch-grad-cam", grad_cam("ScoreCAM"), shortens=False),
    "lrp": Reference("zennit", zennit_lrp),
    "xrai": Reference("PAIR saliency", pair("XRAI", 1), 1),
    "blur_ig": Reference("PAIR saliency", pair("BlurIG", 1), 1),
    "guided_ig": Reference("PAIR saliency", pair("GuidedIG", 1), 1),
    "lime": Reference("lime", lime_package, 1),
}

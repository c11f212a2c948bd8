"""Plain gradients: exact on f = Wx, and as captum has them."""

from __future__ import annotations

import torch
from captum.attr import InputXGradient as CaptumInputXGradient
from captum.attr import Saliency as CaptumSaliency
from networks import batch, linear, small_cnn, small_resnet, small_vit

from heatproof.attribute import attribute
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.saliency import Saliency


def weights_of(pictures_targets: torch.Tensor) -> torch.Tensor:
    return linear().network.fc.weight.detach()[pictures_targets].view(-1, 3, 32, 32)


def test_exact_on_a_linear_model() -> None:
    pictures = batch(3)
    weights = weights_of(pictures.targets)
    model = linear()
    assert torch.allclose(Saliency()(model, pictures), weights.abs().sum(1), atol=1e-6)
    assert torch.allclose(Saliency(signed=True)(model, pictures), weights.sum(1), atol=1e-6)
    expected = (weights * pictures.images).sum(1)
    for space in ("normalised", "pixels"):  # nothing is normalised here, so both inputs are the picture
        assert torch.allclose(InputXGradient(input=space)(model, pictures), expected, atol=1e-6)  # type: ignore[arg-type]


def test_agrees_with_captum() -> None:
    pictures = batch(3)
    for make in (small_cnn, small_resnet, small_vit):
        model = make()
        saliency = CaptumSaliency(model).attribute(pictures.images, target=pictures.targets)
        ours = Saliency().channels(model, pictures)
        assert torch.allclose(ours, saliency, rtol=1e-4, atol=1e-6 * float(saliency.max()))
        inputs = model.normalised(pictures.images)
        product = CaptumInputXGradient(model.network).attribute(inputs, target=pictures.targets).detach()
        ours = InputXGradient().channels(model, pictures)
        assert torch.allclose(ours, product, rtol=1e-3, atol=1e-5 * float(product.abs().max()))


def test_the_readout_is_what_is_differentiated() -> None:
    model, pictures = small_cnn(), batch(2)
    probability = model(pictures.images).softmax(-1).gather(1, pictures.targets[:, None]).detach()[:, :, None]
    of_probability = Saliency(readout="probability")(model, pictures)
    of_logarithm = Saliency(readout="log_probability")(model, pictures)
    assert torch.allclose(of_probability, probability * of_logarithm, rtol=1e-3, atol=1e-8)
    assert not torch.allclose(of_logarithm, Saliency()(model, pictures), rtol=1e-2)


def test_a_channel_the_model_ignores_gets_nothing() -> None:
    model, pictures = small_cnn(), batch(2)
    with torch.no_grad():
        model.network.features[0].weight[:, 1] = 0  # type: ignore[index,union-attr]
    assert float(Saliency().channels(model, pictures)[:, 1].abs().max()) == 0
    attribution = attribute(model, pictures, InputXGradient())
    assert float(attribution.maps.abs().max()) > 0

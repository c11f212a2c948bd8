"""Layer-wise relevance propagation, by zennit's rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.methods._support.canonization import merges, merging, passed, proportional
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_not_negative
from heatproof.methods._support.op_override import forward_only
from heatproof.methods._support.rule_coverage import coverage
from heatproof.methods._support.zplus_rule import plus_rule
from heatproof.methods.attention_rollout import attends
from heatproof.methods.bcos import SelfExplaining
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Model

Rules = Literal[
    "epsilon_plus_flat",
    "epsilon_plus",
    "epsilon_alpha2_beta1",
    "epsilon_alpha2_beta1_flat",
    "epsilon_gamma_box",
    "epsilon_plus_box",
    "epsilon",
]
Canonizer = Literal["auto", "none"]
Start = Literal["one_hot", "logit", "abs_logit"]
Composite = Any  # zennit.core.Composite; zennit is imported on first use, since it imports torchvision


def build(rule: Rules, model: Model, images: Images, epsilon: float, gamma: float, biases: bool) -> Composite:
    """zennit's composite of that name.

    `epsilon` alone is the epsilon rule on every linear layer; `epsilon_plus_box` is zennit's `epsilon_plus`
    with the box rule on the first layer.
    """
    import_torchvision("lrp (by way of zennit)")
    from zennit import composites, rules, types

    zero = None if biases else ["bias"]
    if rule == "epsilon":
        linear = (types.Linear, rules.Epsilon(epsilon=epsilon, zero_params=zero))
        return composites.LayerMapComposite(layer_map=[*composites.layer_map_base(), linear])
    ends = [model.normalised(torch.full_like(images[:1], value)).to(model.device) for value in (0.0, 1.0)]
    plus = (types.Convolution, plus_rule(zero))
    if rule == "epsilon_plus_box":
        dense = (types.Linear, rules.Epsilon(epsilon=epsilon, zero_params=zero))
        box = (types.Convolution, rules.ZBox(low=ends[0], high=ends[1], zero_params=zero))
        return composites.SpecialFirstLayerMapComposite(
            layer_map=[*composites.layer_map_base(), plus, dense], first_map=[box]
        )
    make = composites.COMPOSITES[rule]
    if rule == "epsilon_gamma_box":
        return make(low=ends[0], high=ends[1], epsilon=epsilon, gamma=gamma, zero_params=zero)
    return make(epsilon=epsilon, zero_params=zero, layer_map=[plus] if "plus" in rule else [])


def beginning_at(composite: Composite, layers: Sequence[nn.Module]) -> Composite:
    """The composite with its first-layer rule on the first layer that runs; zennit takes the first registered."""
    kinds = tuple(kind for kind, _ in getattr(composite, "first_map", ()))
    first = next((layer for layer in layers if isinstance(layer, kinds)), None)

    def rule_of(context: dict[str, Any], name: str, module: nn.Module) -> Any:
        context["first_layer_visited"] = module is not first
        return composite.mapping(context, name, module)

    composite.module_map = rule_of
    return composite


@contextmanager
def propagating(model: Model, images: Images, composite: Composite, canonizer: Canonizer) -> Iterator[None]:
    """A context in which the network has its rules; they are removed afterwards whatever happens."""
    engine.batch_size(model, images, "gradient")  # chosen on the unchanged network
    if canonizer == "auto":
        composite.canonizers = [merging(merges(model, images))]
    replaced = passed() | (proportional() if canonizer == "auto" else {})
    with torch.inference_mode(False), forward_only(model.network, replaced):
        try:
            composite.register(model.network)
            yield
        finally:
            composite.remove()


def _in_its_layout(way: engine.Plan) -> engine.Plan:
    """A plan that runs the network itself, which carries the rules, in the memory layout that suits its passes."""
    memory = torch.channels_last if way.choice.layout == "channels_last" else torch.contiguous_format
    return replace(way, run=lambda normalised: way.run(normalised.contiguous(memory_format=memory)))


def divided_by(layers: Sequence[nn.Module], rule: Rules, logits: Tensor, targets: Tensor, biases: bool) -> Tensor:
    """(B,): the divisor in the last layer's rule; its sign becomes the sign of a map started from one.

    The epsilon rule divides by the logit (without its bias, if biases take no part); all others divide by sums of
    positive parts.
    """
    last, flat = layers[-1], rule.endswith("flat") and len(layers) == 1
    if flat or not (rule == "epsilon" or isinstance(last, nn.Linear)):
        return torch.ones_like(logits)
    if biases or not isinstance(last.bias, Tensor):
        return logits
    return logits - last.bias.detach().to(logits)[targets.to(logits.device)]


@method("lrp")
@dataclass(frozen=True)
class LRP(ChannelPooled):
    """Relevance propagated back layer by layer, by zennit's rules; `epsilon_plus_flat` by default.

    `canonizer="auto"` first merges batch norms into the layers before them and shares relevance at residual
    sums in proportion to what each branch added; `"none"` is the variant of the pixel-flipping paper (batch
    norms passed over, plain gradients at sums). `start` is the relevance of the target: one, its logit, or
    the logit's magnitude. `biases=False` keeps biases from absorbing relevance.

    Where the target's logit is negative, a map's sign may come out reversed: the epsilon rule divides by the logit, so
    a start of one reverses it; other rules do not, so a start from the logit reverses it. `upright` restores the sign,
    so that positive relevance always speaks for the target.

    The rules sit on layers. Activations are passed over whether they are layers or functions; a network that
    computes something else outside of layers, gates its branches (the squeeze-and-excitation of EfficientNets),
    multiplies by a learned factor, normalises other than by batch norms, or uses one convolution twice is refused.

    Paper: Bach et al. 2015, "On Pixel-Wise Explanations for Non-Linear Classifier Decisions by Layer-Wise
    Relevance Propagation"
    """

    composite: Rules = "epsilon_plus_flat"
    canonizer: Canonizer = "auto"
    start: Start = "one_hot"
    epsilon: float = 1e-6
    gamma: float = 0.25
    biases: bool = True
    upright: bool = True
    pooling: Pooling = "sum"

    def __post_init__(self) -> None:
        check_not_negative("epsilon", self.epsilon)
        check_not_negative("gamma", self.gamma)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        if attends(model, batch.images):
            raise NotApplicable("lrp's rules do not cover the attention in this network: take attn_lrp, whose rules do")
        if isinstance(model.network, SelfExplaining):
            raise NotApplicable("lrp's rules do not cover B-cos layers, whose weights depend on their input: take bcos")
        fault, names = coverage(model, batch.images)
        if fault:
            raise NotApplicable(
                f"lrp's rules do not cover everything that model {model.name!r} does, it {fault}: "
                "take integrated_gradients or grad_cam"
            )
        layers = [model.network.get_submodule(name) for name in names]
        with torch.inference_mode(False), torch.no_grad():  # tensors made by rules and merges take part in gradients
            composite = build(self.composite, model, batch.images, self.epsilon, self.gamma, self.biases)
        composite = beginning_at(composite, layers)
        with propagating(model, batch.images, composite, self.canonizer):
            way = _in_its_layout(engine.settled(model, batch.images, "gradient"))
            slopes, logits = engine.gradient(model, batch.images, batch.targets, "logit", way)
        # Relevance belongs to the network's own input; the engine's chain rule divided it by the model's std.
        relevance = slopes * slopes.new_tensor(model.std).view(1, -1, 1, 1)
        scale = torch.ones_like(logits) if self.start == "one_hot" else logits
        if self.upright:
            divisor = divided_by(layers, self.composite, logits, batch.targets, self.biases)
            scale = scale.abs().where(divisor >= 0, -scale.abs())
        elif self.start == "abs_logit":
            scale = scale.abs()
        return relevance * scale.to(relevance).view(-1, 1, 1, 1)

    def cost(self) -> Cost:
        return Cost(1, 1)

"""Relevance propagation through transformers: AttnLRP and CP-LRP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from heatproof import engine
from heatproof.errors import NotApplicable
from heatproof.methods._support.channel_pooling import ChannelPooled, Pooling
from heatproof.methods._support.field_checks import check_not_negative
from heatproof.methods._support.gradient_rules import Rules, replacements
from heatproof.methods._support.layer_activations import frozen
from heatproof.methods._support.op_override import forward_only
from heatproof.methods._support.transformer_stage import transformer_stage
from heatproof.methods.attention_rollout import attends
from heatproof.methods.input_x_gradient import offset
from heatproof.registry import method
from heatproof.traits import Need
from heatproof.types import Batch, Cost, Model


@method("attn_lrp")
@dataclass(frozen=True)
class AttnLRP(ChannelPooled):
    """Relevance propagated back through attention, norms and activations of any transformer, windowed ones too.

    `composite="attn_lrp"` shares the relevance of attention between values and scores, half each; `"cp_lrp"` holds
    attention constant and gives all to the values, which the authors' package does for vision transformers. Norms are
    held constant and activations pass relevance on. `gamma_conv` and `gamma_linear` favour positive contributions of
    convolutions and linear layers; the paper searches them for each network, among 0.1, 0.25, 100 and 0, 0.01, 0.05,
    0.1, 1. With both at zero this is the epsilon rule with a vanishing epsilon.

    The map is relevance at the network's normalised input: a pixel of the mean colour gets none. Positions, class
    tokens and biases keep their shares, so maps do not add up to the logit unless there are none of them.

    Paper: Achtibat et al. 2024, "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for Transformers"
    """

    needs: ClassVar[tuple[Need, ...]] = ("attention", "gradients")

    composite: Literal["attn_lrp", "cp_lrp"] = "attn_lrp"
    gamma_conv: float = 0.25
    gamma_linear: float = 0.05
    pooling: Pooling = "sum"

    def __post_init__(self) -> None:
        check_not_negative("gamma_conv", self.gamma_conv)
        check_not_negative("gamma_linear", self.gamma_linear)

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        if not attends(model, batch.images):
            raise NotApplicable(
                f"attn_lrp is made for transformers, and model {model.name!r} has no attention over tokens: take lrp, "
                "or libra_grad"
            )
        rules = Rules(self.composite == "cp_lrp", True, self.gamma_linear, self.gamma_conv)
        with frozen(model.network), forward_only(model.network, replacements(rules)):
            slopes, _ = engine.gradient(model, batch.images, batch.targets, "logit")
        return slopes * offset(model, batch.images, "normalised")

    def cost(self) -> Cost:
        return Cost(1, 1)

    def stage(self) -> tuple[Model, Batch]:
        return transformer_stage()

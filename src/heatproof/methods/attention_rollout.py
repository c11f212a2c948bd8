"""Attention rollout, and where a vision transformer's attention and tokens are found.

Networks need follow no naming convention. Attention is intercepted as it is computed: PyTorch's fused kernel, a
softmax over tokens written out, or `nn.MultiheadAttention`; so networks of timm, torchvision, Hugging Face and the
user all work.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heatproof.engine.backends.eager import evaluating
from heatproof.methods._support.attention_flow import flows, through
from heatproof.methods._support.attention_layers import probabilities
from heatproof.methods._support.field_checks import check_share
from heatproof.methods._support.op_override import Intercept
from heatproof.methods._support.transformer_stage import transformer_stage
from heatproof.models._support.token_layouts import layout
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model

OnAttention = Callable[[Tensor], None]  # called with the attention (rows, tokens, tokens) of every layer, in order


def watching(on_attention: OnAttention) -> Intercept:
    """A context in which `on_attention` is called with every self-attention."""

    def fused(*rest: Any, **named: Any) -> Tensor:
        _report(on_attention, probabilities(*rest, **named))
        return F.scaled_dot_product_attention(*rest, **named)

    def written_out(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def softmax(scores: Tensor, *rest: Any, **named: Any) -> Tensor:
            result = plain(scores, *rest, **named)
            _report(on_attention, result)
            return result

        return softmax

    def multi_head(*rest: Any, **named: Any) -> tuple[Tensor, Tensor | None]:
        wanted, averaged = named.get("need_weights", True), named.get("average_attn_weights", True)
        named |= {"need_weights": True, "average_attn_weights": False}
        answer, weights = F.multi_head_attention_forward(*rest, **named)
        if weights is None:
            return answer, None
        _report(on_attention, weights)
        return answer, (weights.mean(1) if averaged and weights.ndim == 4 else weights) if wanted else None

    softmaxes: tuple[Any, ...] = (F.softmax, torch.softmax, Tensor.softmax)
    return Intercept(
        {F.scaled_dot_product_attention: fused, F.multi_head_attention_forward: multi_head}
        | {plain: written_out(plain) for plain in softmaxes}
    )


def _report(on_attention: OnAttention, attention: Tensor) -> None:
    if attention.ndim >= 3 and attention.shape[-1] == attention.shape[-2] > 1:
        on_attention(attention)


_tokens: weakref.WeakKeyDictionary[nn.Module, dict[tuple[int, ...], str | None]] = weakref.WeakKeyDictionary()


def token_layer(model: Model, images: Images) -> str | None:
    """The last layer norm before the last attention: after it, only the class token's row still matters.

    None for a network without attention over tokens.
    """
    known = _tokens.setdefault(model.network, {})
    shape, shown = tuple(images.shape[1:]), images.shape[2:]
    if shape in known:
        return known[shape]
    norms: list[tuple[str, int]] = []
    last: list[str] = []

    def note(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor) and (output.ndim == 3 or layout(output.shape, shown) == "channels_last"):
                norms.append((name, output.shape[1:-1].numel()))

        return hook

    def on_attention(attention: Tensor) -> None:
        found = [name for name, tokens in norms if tokens == attention.shape[-1]]
        last[:] = [found[-1] if found else ""]

    handles = [
        module.register_forward_hook(note(name))
        for name, module in model.network.named_modules()
        if isinstance(module, nn.LayerNorm)
    ]
    try:
        with torch.no_grad(), evaluating(model.network), watching(on_attention):
            model(images[:1].to(model.device))
    finally:
        for handle in handles:
            handle.remove()
    known[shape] = last[0] if last else None
    return known[shape]


def attends(model: Model, images: Images) -> bool:
    """Whether the network uses attention over tokens."""
    return token_layer(model, images) is not None


Heads = Literal["mean", "max", "min"]


def fuse(attention: Tensor, heads: Heads) -> Tensor:
    """(B, heads, T, T) to (B, T, T)."""
    if heads == "mean":
        return attention.mean(1)
    return attention.amax(1) if heads == "max" else attention.amin(1)


@method
@dataclass(frozen=True)
class AttentionRollout:
    """What the head of a transformer reads, followed back through the attention of all layers.

    The map is the same for every class: it shows what is attended to, not for which class. It starts from what the head
    reads: the class token, both tokens of a distilled network, the tokens that are averaged, or an attention pooling.
    `residual` is the share that a token keeps of itself in each layer.

    Paper: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers"
    """

    signed: ClassVar[bool] = False
    heads: Heads = "mean"
    residual: float = 0.5

    def __post_init__(self) -> None:
        check_share("residual", self.residual)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        parts = []
        for images, _, flow in flows(model, batch, "logit", "attention_rollout"):
            steps = [(1 - self.residual) * fuse(layer, self.heads) for layer in flow.layers]
            weights = through(flow, steps, even=True, own=self.residual)
            parts.append(flow.laid_out(weights, images).to(batch.images.device))
        return torch.cat(parts) if parts else batch.images.new_zeros(0, *batch.images.shape[2:])

    def cost(self) -> Cost:
        return Cost(1, 1)

    def stage(self) -> tuple[Model, Batch]:
        return transformer_stage()

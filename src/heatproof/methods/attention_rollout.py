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

from heatproof import engine
from heatproof.engine.backends.eager import evaluating
from heatproof.errors import NotApplicable
from heatproof.methods._support.field_checks import check_share
from heatproof.methods._support.op_override import Intercept
from heatproof.methods._support.transformer_stage import transformer_stage
from heatproof.methods._support.upsample import upsample
from heatproof.models._support.token_layouts import layout, patches
from heatproof.registry import method
from heatproof.types import Batch, Cost, Images, Maps, Model

OnAttention = Callable[[Tensor], None]  # called with the attention (rows, tokens, tokens) of every layer, in order


def watching(on_attention: OnAttention) -> Intercept:
    """A context in which `on_attention` is called with every self-attention."""

    def fused(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Tensor:
        options = dict(zip(("attn_mask", "dropout_p", "is_causal"), rest, strict=False)) | named
        if not options.get("is_causal") and not options.get("enable_gqa"):  # which no image encoder is known to use
            scores = query @ key.transpose(-2, -1) * (options.get("scale") or query.shape[-1] ** -0.5)
            _report(on_attention, _masked(scores, options.get("attn_mask")).softmax(-1))
        return F.scaled_dot_product_attention(query, key, value, *rest, **named)

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


def _masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores under a mask: a float mask is added, a bool mask lets only its True places attend."""
    if mask is None:
        return scores
    return scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask


def counting(places: set[int]) -> Intercept:
    """A context that collects the numbers of places, counted over the whole batch, at which layers work.

    Attention within windows does not change that number: each row holds fewer tokens, and there are more rows.
    """

    def count(values: Tensor, channels: int = -1) -> None:
        places.add(values.numel() // max(values.shape[channels], 1))

    def counted(plain: Callable[..., Tensor], channels: int = -1) -> Callable[..., Tensor]:
        def layer(*rest: Any, **named: Any) -> Tensor:
            result = plain(*rest, **named)
            count(result, channels)
            return result

        return layer

    def multi_head(query: Tensor, *rest: Any, **named: Any) -> Any:
        count(query)  # before its attention is reported, which happens while it runs
        return F.multi_head_attention_forward(query, *rest, **named)

    def product(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
        layer = counted(plain)

        def multiplied(*rest: Any, **named: Any) -> Tensor:
            # A matrix without a batch is a layer's weight; with one, it may be attention itself.
            weight = named["other"] if "other" in named else rest[-1]
            return (layer if weight.ndim == 2 else plain)(*rest, **named)

        return multiplied

    last: tuple[Any, ...] = (F.linear, F.layer_norm)
    products: tuple[Any, ...] = (torch.matmul, Tensor.matmul, Tensor.__matmul__)
    return Intercept(
        {F.multi_head_attention_forward: multi_head, F.conv2d: counted(F.conv2d, 1)}
        | {plain: counted(plain) for plain in last}
        | {plain: product(plain) for plain in products}
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


def rollout(layers: list[Tensor], residual: float) -> Tensor:
    """Attention multiplied up through the layers, each mixed with the identity for its skip: (B, T, T)."""
    identity = torch.eye(layers[0].shape[-1], device=layers[0].device, dtype=layers[0].dtype)
    flow = identity.expand_as(layers[0])
    for layer in layers:
        mixed = (1 - residual) * layer + residual * identity
        flow = mixed / mixed.sum(-1, keepdim=True) @ flow
    return flow


@method
@dataclass(frozen=True)
class AttentionRollout:
    """Where a transformer's class token attends, followed through all layers.

    The map is the same for every class: it shows what is attended to, not for which class. In networks without a class
    token it is the mean over all tokens.

    Paper: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers"
    """

    signed: ClassVar[bool] = False
    heads: Heads = "mean"
    residual: float = 0.5

    def __post_init__(self) -> None:
        check_share("residual", self.residual)

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        if not attends(model, batch.images):
            raise NotApplicable(
                f"attention_rollout needs a transformer, and model {model.name!r} has no attention over tokens: take "
                "grad_cam or integrated_gradients"
            )
        size = engine.batch_size(model, batch.images, "forward")
        parts = [self._maps(model, part, size) for part in batch.images.split(size)]
        return torch.cat(parts)

    def _maps(self, model: Model, images: Images, size: int) -> Maps:
        layers: list[Tensor] = []
        places: set[int] = set()  # since the previous attention
        rows = torch.arange(size, device=images.device).clamp(max=len(images) - 1)

        def on_attention(attention: Tensor) -> None:
            tokens = attention.shape[-1]
            _, height, width = patches(tokens, images.shape[2:])
            whole = {size * tokens} if layers else {size * tokens, size * height * width}  # the patches come first
            if len(attention.flatten(0, -3)) % size or not whole <= places:
                raise NotApplicable(
                    "attention_rollout needs attention over all tokens, and this network's is windowed: take "
                    "integrated_gradients"
                )
            places.clear()
            layers.append(fuse(attention.reshape(size, -1, *attention.shape[-2:]), self.heads))

        with torch.no_grad(), evaluating(model.network), watching(on_attention), counting(places):
            model(images[rows].to(model.device))
        tokens = {layer.shape[-1] for layer in layers}
        if len(tokens) != 1:
            raise NotApplicable(
                f"attention_rollout needs the same tokens in every layer, got {sorted(tokens)}: take "
                "integrated_gradients"
            )
        first, height, width = patches(tokens.pop(), images.shape[2:])
        flow = rollout(layers, self.residual)[: len(images)]
        looked = flow[:, 0, first:] if first else flow.mean(1)
        return upsample(looked.unflatten(1, (height, width)).to(images), images)

    def cost(self) -> Cost:
        return Cost(1, 0)

    def stage(self) -> tuple[Model, Batch]:
        return transformer_stage()

"""Attention as it is computed, inside the graph: the probabilities of every layer, of which gradients can be taken.

What is recorded is the left operand of the product with the values, not the result of a softmax: attention that is
mixed between heads, cast or dropped afterwards is recorded as it is used. Fused attention and `nn.MultiheadAttention`
are written out, since their probabilities are otherwise not part of the graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from heatproof.errors import NotApplicable
from heatproof.models._support.token_layouts import LEADING, Sides, patches

SOFTMAXES: tuple[Any, ...] = (F.softmax, torch.softmax, Tensor.softmax)
PRODUCTS: tuple[Any, ...] = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)
REMEMBERED = 8  # results after an attention: some may belong to a branch that does not lead to the answer
_LAST: tuple[Any, ...] = (F.linear, F.layer_norm)  # their results hold the channels last


def written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`F.scaled_dot_product_attention` by products and a softmax; nothing is dropped, as in evaluation."""
    found = probabilities(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    shared = found.shape[-3] // value.shape[-3] if enable_gqa else 1
    return torch.matmul(found, value.repeat_interleave(shared, -3) if shared > 1 else value)


def probabilities(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """How much each query attends to each key in `F.scaled_dot_product_attention` of these arguments."""
    if enable_gqa:  # several queries share a key
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = torch.matmul(query, key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return torch.softmax(scores, -1)


def multi_head(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """`F.multi_head_attention_forward` by linear layers, products and a softmax; (L, N, E) in and out."""
    if static_k is not None or static_v is not None or query.ndim != 3:
        raise NotApplicable("this network's nn.MultiheadAttention is used in a form that cannot be followed")
    rows, width = query.shape[1], query.shape[2]
    weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    if not use_separate_proj_weight:
        assert in_proj_weight is not None
        weights = list(in_proj_weight.chunk(3))
    biases = [None] * 3 if in_proj_bias is None else list(in_proj_bias.chunk(3))
    sides = zip((query, key, value), weights, biases, strict=True)
    q, k, v = (F.linear(side, weight, bias) for side, weight, bias in sides)  # type: ignore[arg-type]
    if bias_k is not None and bias_v is not None:
        k, v = torch.cat([k, bias_k.expand(1, rows, -1)]), torch.cat([v, bias_v.expand(1, rows, -1)])
    if add_zero_attn:
        nothing = k.new_zeros(1, rows, width)
        k, v = torch.cat([k, nothing]), torch.cat([v, nothing])
    # (L, N, E) to (N, heads, L, E / heads)
    q, k, v = (part.reshape(len(part), rows, num_heads, -1).permute(1, 2, 0, 3) for part in (q, k, v))
    mask = _as_added(attn_mask, q, (rows, num_heads), k.shape[2])
    if key_padding_mask is not None:
        hidden = _as_added(key_padding_mask[:, None, None], q, (rows, 1), k.shape[2])
        mask = hidden if mask is None else mask + hidden  # type: ignore[operator]
    answer = written_out(q, k, v, mask, is_causal=is_causal and mask is None)
    answer = answer.permute(2, 0, 1, 3).reshape(len(query), rows, width)
    if need_weights:  # for the few networks that use them; they do not lead to the answer
        with torch.no_grad():
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            shown = (scores if mask is None else scores + mask).softmax(-1)
        return F.linear(answer, out_proj_weight, out_proj_bias), shown.mean(1) if average_attn_weights else shown
    return F.linear(answer, out_proj_weight, out_proj_bias), None


def _as_added(mask: Tensor | None, like: Tensor, rows: tuple[int, int], keys: int) -> Tensor | None:
    """A mask of `nn.MultiheadAttention`, where True hides, as numbers to be added: (N or 1, heads or 1, L, S)."""
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))
    if mask.ndim == 3:
        mask = mask.view(*rows, *mask.shape[1:])
    return F.pad(mask, (0, keys - mask.shape[-1]))


class Recorder(TorchFunctionMode):  # type: ignore[misc]
    """A context that records the attention of every layer, for a batch of `rows` pictures of these sides.

    `after` holds the last results after each attention that still have all its tokens: what a head may read.
    """

    def __init__(self, rows: int, sides: Sides) -> None:
        super().__init__()
        self.rows, self.sides = rows, sides
        self.layers: list[Tensor] = []  # (…, queries, keys)
        self.whole: list[bool] = []  # whether the layer's keys are all of the picture's tokens
        self.after: list[deque[Tensor]] = []
        self.grid: tuple[int, int] | None = None  # of the last convolution before the first attention
        self._awaited: dict[int, Tensor] = {}  # by id; kept alive, so that no id is given twice
        self._places: set[int] = set()  # at which layers worked since the last attention

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func is F.scaled_dot_product_attention:
            with self:
                return written_out(*args, **named)
        if func is F.multi_head_attention_forward:
            with self:
                return multi_head(*args, **named)
        if func in PRODUCTS and id(args[0]) in self._awaited:
            return self._noted(func(self._recorded(args[0]), *args[1:], **named))
        if func is torch.einsum:
            operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
            if operands and id(operands[0]) in self._awaited:
                return self._noted(func(args[0], self._recorded(operands[0]), *operands[1:]))
        result = func(*args, **named)
        if not isinstance(result, Tensor):
            return result
        if func in SOFTMAXES:
            if result.ndim >= 3:
                self._awaited = {id(result): result}
            return result
        first: Any = args[0] if args else None
        if id(first) in self._awaited and result.numel() == first.numel():
            self._awaited[id(result)] = result
        self._count(func, result, args, named)
        return self._noted(result)

    def _recorded(self, attention: Tensor) -> Tensor:
        if torch.is_grad_enabled() and not attention.requires_grad:
            attention = attention.detach().requires_grad_()
        self.layers.append(attention)
        self.whole.append(self.rows * attention.shape[-1] in self._places)
        self.after.append(deque(maxlen=REMEMBERED))
        self._awaited, self._places = {}, set()
        return attention

    def _count(self, func: Any, result: Tensor, args: Any, named: Any) -> None:
        weight: Any = args[1] if args[1:] else named.get("other", named.get("mat2"))
        if func in _LAST or (func in PRODUCTS and weight.ndim == 2):
            self._places.add(result.numel() // max(result.shape[-1], 1))
        elif func is F.conv2d:
            self._places.add(result.numel() // max(result.shape[1], 1))
            if not self.layers:
                self.grid = (result.shape[-2], result.shape[-1])

    def _noted(self, result: Any) -> Any:
        if self.layers and isinstance(result, Tensor) and 3 <= result.ndim <= 4:
            count = self.layers[-1].shape[-2]
            if result.shape[0] == self.rows and result.shape[1:-1].numel() == count:
                self.after[-1].append(result)
        return result

    def patches(self, tokens: int) -> tuple[int, int, int]:
        """The number of tokens before the patches, and the patches' rows and columns."""
        if self.grid is not None and 0 <= tokens - self.grid[0] * self.grid[1] <= LEADING:
            return tokens - self.grid[0] * self.grid[1], *self.grid
        return patches(tokens, self.sides)


def by_head(values: Tensor, rows: int) -> Tensor:
    """(…, queries, keys) as (rows, heads, queries, keys)."""
    return values.reshape(rows, -1, *values.shape[-2:])


def checked(layers: Sequence[Tensor], whole: Sequence[bool], who: str) -> int:
    """The number of tokens that all layers share, or `NotApplicable` for windows and tokens that are merged.

    A last layer may have one query: a pooling, or a class token that joins after the other layers.
    """
    if not layers:
        raise NotApplicable(
            f"{who} needs a transformer, and this network has no attention over tokens: take grad_cam or "
            "integrated_gradients"
        )
    square = [layer.shape[-1] for layer in layers if layer.shape[-1] == layer.shape[-2]]
    if not square or not all(whole):
        raise NotApplicable(
            f"{who} needs attention over all tokens, and this network's is windowed, or not between places: take "
            "attn_lrp or libra_grad"
        )
    tokens = square[0]
    later = [layer.shape[-2:] for layer in layers[len(square) :]]
    shapes = [layer.shape[-2:] for layer in layers[: len(square)]]
    if any(tuple(shape) != (tokens, tokens) for shape in shapes) or not _pools(later, tokens):
        raise NotApplicable(
            f"{who} needs the same tokens in every layer, and this network merges or shortens them "
            f"({', '.join(f'{layer.shape[-2]}×{layer.shape[-1]}' for layer in layers)}): take attn_lrp or "
            "libra_grad"
        )
    return tokens


def _pools(shapes: Sequence[Sequence[int]], tokens: int) -> bool:
    """Whether these layers are one pooling of the tokens, or only ask on behalf of a token added before them."""
    if len(shapes) == 1 and shapes[0][1] == tokens:
        return True
    return all(tuple(shape) == (1, tokens + 1) for shape in shapes)

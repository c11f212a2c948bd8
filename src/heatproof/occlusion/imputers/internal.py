"""The internal imputer: hidden patches never enter a vision transformer, since their tokens are dropped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heatproof.errors import NotApplicable
from heatproof.registry import imputer
from heatproof.types import Images, Keep, Logits, Model

_MICRO = 8  # rows in every pass, so that a row's answer does not depend on how many others drop as many tokens
_FIRST_BLOCK = re.compile(r"(^|\.)((blocks|layers?|h)\.0|encoder_layer_0)$")


def first_block(model: Model) -> nn.Module:
    """The first transformer layer, whose input is the tokens with their positions added."""
    module: nn.Module
    for name, module in model.network.named_modules():
        if _FIRST_BLOCK.search(name) and any("att" in part for part, _ in module.named_modules()):
            return module
    raise NotApplicable(f"imputer internal drops the tokens of a vision transformer, and {model.name!r} is none")


def patch_size(model: Model) -> int:
    """The side of a patch: the kernel of the first convolution that does not overlap itself."""
    for module in model.network.modules():
        if isinstance(module, nn.Conv2d) and module.kernel_size == module.stride and module.kernel_size[0] > 1:
            return int(module.kernel_size[0])
    raise NotApplicable(f"imputer internal needs square patches, and {model.name!r} does not embed any")


def kept_patches(keep: Keep, size: int) -> Tensor:
    """(B, patches) bool: the visible patches; each must be visible wholly or not at all."""
    count, height, width = keep.shape
    if height % size or width % size:
        raise NotApplicable(f"imputer internal needs images that {size}×{size} patches fill, got {height}×{width}")
    cells = keep.view(count, height // size, size, width // size, size).transpose(2, 3).flatten(3).flatten(1, 2)
    if not torch.equal(cells.any(2), cells.all(2)):
        raise NotApplicable(
            f"imputer internal hides whole patches, and these segments cut through them: "
            f"use the segmenter patches(size={size})"
        )
    return cells.any(2)


def logits_of_kept(model: Model, images: Images, kept: Tensor) -> Logits:
    """The logits of images that keep equally many patches; other tokens (the class token) stay."""

    def drop(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        tokens = arguments[0]
        if tokens.ndim != 3 or tokens.shape[1] < kept.shape[1]:
            raise NotApplicable(f"imputer internal cannot tell patches from tokens in {model.name!r}")
        extra = tokens.shape[1] - kept.shape[1]
        stay = torch.cat([kept.new_ones(len(kept), extra), kept], 1)
        return (tokens[stay].view(len(tokens), -1, tokens.shape[2]), *arguments[1:])

    hook = first_block(model).register_forward_pre_hook(drop)
    try:
        with torch.no_grad():
            return finite(model(images), model)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, IndexError, AssertionError) as error:
        raise NotApplicable(
            f"imputer internal drops tokens, and model {model.name!r} cannot do with fewer ({_first_line(error)}): "
            "its network counts on all of them, use an imputer that paints"
        ) from error
    finally:
        hook.remove()


def finite(logits: Logits, model: Model) -> Logits:
    """The logits, or `NotApplicable`: a network that averages its patches has no answer if none is left."""
    if not bool(logits.isfinite().all()):
        raise NotApplicable(
            f"imputer internal drops tokens, and model {model.name!r} has no finite answer without them (does it "
            "average its patches instead of reading a class token?): use an imputer that paints"
        )
    return logits


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


@imputer
@dataclass(frozen=True)
class Internal:
    """Vision transformers only: tokens of hidden patches are dropped after the position embedding.

    There is no occluded picture; the game calls `answer` instead. A network may implement
    `forward_kept(normalised images, kept patches) -> logits` itself.
    """

    in_words: ClassVar[str] = "nothing: their tokens are dropped"

    def answer(self, model: Model, images: Images, keep: Keep, /) -> Logits:
        kept = kept_patches(keep.to(model.device), patch_size(model))
        images = images.to(model.device)
        counts = kept.sum(1)
        logits: Tensor | None = None
        for count in sorted(set(counts.tolist())):  # all rows of a pass must have the same number of tokens
            for rows in (counts == count).nonzero().flatten().split(_MICRO):
                padded = torch.cat([rows, rows[-1:].expand(_MICRO - len(rows))])
                found = self._pass(model, images[padded], kept[padded])[: len(rows)]
                logits = found.new_empty(len(images), found.shape[1]) if logits is None else logits
                logits[rows] = found
        return images.new_empty(0, 1) if logits is None else logits

    def _pass(self, model: Model, images: Images, kept: Tensor) -> Logits:
        own = getattr(model.network, "forward_kept", None)
        if own is None:
            return logits_of_kept(model, images, kept)
        with torch.no_grad():
            found = model.logits(own(model.normalised(images).to(model.dtype), kept), len(images))
        return finite(found, model)

    def __call__(self, images: Images, keep: Keep, /, seeds: Sequence[int] | None = None) -> Images:
        raise NotApplicable("imputer internal drops tokens inside a vision transformer: it makes no picture to show")

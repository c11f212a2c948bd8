"""A flip-book: what the model was shown while the segments of a picture went, small enough to be kept beside a map."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from heatproof.errors import NotApplicable
from heatproof.occlusion.game import Game
from heatproof.occlusion.occluded_images import shown
from heatproof.traits import needs_of
from heatproof.types import Images

STEPS = 255  # at most, so that a step fits a byte
FRAMES = 7  # of pictures whose filling depends on what else is hidden
PAINTED = 4  # pictures that get frames; the others have their order alone
SIDE = 112  # pixels on the longer side of a frame
ALIKE = 1.5 / 255  # a difference that eight bits do not show


class FlipBook(NamedTuple):
    """The step at which each pixel goes, and what stands in its place.

    Where the filling of a pixel does not depend on which others are hidden, `hidden` is the wholly hidden picture, and
    every step follows from it. Otherwise `frames` holds some steps as small pictures, those of `at`.
    """

    gone: Tensor  # (B, H, W) uint8: 0 for pixels that stay to the end
    hidden: Images | None  # (B, C, H, W)
    frames: Images | None  # (B', F, C, h, w) of the first B' pictures
    at: Tensor | None  # (B', F) int64


def flip_book(game: Game, ranks: Tensor, removed: Tensor) -> FlipBook:
    """The book of the pictures of a game whose segments go in this order, so many of them at each step.

    One draw stands for all where an imputer draws several times.
    """
    if removed.shape[1] > STEPS:
        raise NotApplicable(f"a flip-book has at most {STEPS} steps, got {removed.shape[1]}")
    if any("prior" in needs_of(part) for part in (game.occlusion.imputer,)):
        raise NotApplicable("a diffusion prior takes too long for pictures that are only looked at")
    steps = (ranks[:, :, None] >= removed[:, None, :]).sum(2)  # (B, n): the first step at which a segment is gone
    labels = game.segments.cpu()
    gone = steps.gather(1, labels.flatten(1)).view(labels.shape)
    gone = torch.where(gone >= removed.shape[1], 0, gone)
    last = removed.shape[1] - 1
    middle = _pictures(game, gone, torch.tensor([[last // 3, last // 2]]).repeat(len(gone), 1))
    nothing = torch.zeros_like(gone, dtype=torch.bool)[:, None]
    hidden = shown(game.batch, nothing.to(game.batch.images.device), game.occlusion)[:, 0].cpu()
    kept = game.batch.images.cpu()
    for number, step in enumerate((last // 3, last // 2)):
        built = torch.where(_stays(gone, step)[:, None], kept, hidden)
        if float((built - middle[:, number]).abs().max() if len(built) else 0.0) > ALIKE:
            return _with_frames(game, gone, last)
    return FlipBook(gone.byte(), hidden, None, None)


def _with_frames(game: Game, gone: Tensor, last: int) -> FlipBook:
    few = min(PAINTED, len(gone))
    at = torch.linspace(0, last, FRAMES).round().long().repeat(few, 1)
    pictures = _pictures(game, gone, at)
    share = min(1.0, SIDE / max(pictures.shape[-2:]))
    size = [max(1, round(side * share)) for side in pictures.shape[-2:]]
    small = F.interpolate(pictures.flatten(0, 1), size=size, mode="bilinear", antialias=True, align_corners=False)
    return FlipBook(gone.byte(), None, small.unflatten(0, (few, FRAMES)).clamp(0, 1), at)


def _pictures(game: Game, gone: Tensor, at: Tensor) -> Images:
    """What the model sees at these steps: (B', K) -> (B', K, C, H, W), of the first pictures."""
    keep = torch.stack([_stays(gone[: len(at)], at[:, number]) for number in range(at.shape[1])], 1)
    batch = game.batch.select(range(len(at)))
    return shown(batch, keep.to(batch.images.device), game.occlusion).cpu()


def _stays(gone: Tensor, step: Tensor | int) -> Tensor:
    """Which pixels are still there at a step of each picture."""
    limit = step.view(-1, 1, 1) if isinstance(step, Tensor) else step
    return (gone == 0) | (gone > limit)

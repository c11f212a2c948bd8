"""A patch that changes nothing: optimised so that the model's output is the same as without it.

The default solver takes Polyak steps on the distance between the logits with and without the patch: the step length
follows from that distance, so there is nothing to tune. `paper` is the published rule (fixed step, a term that
rewards large patches, a penalty for leaving the range). A patch counts only if it still changes nothing after
rounding to 8 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

from heatproof import engine
from heatproof.engine.backends.eager import input_gradient
from heatproof.errors import BadInput, BadShape
from heatproof.registry import part
from heatproof.types import Images, Keep, Model

Solver: TypeAlias = Literal["polyak", "paper"]

ROWS = 8  # pictures solved together; a fixed number, filled up, so that a patch does not depend on its batch
STEPS: dict[Solver, int] = {"polyak": 150, "paper": 300}
STEP = 500.0  # the paper's, per gradient in pixel units of 0 … 255


class Patched(NamedTuple):
    """Pictures with their patches, 8-bit values in [0, 1], and whether these change nothing."""

    images: Images
    change: Tensor  # (B,) ‖f(patched) - f(bare)‖ / ‖f(bare)‖, after rounding
    verified: Tensor  # (B,) bool


@part
@dataclass(frozen=True)
class PatchSolver:
    """How a patch is found, and when it counts as insignificant."""

    solver: Solver = "polyak"
    steps: int | None = None  # the solver's default: 150, and 300 for the paper's
    relaxation: float = 0.5  # of the Polyak step
    goal: float = 0.002  # relative change of the logits at which the solver stops
    tolerance: float = 0.02  # relative change of the logits up to which a rounded patch changes nothing
    reward: float = 0.01  # η₁ of the paper's solver: for the size of the patch
    penalty: float = 0.01  # η₂: for leaving the range of pixels

    def __post_init__(self) -> None:
        if self.solver not in get_args(Solver):
            raise BadInput(f"solver must be one of {', '.join(get_args(Solver))}, got {self.solver!r}")
        if self.rounds < 1:
            raise BadInput(f"steps must be at least 1, got {self.steps}")
        if min(self.reward, self.penalty) < 0:
            raise BadInput(f"reward and penalty must not be negative, got {self.reward} and {self.penalty}")

    @property
    def rounds(self) -> int:
        return STEPS[self.solver] if self.steps is None else self.steps

    def __call__(self, model: Model, bare: Images, start: Images, region: Keep) -> Patched:
        """Patches inside `region` of the `bare` pictures, from what `start` shows there."""
        if start.shape != bare.shape or region.shape != (len(bare), *bare.shape[2:]) or region.dtype != torch.bool:
            raise BadShape(
                f"a patch needs start pictures of shape {tuple(bare.shape)} and bool regions of shape "
                f"{(len(bare), *bare.shape[2:])}, got {tuple(start.shape)} and {tuple(region.shape)} {region.dtype}"
            )
        parts = zip(bare.split(ROWS), start.split(ROWS), region.split(ROWS), strict=True)
        solved = [self._solve(model, *part) for part in parts if len(part[0])]
        images = torch.cat(solved) if solved else bare
        return self.verify(model, bare, torch.where(region[:, None], (images * 255).round() / 255, bare))

    def verify(self, model: Model, bare: Images, images: Images) -> Patched:
        """Checks whether patched pictures, of any origin, get the same logits and class as the bare ones."""
        if images.shape != bare.shape:
            raise BadShape(
                f"patched pictures must have the bare ones' shape {tuple(bare.shape)}, got {tuple(images.shape)}"
            )
        before, after = engine.forward(model, bare), engine.forward(model, images)
        change = ((after - before).norm(dim=1) / before.norm(dim=1)).to(bare.device)
        same = (before.argmax(1) == after.argmax(1)).to(bare.device)
        return Patched(images, change, (change <= self.tolerance) & same)

    def _solve(self, model: Model, bare: Images, start: Images, region: Keep) -> Images:
        count = len(bare)
        rows = torch.arange(ROWS, device=bare.device).clamp(max=count - 1)
        bare, start, inside = bare[rows], start[rows], region[rows][:, None]
        with torch.no_grad():
            wanted = model(bare.to(model.device))
        solve = self._polyak if self.solver == "polyak" else self._paper
        return solve(model, bare, torch.where(inside, start, bare), inside, wanted)[:count]

    def _polyak(self, model: Model, bare: Images, images: Images, inside: Tensor, wanted: Tensor) -> Images:
        """images ← images - a · r / ‖∇r‖² · ∇r within region and range; the best so far is kept."""
        best, least = images.clone(), images.new_full((len(images),), torch.inf)
        goal = self.goal * wanted.norm(dim=1).to(images.device)
        for _ in range(self.rounds):
            slopes, distance = _distance(model, images, wanted)
            better = distance < least
            best[better], least[better] = images[better], distance[better]
            if bool((least <= goal).all()):
                break
            slopes = slopes * inside
            size = slopes.square().flatten(1).sum(1).clamp(min=1e-20)
            step = torch.where(least <= goal, 0.0, self.relaxation * distance / size)
            images = (images - step[:, None, None, None] * slopes).clamp(0, 1)
        return best

    def _paper(self, model: Model, bare: Images, images: Images, inside: Tensor, wanted: Tensor) -> Images:
        """Plain gradient descent on ‖Δf‖ - η₁‖δ‖ + η₂·(what leaves the range), in pixel units; clipped at the end."""
        low, high = 0.0, 255.0
        patch = (images - bare) * 255
        for _ in range(self.rounds):
            shown = bare * 255 + patch
            slopes, _ = _distance(model, shown / 255, wanted)
            size = patch.flatten(1).norm(dim=1).clamp(min=1e-12)[:, None, None, None]
            beyond = (shown > high).float() - (shown < low).float()
            patch = (patch - STEP * (slopes / 255 - self.reward * patch / size + self.penalty * beyond)) * inside
        return (bare + patch / 255).clamp(0, 1)


def _distance(model: Model, images: Images, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """∇‖f(x) - wanted‖ and the norm itself, per row."""
    slopes, values = input_gradient(model, images, lambda logits: (logits - wanted).norm(dim=1))
    return slopes.to(images.device, torch.float32), values.to(images.device, torch.float32)

"""Classifier guidance against a class: it keeps the prior from painting the class back in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from heatproof import engine
from heatproof.occlusion.diffusion.other_size import Frame
from heatproof.registry import part
from heatproof.types import Model


@part
@dataclass(frozen=True)
class Guidance:
    """The strength, window and place of guidance against a class.

    `late` guides near the end only, where a classifier trained on clean pictures is meaningful; `wide` guides all the
    way but for the beginning.
    """

    scale: float = 4.0
    window: Literal["late", "wide"] = "late"
    share: float = 0.05  # of the noise schedule: the end of it (late), or all but the beginning (wide)
    at: Literal["noisy", "guess"] = "noisy"  # where the classifier is evaluated: the state itself, or its clean guess

    def switch(self, times: list[int], total: int) -> int:
        """The index in `times` (descending) from which on guidance acts; the last step is always guided."""
        limit = (self.share if self.window == "late" else 1 - self.share) * total
        later = [place for place, t in enumerate(times) if t < limit]
        return later[0] if later else len(times) - 1


@dataclass(frozen=True, eq=False)
class AntiClass:
    """Guidance against the targets of a model, one per row."""

    guidance: Guidance
    model: Model
    targets: Tensor
    frame: Frame | None = None  # where the prior draws at another size than the model looks at

    def gradient(self, x: Tensor, clean: Tensor, share: float, rows: Tensor) -> Tensor:
        """The scale times d log p(target) / dx, for x in [-1, 1]."""
        at = ((x if self.guidance.at == "noisy" else clean) + 1) / 2
        shown = at.clamp(0, 1) if self.frame is None else self.frame.whole(at.clamp(0, 1), rows)
        slopes, _ = engine.gradient(self.model, shown, self.targets[rows], readout="log_probability")
        if self.frame is not None:
            slopes = self.frame.back(slopes, at, rows)
        through = 0.5 if self.guidance.at == "noisy" else 0.5 / share**0.5  # the prior itself is not differentiated
        return self.guidance.scale * through * slopes.to(x)

"""Denoisers: the one interface to diffusion priors of any make, which predicts the noise in a picture."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Any, Literal, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.errors import BadInput, BadModel
from heatproof.occlusion.diffusion.schedule import alphas_cumprod
from heatproof.types import Images

Predicts = Literal["noise", "velocity", "picture"]

_ROWS = 64  # at most in one micro-batch
_CPU_PIXELS = 2**16
_GPU_PIXELS = 2**20


@runtime_checkable
class Denoiser(Protocol):
    """`(x, t) -> eps`: the noise in noisy pictures x (clean ones lie in [-1, 1]) at step t of the prior's schedule."""

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str:
        """A hash of the weights: what is drawn depends on them."""
        ...

    @property
    def alphas_cumprod(self) -> Tensor:
        """(T,): the share of the picture's power that is left at each step."""
        ...

    @property
    def channels(self) -> int: ...

    @property
    def size(self) -> int | None:
        """The side of the pictures it was trained on; None if it takes any."""
        ...

    @property
    def multiple(self) -> int:
        """The number by which sides must be divisible, because the network halves them."""
        ...

    def __call__(self, x: Tensor, t: int, /) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Prior:
    """Any network `(x, t) -> C or 2C channels` as a denoiser; learned variances, if any, are ignored."""

    name: str
    network: nn.Module
    alphas_cumprod: Tensor = field(default_factory=alphas_cumprod)
    channels: int = 3
    size: int | None = None
    multiple: int = 1
    predicts: Predicts = "noise"

    def __post_init__(self) -> None:
        self.network.eval().requires_grad_(False)

    @cached_property
    def revision(self) -> str:
        digest = hashlib.sha256(f"{self.predicts} {self.alphas_cumprod.tolist()}".encode())
        for name, value in sorted(self.network.state_dict().items()):
            digest.update(
                name.encode() + value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            )
        return digest.hexdigest()[:16]

    def recipe(self) -> dict[str, str]:
        return {"prior": self.name, "revision": self.revision}

    @torch.no_grad()
    def __call__(self, x: Tensor, t: int, /) -> Tensor:
        known = next(self.network.parameters(), x)
        if known.device != x.device:
            self.network.to(x.device)
        # Micro-batches of one size, the last one padded: a row's answer then has the same bits whatever rows come
        # with it.
        size = max(1, min(_ROWS, (_CPU_PIXELS if x.device.type == "cpu" else _GPU_PIXELS) // x[0, 0].numel()))
        some = x.to(known.dtype).split(size)

        def answer(rows: Tensor) -> Tensor:
            with torch.no_grad():  # grad mode belongs to the thread
                filled = torch.cat([rows, rows[-1:].expand(size - len(rows), -1, -1, -1)])
                return self._answer(filled, t)[: len(rows)]

        parts = engine.side_by_side(answer, some) if x.device.type == "cpu" else [answer(rows) for rows in some]
        predicted = torch.cat(parts).to(x.dtype) if len(x) else torch.zeros_like(x)
        share = float(self.alphas_cumprod[t])
        if self.predicts == "velocity":
            return sqrt(share) * predicted + sqrt(1 - share) * x
        if self.predicts == "picture":
            return (x - sqrt(share) * predicted) / sqrt(1 - share)
        return predicted

    def _answer(self, x: Tensor, t: int) -> Tensor:
        answer: Any = self.network(x, torch.full((len(x),), t, device=x.device, dtype=torch.int64))
        answer = getattr(answer, "sample", answer)
        twice = (2 * x.shape[1], *x.shape[2:])
        if not isinstance(answer, Tensor) or answer.shape[1:] not in (x.shape[1:], twice):
            got = tuple(getattr(answer, "shape", ())) or type(answer).__name__
            raise BadModel(
                f"prior {self.name!r} must answer {tuple(x.shape)} with as many channels or twice as many, got {got}"
            )
        return answer[:, : x.shape[1]]


_fine: WeakKeyDictionary[Any, set[tuple[int, ...]]] = WeakKeyDictionary()


def drawn_at(denoiser: Denoiser, images: Images) -> tuple[int, int]:
    """The (height, width) at which a prior draws pictures: their own, or the only one that it knows."""
    height, width = images.shape[2:]
    return (height, width) if denoiser.size is None else (denoiser.size, denoiser.size)


def check(denoiser: Denoiser, images: Images) -> None:
    """Raises before any work is done if this prior cannot paint these pictures."""
    channels, (height, width) = images.shape[1], drawn_at(denoiser, images)
    known = _fine.setdefault(denoiser, set())
    if (channels, height, width) in known:
        return
    if channels != denoiser.channels:
        raise BadInput(
            f"prior {denoiser.name!r} paints pictures with {denoiser.channels} channels, these have "
            f"{channels}: choose a prior trained on such pictures"
        )
    if height % denoiser.multiple or width % denoiser.multiple:
        raise BadInput(
            f"prior {denoiser.name!r} halves its pictures and needs sides divisible by {denoiser.multiple}, "
            f"got {height}×{width}"
        )
    steps = len(denoiser.alphas_cumprod)
    noise = torch.randn(1, channels, height, width, generator=torch.Generator().manual_seed(0)).to(images)
    for t in (steps - 1, steps // 2, 0):
        found = denoiser(noise, t)
        if found.shape != noise.shape or not bool(found.isfinite().all()):
            raise BadModel(
                f"prior {denoiser.name!r} must answer with finite noise of shape {tuple(noise.shape)}, got "
                f"{'NaN or infinity' if found.shape == noise.shape else tuple(found.shape)} at step {t}: "
                "its weights are broken or were loaded into another network"
            )
    known.add((channels, height, width))

"""Small networks of every kind of output, trained in seconds on pictures whose evidence is planted and known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch
from torch import Tensor, nn

from heatproof.data._support.carried import Carried
from heatproof.types import Batch, Model

SIDE, SQUARE, LABELS = 32, 8, 14
Ask = Literal["one", "many", "value"]


def colours() -> Tensor:
    """(14, 3): colours far from each other and from grey."""
    corners = torch.tensor([[r, g, b] for r in (0.0, 0.5, 1.0) for g in (0.0, 1.0) for b in (0.0, 0.5, 1.0)])
    return corners[(corners.std(1) > 0.2)][:LABELS]


@dataclass(frozen=True, eq=False)
class Planted:
    """Pictures with squares: their labels, their values, and where the evidence of each label is."""

    images: Tensor  # (B, 3, 32, 32)
    there: Tensor  # (B, 14) bool
    where: Tensor  # (B, 14, 32, 32) bool

    @property
    def value(self) -> Tensor:
        """(B,): what the regression learns: squares of label 0 add 1, those of label 1 take 1 away."""
        return 5 + self.there[:, 0].float() - self.there[:, 1].float()


def planted(count: int, labels: Sequence[int], seed: int = 0, share: float = 0.5) -> Planted:
    """Pictures on each of which a share of these labels have a square, in a cell of a 4 × 4 grid of its own."""
    dice = torch.Generator().manual_seed(seed)
    cells = SIDE // SQUARE
    images = 0.5 + 0.05 * torch.randn(count, 3, SIDE, SIDE, generator=dice)
    there = torch.zeros(count, LABELS, dtype=torch.bool)
    there[:, list(labels)] = torch.rand(count, len(labels), generator=dice) < share
    where = torch.zeros(count, LABELS, SIDE, SIDE, dtype=torch.bool)
    for row in range(count):
        for label, cell in zip(labels, torch.randperm(cells**2, generator=dice).tolist(), strict=False):
            if there[row, label]:
                top, left = (SQUARE * place for place in divmod(cell, cells))
                place = (slice(top, top + SQUARE), slice(left, left + SQUARE))
                where[(row, label, *place)] = True
                images[(row, slice(None), *place)] = colours()[label][:, None, None]
    return Planted(images.clamp(0, 1), there, where)


class Network(nn.Module):
    """Two convolutions over squares of 4 × 4, the mean over places, and a linear layer."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 4, stride=4)
        self.second = nn.Conv2d(32, 32, 1)
        self.head = nn.Linear(32, outputs)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.second(self.first(images).relu()).relu()
        return self.head(16 * maps.mean((2, 3)))  # type: ignore[no-any-return]


class Twin(nn.Module):
    """The same yes or no as the softmax of two logits, [0, z]."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        z = self.network(images)
        return torch.cat([torch.zeros_like(z), z], 1)


@cache
def network(ask: Ask) -> nn.Module:
    """One logit (is there a square of label 0?), 14 logits, or one value."""
    labels = {"one": (0, 1, 2), "many": tuple(range(LABELS)), "value": (0, 1)}[ask]
    with torch.random.fork_rng(), torch.inference_mode(False), torch.enable_grad():
        torch.manual_seed(0)
        made = Network(LABELS if ask == "many" else 1)
        optimiser = torch.optim.Adam(made.parameters(), 0.005)
        data = planted(512, labels, seed=1, share=0.2 if ask == "many" else 0.5)
        for _ in range(500 if ask == "many" else 300):
            rows = torch.randperm(len(data.images))[:64]
            answers = made(data.images[rows])
            if ask == "value":
                loss = nn.functional.mse_loss(answers[:, 0], data.value[rows])
            else:
                wanted = data.there[rows] if ask == "many" else data.there[rows][:, :1]
                loss = nn.functional.binary_cross_entropy_with_logits(answers, wanted.float())
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return made.eval().requires_grad_(False)


def model(ask: Ask) -> Model:
    """The network as a model whose kind of output is declared."""
    names = tuple(f"colour {label}" for label in range(LABELS))
    if ask == "value":
        return Model("value", network("value"), output="regression", cam_layer="second")
    return Model(
        ask, network(ask), output="sigmoid", cam_layer="second", classes=names if ask == "many" else ("colour 0",)
    )


def twin() -> Model:
    return Model("twin", Twin(network("one")), cam_layer="network.second", classes=("not colour 0", "colour 0"))


@dataclass(frozen=True, eq=False)
class Squares:
    """Planted pictures as a data set; the region is that of label 0, and the label is whether it is there."""

    count: int = 6
    ask: Ask = "one"
    only: bool = True  # only pictures on which label 0 is there (and, for a value, label 1 is not)

    name = "squares"

    @property
    def planted(self) -> Planted:
        return _chosen(self.count, self.ask, self.only)

    def __len__(self) -> int:
        return self.count

    def ids(self) -> tuple[str, ...]:
        return tuple(f"{index}.png" for index in range(self.count))

    def present(self) -> tuple[Carried | None, ...]:
        return tuple(Carried(frozenset(row.nonzero().flatten().tolist())) for row in self.planted.there)

    def batch(self, indices: Sequence[int], /) -> Batch:
        rows = list(indices)
        data = self.planted
        labels = data.there[rows, 0].long()
        return Batch(
            data.images[rows],
            labels,
            tuple(self.ids()[row] for row in rows),
            regions=data.where[rows, 0],
            labels={"label": labels},
        )

    def digest(self, indices: Sequence[int], /) -> str:
        return f"{self.ask} {self.only} {list(indices)}"


@cache
def _chosen(count: int, ask: Ask, only: bool) -> Planted:
    labels = {"one": (0, 1, 2), "many": (0, 3, 5), "value": (0, 1)}[ask]
    data = planted(20 * count, labels, seed=2)
    fit = data.there[:, 0] & (~data.there[:, 1] if ask == "value" else True) if only else torch.ones(20 * count) > 0
    rows = fit.nonzero().flatten()[:count]
    return Planted(data.images[rows], data.there[rows], data.where[rows])

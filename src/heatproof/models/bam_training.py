"""Trains BAM's models again: torchvision's ResNet-50, all layers fine-tuned on pictures by class.

SGD with a cosine schedule, five epochs, batches of 64, mirrored pictures. The cost is an estimate, passes times the
measured time of a pass: 90 000 pictures times five epochs are 450 000 forward and backward passes per model; at the
0.29 seconds measured for one at 224 pixels on one CPU thread (batches of 8) that is 36 hours of that thread. The
object, scene and scene-only models make three of these; each of the ten models of the k-series takes 45 000 passes, by
the same estimate 3.6 hours. Training measures its own first steps and prints an estimate for the machine at hand.

Where the ImageNet weights cannot be downloaded, pass their file; `random` starts from random weights and needs more
epochs.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from heatproof import engine
from heatproof.data.folder import Folder
from heatproof.errors import BadInput
from heatproof.models.torchvision import load_torchvision
from heatproof.types import Batch, View, keyed_seed

MEASURED = 5  # steps that are timed for the estimate
WRITE_EVERY = 300.0  # seconds
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Recipe:
    """The settings of fine-tuning."""

    epochs: int = 5
    batch: int = 64
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 1e-4
    size: int = 224
    seed: int = 0
    steps: int | None = None  # stop after this number, for trials

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "size", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(f"{name} must be at least 1, got {value}")


def train(
    pictures: Path,
    out: Path,
    recipe: Recipe,
    weights: str = "DEFAULT",
    device: str = "auto",
    say: Callable[[str], None] = print,
) -> Path:
    """Fine-tunes on `pictures` (one sub-folder per class, as in `data/obj/train`) and writes weights and recipe.

    The file is loaded by `torchvision:resnet50@FILE`. Progress is written beside it every few minutes, and the same
    call resumes from there.
    """
    data = Folder(str(pictures), View(recipe.size))
    labels = [file.label for file in data.files]
    classes = max(labels) + 1
    if classes < 2:
        raise BadInput(f"{pictures} must hold one sub-folder of pictures per class, got {classes} class")
    out.parent.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        network = resnet50(classes, weights)
    place = engine.pick(device)
    network.train().to(place)
    optimiser = torch.optim.SGD(
        network.parameters(), recipe.learning_rate, recipe.momentum, weight_decay=recipe.weight_decay
    )
    settings = {"recipe": asdict(recipe), "pictures": len(labels), "classes": classes, "start": weights}
    kept = Progress(out.with_suffix(".part"), settings | {"data": keyed_seed(*data.ids(), *labels)})
    first = kept.read(network, optimiser)
    each = math.ceil(len(labels) / recipe.batch)
    total = min(recipe.epochs * each, recipe.steps or recipe.epochs * each)
    if first:
        say(f"resuming after step {first} of {total} ({kept.path})")
    loss, began = torch.zeros(()), 0.0
    for step in range(first, total):
        for group in optimiser.param_groups:
            group["lr"] = recipe.learning_rate * (1 + math.cos(math.pi * step / total)) / 2
        batch = batch_of(data, step, each, recipe)
        for name, why in batch.missing.items():
            say(f"left out: {name}: {why}")
        if len(batch):
            loss = learn(network, optimiser, batch, place)
        if step % 50 == 0:
            say(f"step {step + 1} of {total}: loss {loss.item():.3f}")
        if step == first:  # the first step also warms up
            loss.item()
            began = time.perf_counter()
        if step - first == MEASURED and step < total - 1:
            loss.item()
            say(estimate(total - first, (time.perf_counter() - began) / MEASURED))
        kept.write(network, optimiser, step + 1)
    save_file(
        {name: value.detach().cpu().contiguous() for name, value in network.eval().state_dict().items()}, str(out)
    )
    out.with_suffix(".json").write_text(json.dumps(settings | {"final_loss": loss.item()}, indent=1) + "\n")
    kept.path.unlink(missing_ok=True)
    return out


def batch_of(data: Folder, step: int, each: int, recipe: Recipe) -> Batch:
    """The pictures of a step, some of them mirrored; the same whether training was interrupted before it or not."""
    epoch = torch.Generator().manual_seed(keyed_seed(recipe.seed, "epoch", step // each))
    rows = torch.randperm(len(data), generator=epoch)[step % each * recipe.batch :][: recipe.batch]
    batch = data.batch(rows.tolist())
    dice = torch.Generator().manual_seed(keyed_seed(recipe.seed, "mirrored", step))
    ids = data.ids()
    drawn = {
        ids[row]: draw for row, draw in zip(rows.tolist(), torch.rand(len(rows), generator=dice).tolist(), strict=True)
    }
    mirrored = torch.tensor([drawn[name] < 0.5 for name in batch.ids], dtype=torch.bool)  # some cannot be read
    return batch.showing(torch.where(mirrored[:, None, None, None], batch.images.flip(3), batch.images))


def learn(network: nn.Module, optimiser: torch.optim.Optimizer, batch: Batch, place: torch.device) -> Tensor:
    """Takes one training step; returns the loss before it."""
    mean, std = (torch.tensor(values, device=place).view(1, 3, 1, 1) for values in (MEAN, STD))
    logits = network((batch.images.to(place) - mean) / std)
    loss = nn.functional.cross_entropy(logits, batch.targets.to(place))
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return loss.detach()


@dataclass
class Progress:
    """Training progress in its own file, since training takes days and may be interrupted."""

    path: Path
    settings: dict[str, Any]  # of the training it belongs to
    written: float = field(default_factory=time.monotonic)

    def read(self, network: nn.Module, optimiser: torch.optim.Optimizer) -> int:
        """Loads the stored state into network and optimiser; the number of steps done."""
        if not self.path.is_file():
            return 0
        stored = torch.load(self.path, map_location="cpu", weights_only=True)
        if stored["settings"] != self.settings:
            unlike = ", ".join(name for name, value in self.settings.items() if stored["settings"].get(name) != value)
            raise BadInput(
                f"{self.path} must be progress of this training, got one of other settings ({unlike}): "
                "use the same settings to resume, or remove the file to start anew"
            )
        network.load_state_dict(stored["network"])
        optimiser.load_state_dict(stored["optimiser"])
        return int(stored["step"])

    def write(self, network: nn.Module, optimiser: torch.optim.Optimizer, step: int) -> None:
        """Stores the state every few minutes, in a temporary file that is then renamed."""
        if time.monotonic() - self.written < WRITE_EVERY:
            return
        beside = self.path.with_suffix(".beside")
        state = {"network": network.state_dict(), "optimiser": optimiser.state_dict()}
        torch.save({"settings": self.settings, "step": step, **state}, beside)
        beside.replace(self.path)
        self.written = time.monotonic()


def estimate(steps: int, seconds: float) -> str:
    """A sentence on the duration of the whole training, from the time of one step."""
    hours = steps * seconds / 3600
    duration = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"
    return f"estimate: {steps} steps × {seconds:.2f} s measured per step = {duration}"


def resnet50(classes: int, weights: str) -> nn.Module:
    """torchvision's ResNet-50 with a head of `classes`; weights: a name in torchvision, a file, or `random`."""
    network = load_torchvision("resnet50", weights).network.requires_grad_(True)
    network.fc = nn.Linear(2048, classes)
    return network

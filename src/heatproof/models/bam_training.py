"""A person's own copy of BAM's models: torchvision's ResNet-50, all layers fine-tuned on pictures by class.

SGD with a cosine schedule, five epochs, batches of 64, mirrored pictures. What it costs is an estimate, passes times
the measured time of a pass: 90 000 pictures times five epochs are 450 000 passes there and back per model; at the 0.29
seconds measured for one at 224 pixels on one CPU thread (batches of 8) that is 36 hours of that thread. The object,
scene and scene-only models make three of these; each of the ten models of the k-series has 45 000 passes, by the same
reckoning 3.6 hours. Training measures its own first steps and says what they add up to on the machine at hand.

Where the ImageNet weights cannot be downloaded, give their file; without any, training starts from random weights and
needs more epochs.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from heatproof.data.folder import Folder
from heatproof.errors import BadInput
from heatproof.models import engine
from heatproof.models.torchvision_repair import import_torchvision
from heatproof.types import View

MEASURED = 5  # steps the estimate is read from
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Recipe:
    """How a model is fine-tuned."""

    epochs: int = 5
    batch: int = 64
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 1e-4
    size: int = 224
    seed: int = 0
    steps: int | None = None  # stop after so many, to try things out


def train(
    pictures: Path,
    out: Path,
    recipe: Recipe,
    weights: str = "DEFAULT",
    device: str = "auto",
    say: Callable[[str], None] = print,
) -> Path:
    """Fine-tune on `pictures` (one sub-folder per class, as in `data/obj/train`) and write weights and recipe.

    The file is read back by `torchvision:resnet50@FILE`.
    """
    data = Folder(str(pictures), View(recipe.size))
    labels = [file.label for file in data.files]
    classes = max(labels) + 1
    if classes < 2:
        raise BadInput(f"{pictures} must hold one sub-folder of pictures per class, got {classes} class")
    network = resnet50(classes, weights)
    place = engine.pick(device)
    network.train().to(place)
    optimiser = torch.optim.SGD(
        network.parameters(), recipe.learning_rate, recipe.momentum, weight_decay=recipe.weight_decay
    )
    each = math.ceil(len(labels) / recipe.batch)
    total = min(recipe.epochs * each, recipe.steps or recipe.epochs * each)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, total)
    dice = torch.Generator().manual_seed(recipe.seed)
    mean, std = (torch.tensor(values, device=place).view(1, 3, 1, 1) for values in (MEAN, STD))
    loss = torch.zeros(())
    began = 0.0
    for step in range(total):
        if step % each == 0:
            order = torch.randperm(len(labels), generator=dice)
        rows = order[step % each * recipe.batch :][: recipe.batch].tolist()
        batch = data.batch(rows)
        images = batch.images
        mirrored = torch.rand(len(images), generator=dice) < 0.5
        images = torch.where(mirrored[:, None, None, None], images.flip(3), images).to(place)
        loss = nn.functional.cross_entropy(network((images - mean) / std), batch.targets.to(place))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        if step % 50 == 0:
            say(f"step {step + 1} of {total}: loss {loss.item():.3f}")
        if step == 0:  # it also warms up; reading the loss has waited for it
            began = time.perf_counter()
        if step == MEASURED < total - 1:
            loss.item()
            say(estimate(total, (time.perf_counter() - began) / MEASURED))
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: value.detach().cpu().contiguous() for name, value in network.eval().state_dict().items()}, str(out)
    )
    told = {
        "recipe": asdict(recipe),
        "pictures": len(labels),
        "classes": classes,
        "start": weights,
        "final_loss": loss.item(),
    }
    out.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n")
    return out


def estimate(steps: int, seconds: float) -> str:
    """What the whole training will take, from what a step took."""
    hours = steps * seconds / 3600
    told = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"
    return f"estimate: {steps} steps × {seconds:.2f} s measured per step = {told}"


def resnet50(classes: int, weights: str) -> nn.Module:
    """torchvision's, with a head of so many classes; weights: a name torchvision gives them, a file, or `random`."""
    make = import_torchvision("training on BAM").models.resnet50
    if weights == "random":
        network: nn.Module = make(weights=None)
    elif Path(weights).is_file():
        network = make(weights=None)
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    else:
        network = make(weights=weights)
    network.fc = nn.Linear(2048, classes)
    return network

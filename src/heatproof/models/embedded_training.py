"""Trains the embedded models, each in minutes on one CPU core."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save as safetensors_bytes
from torch import Tensor, nn

from heatproof.data.two_factor import VERSION
from heatproof.data.two_factor.dataset import Block, Shows, TwoFactor
from heatproof.data.two_factor.k_dataset import TwoFactorK
from heatproof.models import embedded

TRAINED = Path(__file__).parent / "trained"
Say = Callable[[str], None]


def train(name: str, folder: Path = TRAINED, say: Say = print) -> dict[str, Any]:
    """Trains one embedded model, measures it on unseen pictures, and writes weights and recipe."""
    plan = embedded.PLANS[name]
    arrays = pictures_of(plan)
    images = arrays["twin" if plan.shows == "scene" else "image"]
    began = time.process_time()
    torch.manual_seed(plan.seed)
    network = plan.network()
    if plan.start is not None:
        begin_like(network, embedded.load(plan.start).network)
    regions = arrays["region"] if plan.flat_backgrounds else None
    loss = fit(network, images, arrays[f"{plan.task}_label"], regions, plan, say)
    half = {key: value.half() if value.is_floating_point() else value for key, value in network.state_dict().items()}
    network.load_state_dict({key: value.float() if value.is_floating_point() else value for key, value in half.items()})
    record = {
        "recipe": {**dataclasses.asdict(plan), "network": plan.network.__name__, "pictures": VERSION},
        "parameters": sum(p.numel() for p in network.parameters()),
        "final_loss": loss,
        "accuracy": {shows: accuracy(name, network, shows) for shows in ("composite", "scene", "grey")},
        **({"anchor_accuracy": anchor_accuracy(network, plan)} if plan.k else {}),
        "cpu_seconds": time.process_time() - began,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.safetensors").write_bytes(safetensors_bytes(half))
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    say(f"{name}: {record['accuracy']}")
    return record


def pictures_of(plan: embedded.Plan) -> Block:
    """The training pictures of a plan."""
    if plan.k is not None:
        pictures = TwoFactorK(plan.k, "train", plan.instances * len(plan.classes))
        return dict(vars(pictures.samples(range(len(pictures)))))
    every = TwoFactor("train", plan.instances * 100, plan.shows)
    return every.arrays(range(len(every)))


def fit(
    network: nn.Module,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    regions: NDArray[np.bool_] | None,
    plan: embedded.Plan,
    say: Say,
) -> float:
    """Trains by AdamW with one cycle, mirrored pictures and some objects on a flat colour; the last epoch's loss."""
    network.train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    size = 64
    steps = plan.epochs * (len(images) // size)
    optimiser = torch.optim.AdamW(network.parameters(), plan.learning_rate, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, plan.learning_rate, total_steps=steps)
    order = np.random.default_rng(plan.seed)
    total = 0.0
    for epoch in range(plan.epochs):
        total = 0.0
        for rows in order.permutation(len(images))[: len(images) // size * size].reshape(-1, size):
            mirrored = order.random(size) < 0.5
            chosen = images[rows]
            if regions is not None:  # so that objects are recognised without a scene, too
                flat = order.random(size) < plan.flat_backgrounds
                colours = order.integers(0, 256, (size, 1, 1, 3), dtype=np.uint8)
                chosen = np.where(flat[:, None, None, None] & ~regions[rows][..., None], colours, chosen)
            chosen[mirrored] = chosen[mirrored][:, :, ::-1]
            loss = nn.functional.cross_entropy(
                network(prepared(chosen, plan)), torch.from_numpy(labels[rows]), label_smoothing=0.05
            )
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item() / (len(images) // size)
        say(f"  epoch {epoch + 1} of {plan.epochs}: loss {total:.3f}")
    network.eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return total


def begin_like(network: nn.Module, trained: nn.Module) -> None:
    """Takes over the layers of a trained network that have the same name, and holds their weights."""
    for name, layer in network.named_children():
        known = getattr(trained, name, None)
        if known is not None:
            layer.load_state_dict(known.state_dict())
            layer.requires_grad_(False)


def prepared(pictures: NDArray[np.uint8], plan: embedded.Plan) -> Tensor:
    """Pictures (B, H, W, 3) as input of the plan's network."""
    pixels = torch.from_numpy(np.ascontiguousarray(pictures)).permute(0, 3, 1, 2).float() / 255
    mean, std = (pixels.new_tensor(values).view(1, -1, 1, 1) for values in (plan.mean, plan.std))
    return (pixels - mean) / std


@torch.inference_mode()
def accuracy(name: str, network: nn.Module, shows: Shows, count: int = 1000) -> float:
    """The accuracy on held-out pictures: with object and scene, scene alone, or object alone on grey."""
    plan = embedded.PLANS[name]
    pictures = TwoFactor("held_out", count, shows)
    arrays = pictures.arrays(range(count))
    shown = arrays[{"composite": "image", "scene": "twin", "grey": "on_grey"}[shows]]
    network.eval()
    answers = torch.cat([network(prepared(shown[i : i + 50], plan)).argmax(1) for i in range(0, count, 50)])
    return float((answers.numpy() == arrays[f"{plan.task}_label"]).mean())


@torch.inference_mode()
def anchor_accuracy(network: nn.Module, plan: embedded.Plan, count: int = 200) -> dict[str, float]:
    """Accuracy on held-out pictures of the scene that always carries the object, with and without the object."""
    drawn = TwoFactorK(10, "held_out", count, "anchor").samples(range(count))
    anchor = int(drawn.scene_label[0])
    network.eval()

    def share(pictures: NDArray[np.uint8]) -> float:
        answers = torch.cat([network(prepared(pictures[i : i + 50], plan)).argmax(1) for i in range(0, count, 50)])
        return float((answers == anchor).float().mean())

    return {"with_object": share(drawn.image), "without_object": share(drawn.twin)}


def train_all(only: Sequence[str] = (), folder: Path = TRAINED, say: Say = print) -> None:
    """Trains every embedded model, or those named."""
    torch.set_num_threads(1)  # faster than two for networks this small
    for name in only or embedded.PLANS:
        embedded._plan(name)
        say(f"training embedded:{name}")
        train(name, folder, say)

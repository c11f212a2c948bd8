"""Methods that work on the CPU and that a GPU would refuse, and a sound one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from heatproof.types import Batch, Maps, Method, Model


def noise_of_the_cpu(model: Model, batch: Batch) -> Maps:
    return batch.images.mean(1) + torch.rand(batch.images.shape[2:])


def mask_of_the_cpu(model: Model, batch: Batch) -> Maps:
    keep = torch.ones(len(batch), 1, *batch.images.shape[2:], dtype=torch.bool)
    return torch.where(keep, batch.images, 0.0).mean(1)


def numpy_of_the_device(model: Model, batch: Batch) -> Maps:
    return torch.from_numpy(batch.images.mean(1).numpy()).to(batch.images)


def generator_of_the_cpu(model: Model, batch: Batch) -> Maps:
    dice = torch.Generator().manual_seed(0)
    return torch.rand(len(batch), *batch.images.shape[2:], generator=dice, device=batch.images.device)


def written_into_the_cpu(model: Model, batch: Batch) -> Maps:
    maps = torch.zeros(len(batch), *batch.images.shape[2:])
    return maps.add_(batch.images.mean(1))


def indexed_on_the_cpu(model: Model, batch: Batch) -> Maps:
    table = torch.arange(2.0)
    brighter: Tensor = (batch.images.mean(1) > 0.5).long()
    return table[brighter]


def pictures_without_moving(model: Model, batch: Batch) -> Maps:
    return model(torch.rand(batch.images.shape)).sum() * batch.images.mean(1)


def sound(model: Model, batch: Batch) -> Maps:
    dice = torch.Generator().manual_seed(0)
    return batch.images.mean(1) + torch.rand(batch.images.shape[2:], generator=dice).to(batch.images)


METHODS: dict[str, Callable[[Model, Batch], Maps] | Method] = {
    made.__name__: made
    for made in (
        noise_of_the_cpu,
        mask_of_the_cpu,
        numpy_of_the_device,
        generator_of_the_cpu,
        written_into_the_cpu,
        indexed_on_the_cpu,
        pictures_without_moving,
        sound,
    )
}

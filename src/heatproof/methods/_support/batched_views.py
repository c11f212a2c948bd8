"""The model's outputs for many views of each picture, in the memory of one block of views."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from heatproof import engine
from heatproof.methods._support.path_gradients import Painter, stretches
from heatproof.types import Batch, Logits, Model

Reading: TypeAlias = Callable[[Logits, Tensor], Tensor]  # logits (rows, classes), targets (rows,) -> (rows,)


def values_of_views(model: Model, batch: Batch, paint: Painter, count: int, reading: Reading) -> Tensor:
    """(B, count): the reading of the output for every view of every picture, in blocks of whole micro-batches."""
    images = batch.images
    way = engine.settled(model, images, "forward")
    size = engine.at_once(images, way.choice.size)
    room = images.new_empty(min(size, len(batch) * count), *images.shape[1:])  # the same memory for every block
    values = []
    for part in stretches(len(batch), count, size):
        shown = room[: part[-1].rows.stop]
        for stretch in part:
            paint(stretch, shown[stretch.rows])
        targets = torch.cat([batch.targets[image].expand(len(points)) for image, points, _ in part])
        values.append(reading(engine.forward(model, shown, way), targets))
    return torch.cat(values).view(len(batch), count)

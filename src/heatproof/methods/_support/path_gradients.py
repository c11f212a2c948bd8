"""Weighted gradients at many points per image, in the memory of one micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from heatproof import engine
from heatproof.types import Batch, Images, Model, Readout


class Stretch(NamedTuple):
    """Neighbouring points of one image, and the rows they take in a micro-batch."""

    image: int
    points: range
    rows: slice


# Writes the pictures at these points into preallocated memory, the room, (points, C, H, W).
Painter = Callable[[Stretch, Images], None]
PathPainter = Callable[[Stretch, Images, Images], None]  # and into the second room the step that each stands for


def stretches(images: int, points: int, size: int) -> Iterator[list[Stretch]]:
    """All points of all images in turn, micro-batch by micro-batch."""
    for begin in range(0, images * points, size):
        part, end = [], min(begin + size, images * points)
        for image in range(begin // points, (end - 1) // points + 1):
            first = image * points  # counted as all points are
            low, high = max(begin, first), min(end, first + points)
            part.append(Stretch(image, range(low - first, high - first), slice(low - begin, high - begin)))
        yield part


def sum_gradients(model: Model, batch: Batch, paint: Painter, weights: Tensor, readout: Readout = "logit") -> Tensor:
    """Σ_k weights[k] · gradient at point k, per image: (B, C, H, W).

    Only one micro-batch of points exists at a time, however many there are; and an image's sum is added up in
    the order of its points, so neither batch mates nor chunking reach the result.
    """
    total, factors = torch.zeros_like(batch.images), weights.tolist()
    for part, slopes, _ in gradients_on_path(model, batch, paint, len(factors), readout):
        for image, points, rows in part:
            for point, slope in zip(points, slopes[rows], strict=True):
                total[image].add_(slope, alpha=factors[point])
    return total


def sum_contributions(model: Model, batch: Batch, paint: PathPainter, count: int, readout: Readout = "logit") -> Tensor:
    """Σ_k steps_k · gradient at point k, per image, where every point has a direction of its own."""
    total = torch.zeros_like(batch.images)
    steps = batch.images.new_empty(engine.batch_size(model, batch.images, "gradient"), *batch.images.shape[1:])

    def paint_both(stretch: Stretch, room: Images) -> None:
        paint(stretch, room, steps[stretch.rows])

    for part, slopes, _ in gradients_on_path(model, batch, paint_both, count, readout):
        for image, _, rows in part:
            for slope, step in zip(slopes[rows], steps[rows], strict=True):
                total[image].addcmul_(slope, step)
    return total


def gradients_on_path(
    model: Model, batch: Batch, paint: Painter, count: int, readout: Readout
) -> Iterator[tuple[list[Stretch], Tensor, Tensor]]:
    """Yields the gradients and the readouts at all points, image after image, micro-batch by micro-batch."""
    way = engine.settled(model, batch.images, "gradient")
    room = batch.images.new_empty(min(way.choice.size, len(batch) * count), *batch.images.shape[1:])
    for part in stretches(len(batch), count, way.choice.size):
        shown = room[: part[-1].rows.stop]
        for stretch in part:
            paint(stretch, shown[stretch.rows])
        targets = torch.cat([batch.targets[image].expand(len(points)) for image, points, _ in part])
        slopes, values = engine.gradient(model, shown, targets, readout, way)
        yield part, slopes, values

"""Temperature scaling: one number that makes a classifier's confidence as high as it is right."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from heatproof.errors import BadInput
from heatproof.models import engine
from heatproof.types import Dataset, Logits, Model

_RANGE = (0.01, 100.0)  # beyond, the data say only "as small" or "as large as can be"


class Temperature(NamedTuple):
    """By what the logits are divided, and what that does to held-out pictures."""

    value: float
    pictures: int
    nll_before: float  # mean negative log-likelihood of the labels
    nll_after: float
    confidence_before: float  # mean of the largest probability
    confidence_after: float
    accuracy: float  # which no temperature changes


def fit_temperature(logits: Logits, labels: Tensor) -> Temperature:
    """The T > 0 that makes softmax(logits / T) most likely, by L-BFGS over log T; kept within 0.01 … 100.

    Paper: Guo et al. 2017, "On Calibration of Modern Neural Networks"
    """
    if logits.ndim != 2 or labels.shape != logits.shape[:1] or not len(labels):
        raise BadInput(
            f"a temperature needs logits (pictures, classes) and a label for each, got {tuple(logits.shape)} "
            f"and {tuple(labels.shape)}"
        )
    logits, labels = logits.detach().cpu().double(), labels.cpu()
    if bool(((labels < 0) | (labels >= logits.shape[1])).any()):
        raise BadInput(f"labels must lie in 0 … {logits.shape[1] - 1} to fit a temperature")
    log_t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_t], max_iter=100, line_search_fn="strong_wolfe", tolerance_grad=1e-10)
    low, high = (math.log(end) for end in _RANGE)

    def loss() -> Tensor:
        optimiser.zero_grad()
        # Where every picture is right the likelihood grows for ever as T falls; the slope ends at the range.
        value = cross_entropy(logits / log_t.clamp(low, high).exp(), labels)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    value = min(_RANGE[1], max(_RANGE[0], math.exp(log_t.item())))
    cooled = logits / value
    return Temperature(
        value,
        pictures=len(labels),
        nll_before=float(cross_entropy(logits, labels)),
        nll_after=float(cross_entropy(cooled, labels)),
        confidence_before=float(logits.softmax(1).amax(1).mean()),
        confidence_after=float(cooled.softmax(1).amax(1).mean()),
        accuracy=float((logits.argmax(1) == labels).double().mean()),
    )


def calibrate(model: Model, held_out: Dataset, limit: int = 300) -> Temperature:
    """Fit the temperature on pictures the model was neither trained on nor is judged on."""
    batch = held_out.batch(range(min(limit, len(held_out)))).to(model.device)
    labels = batch.labels.get(model.task)
    if labels is None:
        raise BadInput(f"a temperature needs labels of the task {model.task!r}; {held_out.name!r} has none")
    known = labels >= 0
    return fit_temperature(engine.forward(model, batch.images[known]), labels[known])

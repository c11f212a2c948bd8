"""Temperature scaling: one number that matches a classifier's confidence to its accuracy."""

from __future__ import annotations

import math
import random
import warnings
from typing import NamedTuple

import torch
from scipy.stats import binom
from torch import Tensor
from torch.nn.functional import cross_entropy

from heatproof import engine
from heatproof.errors import BadInput, NotApplicable
from heatproof.types import Dataset, Logits, Model, keyed_seed

_RANGE = (0.01, 100.0)  # at either end the data only show that T should be as small or as large as possible


class Temperature(NamedTuple):
    """A temperature, which divides the logits, and its effect on held-out pictures."""

    value: float
    pictures: int
    nll_before: float  # mean negative log-likelihood of the labels
    nll_after: float
    confidence_before: float  # mean of the largest probability
    confidence_after: float
    accuracy: float  # not changed by any temperature
    unlabelled: int = 0  # pictures drawn that show none of the model's classes, and were left out
    doubt: str = ""  # why this temperature may mean nothing


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
        # If every picture is right the likelihood grows without bound as T falls; the clamp stops it at the range.
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
        doubt=_doubt(value, int((logits.argmax(1) == labels).sum()), len(labels), logits.shape[1]),
    )


def _doubt(value: float, right: int, pictures: int, classes: int) -> str:
    """The reasons to doubt a temperature, such as signs of wrong labels; empty if there are none."""
    reasons = []
    if binom.sf(right - 1, pictures, 1 / classes) > 0.05:  # blind guesses often hit as many
        reasons.append(
            f"the model is right on {right} of {pictures} held-out pictures, which cannot be distinguished from "
            f"guessing among {classes} classes: are the labels numbered as the model does, and the pictures enough?"
        )
    if not _RANGE[0] * 1.001 < value < _RANGE[1] * 0.999:
        reasons.append(f"T = {value:g} is the end of the range that was searched ({_RANGE[0]:g} to {_RANGE[1]:g})")
    return "; ".join(reasons)


def calibrate(model: Model, held_out: Dataset, limit: int = 300, seed: int = 0) -> Temperature:
    """Fits the temperature on held-out pictures, neither trained on nor judged, drawn from the whole data set.

    Folders are sorted by class, so the first `limit` pictures would show few classes. Pictures without a class of the
    model are left out and counted.
    """
    luck = random.Random(keyed_seed("calibration", seed))
    drawn = sorted(luck.sample(range(len(held_out)), min(limit, len(held_out))))
    batch = held_out.batch(drawn).to(model.device)
    labels = batch.labels.get(model.task)
    if labels is None:
        raise BadInput(f"a temperature needs labels of the task {model.task!r}; {held_out.name!r} has none")
    known = labels >= 0
    if not bool(known.any()):
        raise NotApplicable(
            f"a temperature needs pictures that show one of the model's classes; none of {len(labels)} drawn from "
            f"{held_out.name!r} is labelled so"
        )
    answers = engine.forward(model, batch.images[known])
    if model.several or model.question == "value":
        what = "several labels, each with a confidence of its own" if model.kind == "sigmoid" else "values"
        raise NotApplicable(f"a temperature is fitted for one confidence, and model {model.name!r} answers with {what}")
    fitted = fit_temperature(answers, labels[known])
    if fitted.doubt:
        warnings.warn(f"the temperature of {model.name!r} may mean nothing: {fitted.doubt}", stacklevel=2)
    return fitted._replace(unlabelled=int((~known).sum()))

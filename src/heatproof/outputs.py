"""Kinds of output: what a network's numbers mean, and how a number is read off them.

softmax       one of several classes; the classes compete
sigmoid       yes or no: one logit, or several labels, each a question of its own
regression    one or several values

A network answers with logits, or with probabilities of its kind. All components see one of three *questions*:
`classes` (columns are logits of a softmax), `yes_no` (two columns, [-z/2, z/2], whose softmax is [1 - p, p] with
p = sigmoid(z)) and `value` (one column). One label of many is a `yes_no`, and one of many values is a `value`:
`Model.of` chooses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import torch
from torch import Tensor

from heatproof.errors import BadInput, BadModel, NotApplicable
from heatproof.questions import NO_PROBABILITY, Kind, Question, Readout

SAID = "softmax, sigmoid or regression, or one of the first two with :probabilities or :logits after it"
FORMER: Mapping[str, str] = {"logits": "softmax:logits", "probabilities": "softmax:probabilities"}


def declared(text: str, whose: str) -> tuple[Kind, bool | None]:
    """`sigmoid:probabilities` as the kind and whether the network answers with probabilities (None: not declared)."""
    kind, _, scale = FORMER.get(text, text).partition(":")
    if kind not in get_args(Kind) or scale not in ("", "logits", "probabilities") or (kind == "regression" and scale):
        raise BadModel(f"{whose} declares the output {text!r}, and an output is {SAID}")
    return kind, {"": None, "logits": False, "probabilities": True}[scale]  # type: ignore[return-value]


def columns(answer: Tensor, kind: Kind, probabilities: bool, label: int | None) -> Tensor:
    """The numbers of a network as columns that can be explained.

    Probabilities become logits. A single yes or no, or the `label` chosen of several, becomes [-z/2, z/2].
    """
    if probabilities:
        answer = _log_odds(answer) if kind == "sigmoid" else answer.clamp_min(torch.finfo(answer.dtype).tiny).log()
    if kind == "softmax":
        return answer
    if label is not None:
        answer = answer[:, label : label + 1]
    return torch.cat([-answer / 2, answer / 2], 1) if kind == "sigmoid" and answer.shape[1] == 1 else answer


def _log_odds(probabilities: Tensor) -> Tensor:
    """log p - log(1 - p), finite and with finite slopes where a sigmoid is saturated."""
    edge = torch.finfo(probabilities.dtype)
    low, high = probabilities.clamp_min(edge.tiny), (1 - probabilities).clamp_min(edge.eps / 2)
    return low.log() - high.log()


def read(logits: Tensor, targets: Tensor, readout: Readout, question: Question = "classes") -> Tensor:
    """The readout of each row's target: one number per row, differentiable.

    Of a yes or no the logit is z for yes and -z for no. A value has no probability.
    """
    if readout not in get_args(Readout):
        raise BadInput(f"readout must be one of {', '.join(get_args(Readout))}, got {readout!r}")
    if question == "value" and readout != "logit":
        raise NotApplicable(NO_PROBABILITY)
    if readout == "probability":
        logits = logits.softmax(-1)
    elif readout == "log_probability":
        logits = logits.log_softmax(-1)
    elif question == "yes_no":
        logits = 2 * logits
    return logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def named(classes: tuple[str, ...], kind: Kind | None) -> tuple[str, ...]:
    """Class names, with that of the other side where only `yes` has a name."""
    return (f"not {classes[0]}", classes[0]) if len(classes) == 1 and kind != "regression" else classes

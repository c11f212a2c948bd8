"""What a network is asked: one of several classes, yes or no, or a value. Without torch, since traits name it, too."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["softmax", "sigmoid", "regression"]
Question: TypeAlias = Literal["classes", "yes_no", "value"]
Readout: TypeAlias = Literal["probability", "logit", "log_probability"]
Unfit: TypeAlias = tuple[tuple[Question, str], ...]  # the questions that a component has no answer to, and why

QUESTIONS: tuple[Question, ...] = get_args(Question)
IN_WORDS: dict[Question, str] = {
    "classes": "a softmax over classes",
    "yes_no": "a yes-or-no answer",
    "value": "a value (regression)",
}
NO_PROBABILITY = "a value has no probability: it is read as it is, by readout='logit'"

"""What a fuzzed call may come to: a sentence of heatproof's own, or numbers without a silent NaN."""

from __future__ import annotations

import dataclasses
import math
import signal
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch

from heatproof.errors import HeatproofError
from heatproof.types import Scored

LONGEST = 10  # seconds


def fault(call: Callable[[], Any], judge: Callable[[Any], str]) -> str:
    """What is wrong with a call, in words; empty if its outcome is a result that stands or a stated refusal."""

    def late(*_: object) -> None:
        raise TimeoutError(f"no answer after {LONGEST} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            answer = call()
    except HeatproofError as error:
        return "" if len(str(error)) > 10 else f"{type(error).__name__} without a sentence"
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else ""
        return f"{type(error).__name__}: {error} at {where} after {time.perf_counter() - began:.1f} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return judge(answer)


def score_fault(answer: Any, count: int) -> str:
    """A metric's answer: one score per picture, each finite or with a note."""
    scored = answer if isinstance(answer, Scored) else Scored(answer)
    if not isinstance(scored.values, torch.Tensor) or scored.values.shape != (count,):
        return f"scores of shape {getattr(scored.values, 'shape', None)} for {count} pictures"
    if scored.notes and len(scored.notes) != count:
        return f"{len(scored.notes)} notes for {count} pictures"
    notes = scored.notes or ("",) * count
    for value, note in zip(scored.values.tolist(), notes, strict=True):
        if math.isinf(value):
            return f"the score is {value}"
        if math.isnan(value) and not note:
            return "a NaN without a note"
    return ""


def number_fault(answer: Any, undefined: Collection[str]) -> str:
    """A statistic's answer: NaN only in the fields that are documented to be undefined, infinity nowhere."""
    for name, value in _numbers(answer, ""):
        leaf = name.rsplit(".", 1)[-1]
        if math.isinf(value) and f"inf {leaf}" not in undefined:
            return f"{name or 'the result'} is {value}"
        if math.isnan(value) and leaf not in undefined:
            return f"{name or 'the result'} is NaN"
    return ""


def _numbers(value: Any, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float | np.floating):
        yield name, float(value)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            yield from ((name, float(one)) for one in value.ravel())
    elif isinstance(value, pd.DataFrame):
        for column in value:
            yield from _numbers(value[column].to_numpy(), f"{name}.{column}")
    elif isinstance(value, pd.Series):
        yield from _numbers(value.to_numpy(), name)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _numbers(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _numbers(one, f"{name}.{key}")
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _numbers(one, name)

"""The thing that runs forward passes, made from a network and checked against it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from heatproof.models.engine import onnx, vetting
from heatproof.models.engine.choice import Choice, Way
from heatproof.models.engine.device import out_of_memory
from heatproof.models.engine.folding import folded
from heatproof.models.engine.running import Runner, compiled, eager, input_gradient, twin, unheard, untouched
from heatproof.models.engine.setting import Precision
from heatproof.types import Images, Logits, Model

log = logging.getLogger("heatproof")

SURPRISE = 10 * vetting.TOLERANCE
SLOPE_TOLERANCE = 1e-2  # of a gradient's length: one rectifier in a million turned by rounding moves it by 1e-3


def copied(network: nn.Module) -> tuple[Literal["folded", "eager"], nn.Module] | None:
    """A copy to run: with batch norms folded where that can be proven; None where there can be no copy."""
    try:
        shorter = folded(network)
        return ("folded", shorter) if shorter is not None else ("eager", twin(network))
    except Exception as error:
        log.info("the network cannot be copied, it is run as it is (%s)", brief(error))
        return None


def checked_runner(
    model: Model, shape: Sequence[int], choice: Choice, precision: Precision
) -> tuple[Way, Runner | None]:
    """The chosen back-end, or the next simpler one whose logits are the network's own, with a note; None where only
    the network itself is left.
    """
    probe = vetting.pictures(shape, choice.size)
    try:
        with torch.inference_mode():
            wanted = vetting.answers(model, untouched(model.network), probe)
    except Exception as error:
        if choice.size > 1 and out_of_memory(error):
            return checked_runner(model, shape, replace(choice, size=choice.size // 2), precision)
        raise
    for backend, fresh in _attempts(choice.backend):
        try:
            run = _make(model, replace(choice, backend=backend), precision, probe, fresh)
            with torch.inference_mode():
                logits = vetting.answers(model, run, probe)
            if precision != "full" or vetting.close(logits, wanted):
                if backend != "onnx" or fresh or _unsurprising(model, run, probe):
                    return backend, run
                reason = "the exported network in the cache differs from this one on pictures drawn just now"
            else:
                reason = "its logits differ from the network's"
        except Exception as error:  # exporters and compilers meet a stranger's network: anything may be raised
            reason = brief(error)
        log.warning("%s: %s is not used: %s", model.name, backend, reason)
    return "untouched", None


def _unsurprising(model: Model, run: Runner, probe: Images) -> bool:
    """Whether an export, which may come from a cache that others write to, agrees on pictures that none could foresee.

    With a margin over the test on fixed pictures: float noise alone must not decide, as it falls otherwise each time.
    """
    images = vetting.unforeseen(probe.shape[1:], len(probe))
    with torch.inference_mode():
        one, other = (vetting.answers(model, way, images) for way in (run, untouched(model.network)))
    return vetting.close(one, other, SURPRISE)


def same_gradients(model: Model, shape: Sequence[int], run: Runner) -> bool:
    """Whether a runner's input gradients are the network's own, but for rectifiers that float noise turns."""
    probe = vetting.pictures(shape, 2)
    try:
        with unheard(model.network):
            wanted, found = (input_gradient(model, probe, _leader, way)[0].flatten(1) for way in (None, run))
    except Exception as error:  # its forward may pass where its backward does not
        log.warning("%s: gradients are taken on the network as it is (%s)", model.name, brief(error))
        return False
    gap, size = (found - wanted).norm(dim=1), wanted.norm(dim=1)
    return bool((gap <= SLOPE_TOLERANCE * size).all())


def _leader(logits: Logits) -> Tensor:
    return logits.amax(1)


def _attempts(backend: Way) -> list[tuple[Way, bool]]:
    """What is tried, in order; an export found in the cache that disagrees is made anew, once."""
    attempts: list[tuple[Way, bool]] = [(backend, False)]
    if backend == "onnx":
        attempts.append((backend, True))
    if backend in ("onnx", "compile"):
        attempts.append(("folded", False))
    if backend != "eager":
        attempts.append(("eager", False))
    return [] if backend == "untouched" else attempts


def _make(model: Model, choice: Choice, precision: Precision, probe: Images, fresh: bool) -> Runner:
    network = model.network
    copy = ("eager", twin(network)) if choice.backend == "eager" else copied(network)
    if copy is None or (choice.backend == "folded" and copy[0] != "folded"):
        raise ValueError("there is nothing to fold")
    if choice.backend == "onnx":
        return onnx.runner(copy[1], vetting.presented(model, probe[:2]), fresh)
    return (compiled if choice.backend == "compile" else eager)(copy[1], choice.layout, precision)


def brief(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__

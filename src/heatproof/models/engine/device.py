"""Where networks run: one place that turns a wish into a torch device."""

from __future__ import annotations

import torch

from heatproof.errors import BadInput

WISHES = ("auto", "cpu", "cuda", "mps")


def pick(wish: str = "auto") -> torch.device:
    """The device asked for (`cuda:1` included); `auto` is the fastest there is."""
    if wish == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind, _, index = wish.partition(":")
    if kind not in WISHES[1:] or (index and not index.isdigit()):
        raise BadInput(f"device must be one of {', '.join(WISHES)} or like cuda:1, got {wish!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise BadInput("device 'cuda' was asked for, but torch sees no CUDA device here: use auto or cpu")
    if kind == "cuda" and index and int(index) >= torch.cuda.device_count():
        raise BadInput(f"device {wish!r} was asked for, but there are {torch.cuda.device_count()} CUDA devices")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise BadInput("device 'mps' was asked for, but torch sees no Apple GPU here: use auto or cpu")
    return torch.device(wish)


def synchronise(device: torch.device) -> None:
    """Wait for the work under way, so that a clock read now is true."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def out_of_memory(error: BaseException) -> bool:
    """Whether a failed pass failed for want of memory: the one failure a smaller batch can mend."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("out of memory" in text or "DefaultCPUAllocator" in text)

"""How many threads? On small pictures two threads mostly wait for each other: one was five times faster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from heatproof.types import Model

SMALL = 96  # pixels a side; networks for smaller pictures finish a layer before a second thread has woken up


@contextmanager
def threads_for(models: Iterable[Model]) -> Iterator[None]:
    """One thread while only small networks are asked, unless OMP_NUM_THREADS says otherwise; then as before."""
    small = all(model.view is not None and model.view.size <= SMALL for model in models)
    before = torch.get_num_threads()
    if small and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

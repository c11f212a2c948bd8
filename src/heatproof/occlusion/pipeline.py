"""Pictures are painted by a few threads while the network works on the last ones.

For imputers that let go of the interpreter while they paint (`concurrent`): there, a core that would only wait for the
next pictures makes them. What is painted is the same to the last bit, picture by picture.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeAlias

import torch

from heatproof import engine

Paint: TypeAlias = Callable[[], None]  # paints a few pictures of a block into their place


def painters() -> int:
    """Threads that may paint: one per core, and in a worker, whose fellows have the other cores, none but its own."""
    return engine.free_cores()


def painted(blocks: Iterable[Sequence[Paint]], threads: int) -> Generator[int, None, None]:
    """The number of each block as soon as it is painted; the next one is painted meanwhile if torch leaves cores idle.

    At most two blocks are in use: the one that was handed out last and the one after it. Whoever stops early closes
    the iterator; no thread paints any more when that returns. An error of a painter is raised where its block is due.
    """
    if threads < 2:
        for number, block in enumerate(blocks):
            for paint in block:
                paint()
            yield number
        return
    meanwhile = torch.get_num_threads() < threads  # else the network itself needs all cores
    waiting, number, begun = iter(blocks), 0, list[Future[None]]()
    try:
        while True:
            begun = begun or _begin(next(waiting, ()), threads)
            if not begun:
                return
            for future in begun:
                future.result()
            begun = _begin(next(waiting, ()), threads) if meanwhile else []
            yield number
            number += 1
    finally:
        for future in begun:
            future.cancel()
        wait(begun)


def _begin(block: Sequence[Paint], threads: int) -> list[Future[None]]:
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def work(paint: Paint) -> None:  # a thread has modes of its own
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            paint()

    pool = _pool(threads, os.getpid())
    return [pool.submit(work, paint) for paint in block]


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay. A fork has none of its parent's, hence the number of the process."""
    return ThreadPoolExecutor(threads, thread_name_prefix="painter")

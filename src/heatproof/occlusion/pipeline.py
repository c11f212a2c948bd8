"""A pipeline: a few threads paint pictures while the network works on the previous ones.

It serves imputers that release the interpreter lock while they paint (`concurrent`): a core that would only wait for
the next pictures then paints them. The pictures are the same to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeAlias

import torch

from heatproof import engine

Paint: TypeAlias = Callable[[], None]  # paints a few pictures of a block into their memory


def painters() -> int:
    """The number of threads that may paint: one per core; one in a worker, since other workers have the other cores."""
    return engine.free_cores()


def painted(blocks: Iterable[Sequence[Paint]], threads: int) -> Generator[int, None, None]:
    """Yields the number of each block once it is painted; the next is painted meanwhile if torch leaves cores idle.

    At most two blocks are in use: the one yielded last and the one after it. A caller that stops early closes the
    iterator; once that returns, no thread paints. An error of a painter is raised where its block is due.
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

    def work(paint: Paint) -> None:  # grad and inference mode belong to the thread
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            paint()

    pool = _pool(threads, os.getpid())
    return [pool.submit(work, paint) for paint in block]


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """A pool of threads that stay. A fork has none of its parent's threads, hence the process number as a cache key."""
    return ThreadPoolExecutor(threads, thread_name_prefix="painter")

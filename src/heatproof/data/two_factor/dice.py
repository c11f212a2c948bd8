"""Random numbers that are the same on every machine and under every NumPy.

Only the raw output of NumPy's bit generators is promised never to change; the distributions on top of it are
not. So everything here is made from raw 64-bit words.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
T = TypeVar("T")


class Dice:
    """A private stream of random numbers for one key, independent of all other streams."""

    def __init__(self, *key: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(key))

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number in [low, high)."""
        return low + (high - low) * float((int(self._bits.random_raw()) >> 11) * 2.0**-53)

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self.uniform() * (high - low + 1))

    def table(self, *shape: int) -> Floats:
        """An array of numbers in [0, 1)."""
        words = np.asarray(self._bits.random_raw(math.prod(shape)), dtype=np.uint64)
        return (words >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self.integer(0, len(choices) - 1)]

    def sign(self) -> float:
        """-1 or 1."""
        return -1.0 if self.uniform() < 0.5 else 1.0

"""Errors and warnings on their way from a worker to the driver."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from heatproof.errors import HeatproofError


class WorkerLost(HeatproofError):
    """A worker ended before its work did."""


class Elsewhere(Exception):
    """The traceback inside the worker, as the cause of an error raised here."""


def portable(error: Any, instead: type[Exception]) -> Any:
    """The error or warning itself if it can be pickled, else another with the same text."""
    try:
        if type(error).__module__ not in sys.modules:
            raise ImportError
        pickle.loads(pickle.dumps(error))
    except Exception:
        return instead(f"{type(error).__name__}: {error}")
    return error

"""Makes torchvision importable beside a torch for which it was not compiled.

The torchvision wheel on PyPI is built against a CUDA torch. Beside a CPU torch its C++ extension does not
load, and the import then fails on two lines that describe the operators `nms` and `qnms` (of object
detectors) to torch, because they are not declared. Declaring their signatures is enough: classifiers never
call them, and a call still raises torch's own error that the operator has no kernel.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from typing import Any

import torch

from heatproof.errors import Missing

_OPERATORS = ("nms", "qnms")
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []  # torch forgets a declaration when its Library is collected


def import_torchvision(purpose: str) -> Any:
    """The torchvision package, its import repaired where needed, or `Missing` with what to install."""
    if importlib.util.find_spec("torchvision") is None:
        raise Missing.package("torchvision", "vision", purpose)
    try:
        return _import()
    except (ImportError, OSError, RuntimeError) as error:
        raise Missing(
            f"{purpose} needs torchvision, which is installed but cannot be imported ({error}): "
            "install the torchvision that belongs to this torch"
        ) from error


@cache
def _import() -> Any:
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "does not exist" not in str(error):
            raise
    # Modules left behind by the failed import would leave the second import with half a package.
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in _OPERATORS:
        if not hasattr(torch.ops.torchvision, operator):
            library.define(operator + _SIGNATURE)  # type: ignore[no-untyped-call]
    _declared.append(library)
    return importlib.import_module("torchvision")

"""Makes `import torchvision` work beside a torch for which it was not compiled.

The torchvision wheel on PyPI is built against a CUDA torch. Beside a CPU torch its C++ extension does not load, and the
import then fails on lines that describe the operators `nms` and `qnms` (of object detectors) to torch, because they are
not declared. Declaring their signatures is enough: classifiers never call them, and a call still raises torch's own
error that the operator has no kernel.

`mend()` watches for the first import of torchvision in the process, whoever makes it (heatproof, timm, transformers, a
user's file), and repairs it if it fails in that way. It imports nothing itself.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any

_OPERATORS = ("nms", "qnms")
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[Any] = []  # torch forgets a declaration when its Library is collected


def mend() -> None:
    """From here on, the first import of torchvision is repaired if need be."""
    if "torchvision" not in sys.modules and not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds torchvision where it is, and lets a loader that repairs it load it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torchvision":
            return None
        for finder in sys.meta_path:
            look = getattr(finder, "find_spec", None)
            if finder is self or look is None:
                continue
            found: importlib.machinery.ModuleSpec | None = look(name, path, target)
            if found is not None:
                if found.loader is not None:
                    found.loader = _Repairing(found.loader)
                return found
        return None


class _Repairing(Loader):
    """Runs the package; if its operators are not declared, declares them and runs it once more."""

    def __init__(self, inner: Loader) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:  # resources are read through the loader, too
        return getattr(self.inner, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        try:
            self.inner.exec_module(module)
        except RuntimeError as error:
            if "does not exist" not in str(error):
                raise
            # Modules left behind by the failed import would leave the second one with half a package.
            for name in [name for name in sys.modules if name.startswith("torchvision.")]:
                del sys.modules[name]
            _declare()
            self.inner.exec_module(module)


def _declare() -> None:
    import torch  # torchvision has imported it by now

    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in _OPERATORS:
        if not hasattr(torch.ops.torchvision, operator):
            library.define(operator + _SIGNATURE)  # type: ignore[no-untyped-call]
    _declared.append(library)

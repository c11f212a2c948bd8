"""heatproof: which heatmaps hold up.

results = heatproof.run(heatproof.Study(models=[...], datasets=[...], methods=[...], metrics=[...]), "runs/first")
results.ranking("srg")
heatproof.report(results, "report.html")
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from heatproof._version import __version__

if TYPE_CHECKING:
    from heatproof.attribute import attribute
    from heatproof.audit.judges import audit
    from heatproof.data.in_memory import pictures
    from heatproof.errors import HeatproofError
    from heatproof.judge import judge
    from heatproof.models import load
    from heatproof.on_tensors import explain, score
    from heatproof.registry import dataset, find, imputer, method, metric, model, names, part, protocol, segmenter
    from heatproof.report import report
    from heatproof.results import Results
    from heatproof.run.loop import run
    from heatproof.run.until import Solid
    from heatproof.spec.study import Study
    from heatproof.types import (
        Attribution,
        Batch,
        Cost,
        Curve,
        Dataset,
        Imputer,
        Method,
        Metric,
        Model,
        Scored,
        Segmenter,
        View,
    )

# Loaded when first used, so that `heatproof --help` and drawing a report do not wait for torch.
_HOMES = {
    "attribute": ["attribute"],
    "audit.judges": ["audit"],
    "data.in_memory": ["pictures"],
    "errors": ["HeatproofError"],
    "judge": ["judge"],
    "models": ["load"],
    "on_tensors": ["explain", "score"],
    "registry": ["dataset", "find", "imputer", "method", "metric", "model", "names", "part", "protocol", "segmenter"],
    "report": ["report"],
    "results": ["Results"],
    "run": ["run"],
    "run.until": ["Solid"],
    "spec.study": ["Study"],
    "types": [
        *["Attribution", "Batch", "Cost", "Curve", "Dataset", "Imputer", "Method", "Metric", "Model"],
        *["Scored", "Segmenter", "View"],
    ],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Attribution",
    "Batch",
    "Cost",
    "Curve",
    "Dataset",
    "HeatproofError",
    "Imputer",
    "Method",
    "Metric",
    "Model",
    "Results",
    "Scored",
    "Segmenter",
    "Solid",
    "Study",
    "View",
    "__version__",
    "attribute",
    "audit",
    "dataset",
    "explain",
    "find",
    "imputer",
    "judge",
    "load",
    "method",
    "metric",
    "model",
    "names",
    "part",
    "pictures",
    "protocol",
    "report",
    "run",
    "score",
    "segmenter",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(f"heatproof.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'heatproof' has no attribute {name!r}")


class _Package(ModuleType):
    """The package as a module: `heatproof.run`, `judge`, `report`, `audit` and `attribute` stay the
    functions even after the submodules of these names are imported.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOME_OF or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

"""Numerical stability of methods: which of them amplify float noise.

Scores of a stable method differ by float noise between machines; those of an unstable one may differ visibly. The
values of built-in methods are measured by `benchmarks/noise.py`, which writes the file read here. A plug-in's method
declares `unstable`; `heatproof.audit.float_noise` measures it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from heatproof.registry import name_of
from heatproof.traits import method_traits

FILE = "float_noise.json"
UNSTABLE = 3e-3  # of a map's length: rectifiers turned by rounding stay below it, paths that fork do not


@cache
def measured() -> Mapping[str, float]:
    """How far float noise moves the maps of each registered method, relative to their length."""
    noise: dict[str, float] = json.loads((files("heatproof") / "methods" / FILE).read_text())["methods"]
    return noise


def is_unstable(method: object) -> bool:
    """Whether a method, or one that it wraps, amplifies float noise: as declared, else as measured."""
    declared = method_traits(method).unstable
    if declared is not None:
        return declared
    kind, name = name_of(method) or ("", "")
    if kind == "method" and measured().get(name, 0.0) > UNSTABLE:
        return True
    if not dataclasses.is_dataclass(method) or isinstance(method, type):
        return False
    return any(is_unstable(getattr(method, field.name)) for field in dataclasses.fields(method))

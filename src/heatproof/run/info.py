"""What was run: enough to run it again, and for the report to speak of each component."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from heatproof import engine, stability
from heatproof._version import __version__
from heatproof.registry import Entry, name_of
from heatproof.results.run_info import Machine, MethodInfo, MetricInfo, RunInfo, StudyInfo
from heatproof.results.run_state import RunState
from heatproof.run.plan import left_out
from heatproof.run.shards import EDITION
from heatproof.spec import recipe
from heatproof.spec.study import Study
from heatproof.storage.sealed_json import typed
from heatproof.traits import cost_of, is_random, method_traits, metric_traits, part_traits, parts_of


def describe(studies: Sequence[Study], state: RunState, damaged: Sequence[str], noise: Mapping[str, float]) -> RunInfo:
    """What was run: enough to run it again, and for the report to speak of each component.

    `noise` is how far rounding moves maps of methods, as measured in this run.
    """
    methods = {recipe.label(m): m for one in studies for m in one.methods}
    metrics = {recipe.label(m): m for one in studies for m in one.metrics}
    # A protocol says which of its metrics are its answer; the others are variants of it, or measure something else.
    main = {label for one in studies for label in one.notes.get("main", map(recipe.label, one.metrics))}
    return RunInfo(
        edition=EDITION,
        studies=tuple(typed(StudyInfo, one.plain(), "a study") for one in studies),
        protocols=tuple(sorted({one.protocol for one in studies if one.protocol})),
        left_out=left_out(studies),
        methods={label: _method(m, noise.get(label)) for label, m in methods.items()},
        metrics={label: _metric(m, label in main) for label, m in metrics.items()},
        versions={
            "heatproof": __version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("torch", "numpy", "scipy", "zennit")},
        },
        machine=Machine(platform.system(), platform.machine(), torch.get_num_threads()),
        started=time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(state.began)),
        seconds=state.seconds,
        engine_kind=engine.current().kind,
        engine=engine.current().record()
        if engine.current().kind == "auto"
        else {"every pass": dataclasses.asdict(engine.REFERENCE)},
        damaged=tuple(damaged),
    )


def _method(method: object, noise: float | None) -> MethodInfo:
    traits = dataclasses.asdict(method_traits(method))
    moved = noise is not None and noise > stability.UNSTABLE
    found = {"unstable": stability.is_unstable(method) or moved, "random": is_random(method), "float_noise": noise}
    return MethodInfo(**{**traits, **found, **_about(method)})


def _metric(metric: Any, main: bool) -> MetricInfo:
    price = cost_of(metric)
    return MetricInfo(
        **dataclasses.asdict(metric_traits(metric)),
        **_about(metric),
        higher_is_better=bool(metric.higher_is_better),
        main=main,
        cost=price and price._asdict(),
    )


def _about(component: Any) -> dict[str, Any]:
    known = name_of(component)
    made = type(component) if not hasattr(component, "__qualname__") else component
    about = Entry("method", "", made)
    hiding = [one for one in parts_of(component) if part_traits(one).short]
    return {
        "name": known[1] if known else recipe.label(component),
        "summary": about.summary,
        "paper": about.paper,
        "fields": recipe.plain(component).get("fields", {}),
        "hides": "; ".join(dict.fromkeys(part_traits(one).in_words for one in hiding)),
    }

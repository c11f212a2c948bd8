"""The conformance kit on everything registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cheaper
import pytest
import torch

from heatproof import registry, testing
from heatproof.types import Attribution

KINDS: tuple[registry.Kind, ...] = ("method", "metric", "imputer", "segmenter", "dataset", "protocol")
EVERYTHING = [(kind, name) for kind in KINDS for name in registry.names(kind)]


@pytest.mark.parametrize(("kind", "name"), EVERYTHING, ids=[f"{kind}-{name}" for kind, name in EVERYTHING])
def test_it_keeps_its_promises(kind: registry.Kind, name: str) -> None:
    component = registry.find(kind, name, **cheaper.OF.get(kind, {}).get(name, {}))
    broken = [str(verdict) for verdict in testing.check_component(kind, component) if not verdict.holds]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", [name for name in registry.names("model") if name.startswith("embedded:")])
def test_embedded_models_answer(name: str) -> None:
    broken = [str(v) for v in testing.check_component("model", registry.find("model", name)) if not v.holds]
    assert not broken, "\n".join(broken)


@dataclass(frozen=True)
class Judge:
    """A metric of which one thing is wrong."""

    fault: str = ""

    @property
    def higher_is_better(self) -> bool | None:
        return None if self.fault == "no direction" else True

    def __call__(self, attribution: Attribution, /) -> Any:
        scores = attribution.maps.flatten(1).mean(1).double()
        if self.fault == "nothing finite":
            return scores * torch.nan
        if self.fault == "silent NaN":
            return scores / attribution.maps.flatten(1).std(1)
        if self.fault == "NaN alone":
            return scores * torch.nan if len(scores) == 1 else scores
        if self.fault == "leaves training on":
            attribution.model.network.train()
        if self.fault == "one number":
            return float(scores.mean())
        if self.fault == "raises":
            raise ZeroDivisionError("by zero")
        return scores


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", ""),
        ("no direction", "higher_is_better is None"),
        ("nothing finite", "all are NaN or infinite"),
        ("silent NaN", "no note says why"),
        ("NaN alone", "NaN one time and not the other"),
        ("leaves training on", "changed: training"),
        ("one number", "must return one score per picture"),
        ("raises", "ZeroDivisionError: by zero"),
    ],
)
def test_a_faulty_metric_fails_with_what_is_wrong(fault: str, message: str) -> None:
    broken = [str(verdict) for verdict in testing.check_component("metric", Judge(fault)) if not verdict.holds]
    assert bool(broken) == bool(fault)
    assert any(message in output for output in broken) or not fault

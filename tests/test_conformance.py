"""The conformance kit on everything registered."""

from __future__ import annotations

import cheaper
import pytest

from heatproof import registry, testing

KINDS: tuple[registry.Kind, ...] = ("method", "metric", "imputer", "segmenter", "dataset", "protocol")
EVERYTHING = [(kind, name) for kind in KINDS for name in registry.names(kind)]


@pytest.mark.parametrize(("kind", "name"), EVERYTHING, ids=[f"{kind}-{name}" for kind, name in EVERYTHING])
def test_it_keeps_its_promises(kind: registry.Kind, name: str) -> None:
    component = registry.find(kind, name, **(cheaper.METHODS.get(name, {}) if kind == "method" else {}))
    broken = [str(verdict) for verdict in testing.check_component(kind, component) if not verdict.holds]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", [name for name in registry.names("model") if name.startswith("embedded:")])
def test_embedded_models_answer(name: str) -> None:
    broken = [str(v) for v in testing.check_component("model", registry.find("model", name)) if not v.holds]
    assert not broken, "\n".join(broken)

"""Methods that replace a network's operations give the same maps on whatever copy of it the engine runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from networks import batch, small_cnn, small_resnet
from torch import Tensor

from heatproof import engine
from heatproof.engine.backends.eager import copied, in_layout
from heatproof.engine.backends.folded import folded
from heatproof.methods.deep_lift import DeepLift
from heatproof.methods.guided_backprop import DeconvNet, GuidedBackprop
from heatproof.types import Model

METHODS = [GuidedBackprop(), DeconvNet(), DeepLift(), DeepLift("blur"), DeepLift("uniform", draws=2)]


# In single precision DeepLIFT divides small differences by small differences, which enlarges their rounding.
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-4), (torch.float64, 1e-6)])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("make", [small_cnn, lambda: small_cnn(inplace=True), small_resnet])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_copy_is_explained_like_the_network(
    method: Any,
    make: Callable[[], Model],
    layout: Any,
    dtype: torch.dtype,
    tolerance: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, pictures = make(), batch(3)
    model.network.to(dtype)
    wanted = method(model, pictures)
    run, requested = in_layout(folded(model.network) or copied(model.network), layout), []

    def watched(rows: Tensor) -> Any:
        requested.append(len(rows))
        return run(rows)

    monkeypatch.setattr(engine, "settled", lambda *_: engine.Plan("", engine.Choice("folded", layout, 2), watched))
    got = method(model, pictures)
    assert set(requested) <= {1, 2}  # one picture only where all share a baseline
    assert 2 in requested
    assert torch.allclose(got, wanted, rtol=0, atol=tolerance * float(wanted.abs().max()))

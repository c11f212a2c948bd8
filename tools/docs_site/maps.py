"""A map of every method, for the same picture and network: the pictures of the catalogue."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from heatproof import engine, models, registry
from heatproof.attribute import attribute
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import HeatproofError
from heatproof.report.heat import overlay, shown
from heatproof.types import Batch, Model

SIDE = 192  # pixels of a drawn map
CNN, VIT = "embedded:object", "embedded:scene_vit"


def maps(names: Sequence[str] = ()) -> Iterator[tuple[str, bytes]]:
    """(method, PNG) for these or all methods, but for those that need more than a picture.

    Methods that need a network of tokens explain the embedded ViT, all others the embedded convolutional network.
    """
    batch = TwoFactor(count=1).batch((0,))
    asked = {spec: _aimed(models.load(spec), batch) for spec in (CNN, VIT)}
    for name in names or registry.names("method"):
        for model, aimed in asked.values():
            heat = _map(model, aimed, name)
            if heat is not None:
                yield name, _png(aimed, heat)
                break


def example() -> bytes:
    """The picture that all of them explain."""
    batch = TwoFactor(count=1).batch((0,))
    return _encoded(shown(_pixels(batch), None, SIDE))


def _aimed(model: Model, batch: Batch) -> tuple[Model, Batch]:
    return model, batch.aimed(engine.forward(model, batch.images).argmax(1))


def _map(model: Model, batch: Batch, name: str) -> NDArray[np.float32] | None:
    """The map, or None where the method does not apply to this network or needs more than a picture."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            heat = attribute(model, batch, registry.find("method", name)).maps[0].numpy()
    except (HeatproofError, TypeError):
        return None
    return heat if np.isfinite(heat).all() else None


def _pixels(batch: Batch) -> NDArray[np.uint8]:
    return (batch.images[0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)


def _png(batch: Batch, heat: NDArray[np.float32]) -> bytes:
    return _encoded(overlay(_pixels(batch), heat, None, SIDE))


def _encoded(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()

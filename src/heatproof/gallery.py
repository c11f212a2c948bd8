"""The first pictures of each data set and their maps, kept beside the rows so that the report needs no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from heatproof import recipe
from heatproof.store import Store
from heatproof.types import Attribution, Batch

PICTURES = 6


def keep_pictures(
    store: Store,
    place: Mapping[str, str],
    classes: Sequence[str],
    batch: Batch,
    method: str,
    attribution: Attribution | None,
) -> None:
    """Store the first pictures once, and this method's maps of them."""
    folder = f"gallery/{recipe.key(dict(place))}"
    few = batch.select(range(min(PICTURES, len(batch))))
    if store.get_json(f"{folder}/about.json") is None:
        pictures = {"images": (few.images.cpu() * 255).round().byte().numpy(), "targets": few.targets.cpu().numpy()}
        if few.regions is not None:
            pictures["regions"] = few.regions.cpu().numpy()
        store.put_arrays(f"{folder}/pictures.npz", pictures)
        store.put_json(f"{folder}/about.json", {**place, "ids": list(few.ids), "classes": list(classes)})
    if attribution is not None:
        rows = [row for row, identity in enumerate(attribution.batch.ids) if identity in few.ids]
        maps = attribution.maps[rows].cpu().numpy().astype("float16" if _fits(attribution.maps) else "float32")
        ids = np.array([attribution.batch.ids[row] for row in rows], dtype=np.str_)
        arrays = {"maps": maps, "ids": ids, "method": np.array(method, dtype=np.str_)}
        store.put_arrays(f"{folder}/{recipe.key(method)}.npz", arrays)


def _fits(maps: torch.Tensor) -> bool:
    """Half precision is plenty for a picture, unless the map's units fall out of its range."""
    largest = float(maps.abs().max())
    return largest == 0 or 1e-2 < largest < 1e4

"""What components need of pictures, whether a batch has it, and what a user can give."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from heatproof.traits import Need
from heatproof.types import Batch

_MET: dict[Need, Callable[[Batch], bool]] = {
    "regions": lambda batch: batch.regions is not None,
    "twins": lambda batch: batch.twins is not None,
    "labels": lambda batch: any(bool((label >= 0).all()) for label in batch.labels.values()),
}
WANTED: dict[Need, str] = {
    "regions": "a mask of the object in each picture (--masks FOLDER, or a column 'mask' in a table)",
    "twins": "twins: each picture without its object, too (--images 'bam(path=FOLDER)' or cutouts)",
    "prior": "a diffusion prior of such pictures: the embedded one has learnt embedded pictures "
    "(in_distribution(prior=diffusers:FOLDER))",
    "labels": "labels that are the model's classes (sub-folders named index_name, or a column 'label' in a table)",
}


def unmet(needs: Iterable[Need], batch: Batch) -> list[Need]:
    """The needs that these pictures do not meet; needs that no picture can meet (gradients) are none of them."""
    return [need for need in needs if need in _MET and not _MET[need](batch)]

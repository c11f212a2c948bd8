"""The class indices of ImageNet's synsets (`n01440764` -> 0), which name its folders and boxes."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Collection
from pathlib import Path

from heatproof.errors import BadInput

_SYNSET = re.compile(r"n\d{8}")
CLASSES = 1000
LISTING = "LOC_synset_mapping.txt"  # comes with the challenge's pictures: a synset and its names per line


def is_synset(name: str) -> bool:
    return bool(_SYNSET.fullmatch(name))


def synset_indices(listing: str, home: Path, folders: Collection[str]) -> dict[str, int]:
    """Synset -> class: the place among all thousand in alphabetical order.

    They are read from `listing`, a file with a synset at the start of each line, or from one found with the pictures,
    or from the folders where all thousand are there, or from timm.
    """
    beside = [place / LISTING for place in (home, *home.parents[:3]) if (place / LISTING).is_file()]
    if listing or beside:
        found = _listed(Path(listing) if listing else beside[0])
    elif len(folders) == CLASSES:
        found = set(folders)
    else:
        found = _of_timm()
    if len(found) != CLASSES:
        raise BadInput(
            f"to know which classes the synsets mean, all {CLASSES} must be known, got {len(found)}: name a file that "
            f"lists them (synsets=PATH, such as {LISTING} of the challenge), or install timm"
        )
    return {name: index for index, name in enumerate(sorted(found))}


def _listed(path: Path) -> set[str]:
    if not path.is_file():
        raise BadInput(f"there is no file {path} with the synsets")
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if line.strip() and is_synset(line.split()[0])}


def _of_timm() -> set[str]:
    """The listing that comes with timm, read without importing it."""
    found = importlib.util.find_spec("timm")
    listing = Path(found.origin).parent / "data/_info/imagenet_synsets.txt" if found and found.origin else None
    return _listed(listing) if listing is not None and listing.is_file() else set()

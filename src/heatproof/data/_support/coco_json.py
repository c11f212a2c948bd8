"""COCO's instance annotations: one JSON file of pictures, objects and categories."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heatproof.errors import BadInput

PARTS = {
    "images": ("id", "file_name"),
    "annotations": ("image_id", "category_id"),
    "categories": ("id", "name"),
}


def read_json(path: Path, what: str) -> Any:
    """What a JSON file holds, or `BadInput`."""
    if not path.is_file():
        raise BadInput(f"{path} must be {what}: there is no such file")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path} must be {what}: {str(error)[:200] or type(error).__name__}") from error


def read_annotations(path: Path) -> dict[str, Any]:
    """`instances_*.json` with its images, annotations and categories, or `BadInput`."""
    content = read_json(path, "a COCO instances file")
    if not isinstance(content, Mapping):
        raise BadInput(f"{path} must be a COCO instances file, got a JSON {type(content).__name__}")
    lacking = [name for name in PARTS if name not in content]
    if lacking:
        raise BadInput(f"{path} must be a COCO instances file; it has no {', '.join(lacking)}")
    for name, fields in PARTS.items():
        rows = content[name]
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            raise BadInput(f"{path}: {name} must be a list, got {type(rows).__name__}")
        for place, row in enumerate(rows):
            absent = fields if not isinstance(row, Mapping) else [field for field in fields if field not in row]
            if absent:
                raise BadInput(f"{path}: {name}[{place}] must have {', '.join(fields)}; it lacks {', '.join(absent)}")
    return dict(content)

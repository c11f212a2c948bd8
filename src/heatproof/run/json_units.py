"""Units and records as earlier versions stored them: a JSON file each, under a checksum. They are only read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from heatproof.run.census import ShardRecord
from heatproof.run.columns import Unit
from heatproof.storage.sealed_json import Damaged, typed


def unit_file(root: Path, key: str) -> Path:
    """Where a unit was kept."""
    return root / "units" / key[:2] / f"{key}.json"


def unit_in(payload: bytes, key: str) -> Unit | None:
    """What a unit file holds, if it is sound and this unit's."""
    seal, _, body = payload.partition(b"\n")
    if seal.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
        return None
    held = json.loads(body)
    if not isinstance(held, dict) or held.pop("key", None) != key:
        return None
    return Unit(**held) if {"machine", *held} == {f.name for f in fields(Unit)} else None


def record_in(stored: Mapping[str, Any] | None, key: str) -> ShardRecord | None:
    """What a record file holds, if it is this shard's."""
    try:
        found = None if stored is None else typed(ShardRecord, stored, key)
    except Damaged:
        return None
    return found if found and found.key == key else None

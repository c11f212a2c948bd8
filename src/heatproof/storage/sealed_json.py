"""JSON objects with a seal: a hash of their content, so that a damaged file is never read as a sound one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from heatproof.errors import BadInput

SEAL = "seal"


class Damaged(BadInput):
    """A file whose content does not match its seal."""


def written(value: Mapping[str, Any]) -> bytes:
    """The text of a file that holds an object and its seal."""
    return json.dumps({**value, SEAL: _seal(value)}, indent=1).encode()


def read(payload: bytes, where: object) -> dict[str, Any]:
    """The object in a file, without its seal."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Damaged(f"{where} must be a JSON object; it is damaged, or something else")
    if found.pop(SEAL, None) != _seal(found):
        raise Damaged(f"{where} is damaged, or was edited: its content does not match its seal")
    return found


def _seal(value: Mapping[str, Any]) -> str:
    # Sorted and without spaces: the seal does not depend on the layout.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()

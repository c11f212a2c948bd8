"""JSON objects with a seal: a hash of their content, so that a damaged file is never read as a sound one.

A seal is a checksum, not a proof of who wrote a file: `typed` checks what is read field by field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from heatproof.errors import BadInput

SEAL = "seal"
DEEPEST = 60  # levels of nesting; a nested component takes about ten

T = TypeVar("T")


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


def typed(kind: type[T], value: object, where: object) -> T:
    """JSON data as a dataclass, every field checked for its type; unknown fields, of a later version, are left out."""
    try:
        if _is_deeper(value, DEEPEST):
            raise msgspec.ValidationError(f"Expected at most {DEEPEST} levels")
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Damaged(
            f"{where} is not as this version of heatproof writes it ({error}): run the same command again"
        ) from error


def _is_deeper(value: object, levels: int) -> bool:
    """Whether data is nested so deep that reading or writing it could exhaust the stack."""
    layer = [value]
    for _ in range(levels):
        layer = [
            item
            for one in layer
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        if not layer:
            return False
    return True


def _seal(value: Mapping[str, Any]) -> str:
    # Sorted and without spaces: the seal does not depend on the layout.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()

"""Range checks for numeric fields: nonsense is refused where it is set, by the field's name, not deep inside."""

from __future__ import annotations

import math
from numbers import Integral

from heatproof.errors import BadInput

# Conditions are written so that NaN fails them.


def check_count(name: str, count: int, least: int = 1) -> None:
    """Refuse counts below `least`, and fractions."""
    if not isinstance(count, Integral):
        raise BadInput(f"{name} must be a whole number, got {count!r}")
    if not count >= least:
        raise BadInput(f"{name} must be at least {least}, got {count}")


def check_positive(name: str, value: float, endless: bool = False) -> None:
    """Refuse values that are not above 0; infinite ones too, unless the field gives them a meaning (`endless`)."""
    if not (value > 0 and (endless or math.isfinite(value))):
        raise BadInput(f"{name} must be {'finite' if value > 0 else 'above 0'}, got {value}")


def check_not_negative(name: str, value: float, endless: bool = False) -> None:
    """Refuse negative values; infinite ones too, unless the field gives them a meaning (`endless`)."""
    if not (value >= 0 and (endless or math.isfinite(value))):
        raise BadInput(f"{name} must be {'finite' if value > 0 else 'at least 0'}, got {value}")


def check_share(name: str, value: float, some: bool = False) -> None:
    """Refuse shares outside of [0, 1]; 0 too, if there must be `some`."""
    if not 0 <= value <= 1 or (some and value == 0):
        raise BadInput(f"{name} must be {'above 0 and at most 1' if some else 'from 0 to 1'}, got {value}")

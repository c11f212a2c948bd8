"""Reads `study.json` as plain data and checks all of it before anything is built from it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from heatproof.errors import BadInput
from heatproof.spec import recipe
from heatproof.storage import sealed_json

MOST_BYTES = 64 * 2**20
LONGEST_TEXT = 20_000  # characters; a path has at most 4,096
DEEPEST = 40  # levels; a nested component takes about ten
MOST_PICTURES = 2**40
MOST_SEED = 2**63 - 1
MOST_REPEATS = 100


def read(path: Path) -> list[dict[str, Any]]:
    """The studies of a `study.json` that a run wrote; raises `BadInput` for anything else."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{path} must be a study.json of at most {MOST_BYTES >> 20} MB, got more")
        if not path.is_file():  # a pipe would block, a device never end
            raise BadInput(f"{path} must be a study.json that a run wrote; it is no file")
        stored = _unsealed(path.read_bytes(), path)
    except OSError as error:
        raise BadInput(f"there is no study file {path} that can be read: {error.strerror}") from None
    except RecursionError:
        raise BadInput(f"{path} must be a study.json that a run wrote; it is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path} must be a study.json that a run wrote; it is not JSON: {error}") from error
    if not isinstance(stored, dict) or not isinstance(stored.get("studies"), list) or not stored["studies"]:
        raise BadInput(f"{path} must be a study.json that a run wrote, with a list 'studies'")
    if stored.get("heatproof_study", 1) != 1:
        raise BadInput(f"{path} is a study of form {stored['heatproof_study']!r}; this heatproof reads form 1")
    for i, study in enumerate(stored["studies"]):
        check(study, f"{path}: studies[{i}]")
    return stored["studies"]  # type: ignore[no-any-return]


def _unsealed(payload: bytes, path: Path) -> Any:
    """The content, checked against its seal if there is one: files written by hand have none."""
    found = json.loads(payload)
    if not isinstance(found, dict) or sealed_json.SEAL not in found:
        return found
    try:
        return sealed_json.read(payload, path)
    except sealed_json.Damaged as error:
        raise BadInput(f"{error}; if you edited it on purpose, take its line 'seal' out") from error


def check(study: Any, where: str) -> None:
    """Raises `BadInput` for the first value in a stored study that a run would not have written."""
    _need(isinstance(study, dict), where, "an object", study)
    _plain(study, where, 0)
    for name in ("models", "datasets", "methods", "metrics"):
        _need(
            isinstance(study.get(name), list) and study[name], f"{where}.{name}", "a list, not empty", study.get(name)
        )
    for i, model in enumerate(study["models"]):
        place = f"{where}.models[{i}]"
        _need(isinstance(model, dict) and isinstance(model.get("spec"), str), place, "a 'spec' by name", model)
        for name in ("from", "revision"):
            _need(isinstance(model.get(name, ""), str), f"{place}.{name}", "a text", model.get(name))
    for name in ("datasets", "methods", "metrics"):
        for i, item in enumerate(study[name]):
            place = f"{where}.{name}[{i}]"
            _need(isinstance(item, dict) and recipe.form(item) != "", place, "the recipe of a component", item)
            _recipe(item, place)
    for name in ("protocol", "target", "file", "folder"):
        _need(isinstance(study.get(name, ""), str), f"{where}.{name}", "a text", study.get(name))
    _need(isinstance(study.get("notes", {}), dict), f"{where}.notes", "an object", study.get("notes"))
    _need(isinstance(study.get("pictures", []), list), f"{where}.pictures", "a list", study.get("pictures"))
    numbers = (study.get("seed", 0), study.get("limit"), study.get("shard", 1), study.get("repeats", 0))
    check_numbers(*numbers, f"{where}: ")


def check_numbers(seed: Any, limit: Any, shard: Any, repeats: Any = 0, where: str = "") -> None:
    """Raises `BadInput` for a seed, limit, shard or number of repeats that is not a whole number in its range."""
    for name, value, least, most in (("limit", limit, 1, MOST_PICTURES), ("shard", shard, 1, MOST_PICTURES)):
        if value is not None or name == "shard":
            wanted = f"{where}{name} must be at least 1 picture"
            if not _whole(value) or not least <= value <= most:
                raise BadInput(f"{wanted}, a whole number of at most {most}, got {_shown(value)}")
    if not _whole(repeats) or not 0 <= repeats <= MOST_REPEATS:
        raise BadInput(f"{where}repeats must be from 0 to {MOST_REPEATS} other seeds, got {_shown(repeats)}")
    if not _whole(seed) or not 0 <= seed <= MOST_SEED:
        raise BadInput(f"{where}seed must be a whole number from 0 to {MOST_SEED}, got {_shown(seed)}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: Any, where: str, depth: int) -> None:
    """Rejects text, numbers or nesting of a size that only an attack or a fault has."""
    _need(depth <= DEEPEST, where, f"at most {DEEPEST} levels deep", "more")
    if isinstance(value, str):
        _need(len(value) <= LONGEST_TEXT, where, f"a text of at most {LONGEST_TEXT} letters", f"{len(value)} letters")
        sound = "\0" not in value and value.encode("utf-8", "ignore").decode() == value  # no lone surrogates
        _need(sound, where, "a text", value)
    elif isinstance(value, float):
        _need(math.isfinite(value), where, "a finite number", value)
    elif _whole(value):
        _need(abs(value) < 2**64, where, "a number of at most 64 bits", "a larger one")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _plain(item, f"{where}[{i}]", depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            _plain(name, where, depth)
            _plain(item, f"{where}.{name}", depth + 1)


def _recipe(value: Any, where: str) -> None:
    """Checks recipes at every depth, as `recipe.build` reads them."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            _recipe(item, f"{where}[{i}]")
    if not isinstance(value, dict):
        return
    kind = recipe.form(value)
    if kind == "partial":
        _need(isinstance(value["partial"], dict), where, "a partial of a function", value["partial"])
        _need(isinstance(value["arguments"], list), where, "a list of arguments", value["arguments"])
        _need(isinstance(value["keywords"], dict), where, "an object of keywords", value["keywords"])
    elif kind:
        _need(isinstance(value[kind], str), f"{where}.{kind}", "a name", value[kind])
        for name in ("source", "revision"):
            _need(isinstance(value.get(name, ""), str), f"{where}.{name}", "a text", value.get(name))
        _need(isinstance(value.get("fields", {}), dict), f"{where}.fields", "an object", value.get("fields"))
    for name, item in recipe.parts(value):
        _recipe(item, f"{where}.{name}")


def _need(fits: Any, where: str, wanted: str, got: Any) -> None:
    if not fits:
        raise BadInput(f"{where[:300]} must be {wanted}, as a run writes it; got {_shown(got)}")


def _shown(value: Any, most: int = 80) -> str:
    text = ascii(value) if not isinstance(value, dict | list) else f"{type(value).__name__} of {len(value)}"
    return text if len(text) <= most else f"{text[:most]}…"

"""Whose code it is, and whether it was edited: what keys of one's own methods rest on."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from heatproof import registry
from heatproof.methods.integrated_gradients import IntegratedGradients
from heatproof.methods.saliency import Saliency
from heatproof.spec import recipe, source_hash

FILE = """
from __future__ import annotations
import dataclasses
import beside

SCALE = 2.0

def helper(maps):
    return SCALE * maps

def unrelated(maps):
    return -maps

class Base:
    def turned(self, maps):
        return maps

@dataclasses.dataclass(frozen=True)
class Mine(Base):
    width: int = 3

    def __call__(self, model, batch):
        return helper(self.turned(beside.far(batch.images.mean(1))))

def mine(model, batch):
    return helper(batch.images.mean(1))

def made(sign):
    def inner(model, batch):
        return sign * batch.images.mean(1)
    return inner
"""
BESIDE = "def far(maps):\n    return maps\n"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a user's two files and import them anew."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str = FILE, other: str = BESIDE) -> Any:
        for name, content in (("somebodys", text), ("beside", other)):
            (tmp_path / f"{name}.py").write_text(content)
            sys.modules.pop(name, None)
        for cached in tmp_path.glob("__pycache__/*"):
            cached.unlink()
        importlib.invalidate_caches()
        return importlib.import_module("somebodys")

    yield write
    for name in ("somebodys", "beside"):
        sys.modules.pop(name, None)


EDITS = {
    "the call": ("return helper(self", "return -helper(self"),
    "a helper": ("SCALE * maps", "SCALE + maps"),
    "a constant": ("SCALE = 2.0", "SCALE = 3.0"),
    "the base class": ("        return maps\n\n@", "        return -maps\n\n@"),
}


@pytest.mark.parametrize("what", EDITS)
def test_any_edit_that_could_matter_is_another_key(written: Any, what: str) -> None:
    before = recipe.key(written().Mine())
    assert recipe.key(written().Mine()) == before
    assert recipe.key(written(FILE.replace(*EDITS[what])).Mine()) != before


def test_a_file_beside_it_counts_and_what_it_never_reaches_does_not(written: Any) -> None:
    before = recipe.key(written().Mine())
    assert recipe.key(written(other=BESIDE.replace("return maps", "return -maps")).Mine()) != before
    assert recipe.key(written(FILE.replace("return -maps", "return 5 * maps")).Mine()) == before  # `unrelated` only


def test_functions_closures_and_partials_are_what_they_hold(written: Any) -> None:
    module = written()
    things = [
        module.mine,
        module.made(1),
        module.made(-1),
        functools.partial(module.mine, batch=1),
        functools.partial(module.mine, batch=2),
        functools.partial(module.unrelated, batch=1),
    ]
    assert len({recipe.key(thing) for thing in things}) == len(things)
    assert recipe.key(module.made(1)) == recipe.key(module.made(1))
    before = recipe.key(module.mine)
    assert recipe.key(written(FILE.replace("SCALE * maps", "SCALE + maps")).mine) != before


def test_a_network_a_function_holds_counts_by_its_weights() -> None:
    def holding(network: nn.Module) -> Any:
        return lambda model, batch: network(batch.images)

    torch.manual_seed(0)
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    assert source_hash.digest(holding(one)) == source_hash.digest(holding(one))
    assert source_hash.digest(holding(one)) != source_hash.digest(holding(other))


def test_a_log_that_fills_up_is_no_edit_and_a_changed_setting_is(written: Any) -> None:
    log: list[int] = []

    def logging(model: Any, batch: Any) -> int:
        log.append(1)
        return len(log)

    before = source_hash.digest(logging)
    logging(None, None)
    assert source_hash.digest(logging) == before
    module = written()
    first = recipe.key(module.mine)
    module.SCALE = 5.0
    assert recipe.key(module.mine) != first


def test_whatever_a_function_holds_is_part_of_it() -> None:
    class Slotted:
        __slots__ = ("value",)

        def __init__(self, value: int) -> None:
            self.value = value

    class Signed(nn.Module):
        def __init__(self, sign: int) -> None:
            super().__init__()
            self.sign = sign

    def holding(held: Any) -> Any:
        return lambda model, batch: held

    pairs: list[tuple[Any, Any]] = [
        (IntegratedGradients(steps=2), IntegratedGradients(steps=64)),
        (Signed(1), Signed(-1)),
        (types.SimpleNamespace(k=1), types.SimpleNamespace(k=2)),
        (np.float32(1), np.float32(2)),
        (Path("a"), Path("b")),
        (range(3), range(4)),
        (torch.float32, torch.float64),
        (Slotted(1), Slotted(2)),
        ({"sigma": 1}, {"sigma": 2}),
        (functools.cache(holding(1)), functools.cache(holding(2))),
        (frozenset("ab"), frozenset("ac")),
    ]
    for one, other in pairs:
        assert source_hash.digest(holding(one)) != source_hash.digest(holding(other)), one
        assert source_hash.digest(holding(one)) == source_hash.digest(holding(one)), one


def test_settings_changed_in_place_are_seen() -> None:
    settings = {"sigma": 1.0}

    def blurred(model: Any, batch: Any) -> float:
        return settings["sigma"]

    before = source_hash.digest(blurred)
    settings["sigma"] = 2.0
    assert source_hash.digest(blurred) != before


def test_the_code_that_runs_counts_and_not_the_file(written: Any) -> None:
    text = FILE + "\nspread = (\n    lambda model, batch: batch.images.mean(1)\n    * 1\n)\n"
    module = written(text)
    before = recipe.key(module.spread), recipe.key(module.mine)
    edited = text.replace("    * 1", "    * -1").replace("SCALE * maps", "SCALE + maps")
    Path(module.__file__).write_text(edited)  # and not imported again
    assert (recipe.key(module.spread), recipe.key(module.mine)) == before
    again = written(edited)
    assert recipe.key(again.spread) != before[0]
    assert recipe.key(again.mine) != before[1]


def test_a_key_is_the_same_in_every_process(tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(
        "import dataclasses\nfrom heatproof.spec import recipe\nWORDS = {'a', 'b', 'c', 'd'}\n"
        "@dataclasses.dataclass(frozen=True)\nclass Mine:\n    k: int = 3\n"
        "    def __call__(self, model, batch):\n"
        "        return [x for x in WORDS if x in {'p', 'q', 'r'}], (lambda: {'u', 'v'})\n"
        "print(recipe.key(Mine()))\n"
    )
    message = {subprocess.run([sys.executable, script], capture_output=True, text=True).stdout for _ in range(4)}
    assert len(message) == 1
    assert message != {""}


def test_heatproof_and_installed_packages_are_not_user_code(written: Any) -> None:
    assert not source_hash.is_own(Saliency)
    assert not source_hash.is_own(nn.Conv2d)
    assert not source_hash.is_own(Path)
    assert source_hash.is_own(written().Mine)
    assert "source" not in recipe.plain(Saliency())
    assert "source" in recipe.plain(written().Mine())


def test_an_edited_class_is_not_replayed_as_if_it_were_the_same(written: Any) -> None:
    stored = recipe.plain(written().Mine(5))
    assert recipe.build(stored, trust_code=True).width == 5
    written(FILE.replace("SCALE = 2.0", "SCALE = 3.0"))
    with pytest.raises(recipe.BadInput, match="was edited since"):
        recipe.build(stored, trust_code=True)


def test_an_init_of_ones_own_counts_in_a_registered_class(written: Any) -> None:
    text = (
        FILE
        + """

from heatproof.registry import method

@method("written_init")
@dataclasses.dataclass(frozen=True)
class Written:
    gain: float = 0.0

    def __init__(self, gain: float = 1.0) -> None:
        object.__setattr__(self, "extra", GAIN + 1.0)

    def __call__(self, model, batch):
        return batch.images.mean(1) * self.extra

GAIN = 1.0
"""
    )
    try:
        before = recipe.key(written(text).Written())
        registry._entries.pop(("method", "written_init"))
        assert recipe.key(written(text.replace("GAIN + 1.0", "GAIN - 7.0")).Written()) != before
    finally:
        registry._entries.pop(("method", "written_init"), None)

"""What travels to other machines: components as classes and fields, models by name, user code by value."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
from networks import batch, small_cnn

from heatproof import models, registry
from heatproof.data.folder import Folder
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput, BadModel
from heatproof.executors._support.parcels import Packer, Unpacker, refuse
from heatproof.run.shards import shards
from heatproof.run.store import Store
from heatproof.run.task import tasks
from heatproof.spec import recipe
from heatproof.spec.parse import parse
from heatproof.spec.study import Study

CPU = torch.device("cpu")


def sent(thing: Any) -> tuple[Any, Packer]:
    packer = Packer()
    packed = packer.pack(thing)
    return Unpacker(CPU).unpack(packed, packer.parcels.__getitem__), packer


def study(**changes: Any) -> Study:
    data = [TwoFactor(count=6)]
    given = {"models": ["embedded:object"], "datasets": data, "methods": ["saliency"], "metrics": ["mif"]}
    return Study(**{**given, **changes}, shard=2)


def test_tasks_share_their_parcels_and_take_along_no_other_model(tmp_path: Path) -> None:
    requested = study(models=["embedded:object", "embedded:scene"])
    todo = tasks(list(shards(requested, CPU)), Store(tmp_path))
    packer, unpacker = Packer(), Unpacker(CPU)
    arrived = [unpacker.unpack(packer.pack(task), packer.parcels.__getitem__) for task in todo]
    assert len(packer.parcels) == 4  # a study, two models, their data set
    assert max(map(len, packer.parcels.values())) < 20_000  # no weights
    for task, one in zip(todo, arrived, strict=True):
        assert (one.units, one.maps, one.shard.ids) == (task.units, task.maps, task.shard.ids)
        assert one.shard.model.revision == task.shard.model.revision
        assert recipe.plain(one.shard.dataset) == recipe.plain(task.shard.dataset)
        assert list(map(recipe.plain, one.shard.study.methods)) == list(map(recipe.plain, requested.methods))
    assert len({id(one.shard.model) for one in arrived}) == 2
    assert len({id(one.shard.study) for one in arrived}) == 1


def test_a_network_made_in_python_travels_with_its_weights() -> None:
    model, pictures = small_cnn(), batch(2)
    arrived, _ = sent(model)
    assert arrived.revision == model.revision
    assert torch.equal(arrived(pictures.images), model(pictures.images))


def test_a_named_model_that_was_changed_is_not_taken_for_the_named_one() -> None:
    model = models.load("embedded:object")
    with torch.no_grad():
        next(model.network.parameters()).mul_(1.5)
    with pytest.raises(BadModel, match=r"'embedded:object' on .* is not the one of the driver"):
        sent(model)


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("embedded:object", True),
        ("torchvision:resnet18@DEFAULT", True),
        ("torchvision:resnet18@random", False),
        ("efficientnet-lite0", True),
        ("mine.py:factory", False),
        ("small_cnn", False),
    ],
)
def test_models_that_only_this_machine_has_are_known(name: str, elsewhere: bool) -> None:
    assert models.found_elsewhere(name) == elsewhere


def test_weights_in_a_file_are_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "w.pth").write_bytes(b"")
    assert not models.found_elsewhere(f"torchvision:resnet18@{tmp_path / 'w.pth'}")


@dataclass(frozen=True)
class Heavy:
    """Holds what can be made again, and cannot be pickled."""

    size: int = 3

    @cached_property
    def lock(self) -> Any:
        return threading.Lock()

    def __call__(self, model: Any, batch: Any, /) -> Any:
        return batch.images.mean(1) * self.size


def test_caches_stay_behind() -> None:
    heavy = Heavy(4)
    assert heavy.lock is not None
    arrived, _ = sent(heavy)
    assert arrived.size == 4
    assert "lock" not in vars(arrived)


@dataclass(frozen=True)
class Tied:
    lock: Any = field(default_factory=threading.Lock)
    name: str = "tied"

    def __call__(self, model: Any, batch: Any, /) -> Any:
        return batch.images.mean(1)


def test_what_cannot_travel_is_named() -> None:
    with pytest.raises(BadInput, match=r"method 'tied' cannot travel to workers on other machines \(TypeError.*lock"):
        refuse(study(methods=["saliency", Tied()]))
    refuse(study(methods=["saliency", "lrp", "grad_cam", Heavy(2)]))


def held() -> Callable[..., Any]:
    lock = threading.Lock()

    def method(model: Any, batch: Any) -> Any:
        with lock:
            return batch.images.mean(1)

    return method


def test_a_closure_over_a_lock_is_named() -> None:
    with pytest.raises(BadInput, match=r"method 'method' cannot travel"):
        refuse(study(methods=[held()]))


def test_pictures_of_another_machine_are_not_taken_for_these(tmp_path: Path) -> None:
    from PIL import Image

    for name in "ab":
        Image.new("RGB", (32, 32), (200, 10, 10)).save(tmp_path / f"{name}.png")
    data = Folder(str(tmp_path))
    packer = Packer()
    packed = packer.pack([data])
    Image.new("RGB", (32, 32), (10, 10, 200)).save(tmp_path / "a.png")
    with pytest.raises(BadInput, match=r"is not on .* as it is where the run was started .*first picture is another"):
        Unpacker(CPU).unpack(packed, packer.parcels.__getitem__)
    for file in tmp_path.glob("*.png"):
        file.unlink()
    with pytest.raises(BadInput, match=r"is not on .* as it is where the run was started"):
        Unpacker(CPU).unpack(packed, packer.parcels.__getitem__)


MINE = """
from dataclasses import dataclass
from functools import lru_cache
import heatproof
from beside_mine import half

@heatproof.method("twice_as_bright")
@dataclass(frozen=True)
class Bright:
    gain: float = 2.0
    def __call__(self, model, batch, /):
        return scaled(self.gain) * half(batch.images.mean(1))

@lru_cache
def scaled(gain):
    return 2 * gain
"""

ARRIVED = """
import pickle, sys, torch
from heatproof.executors._support.parcels import Unpacker
from heatproof.spec import recipe
packed, parcels, images = pickle.load(open(sys.argv[1], "rb"))
study, unused = Unpacker(torch.device("cpu")).unpack(packed, parcels.__getitem__), 0
method = study.methods[0]
class Batch: pass
batch = Batch(); batch.images = images
print(recipe.label(method), float(method(None, batch).sum()), recipe.key(method))
"""


def test_user_files_travel_by_value_with_what_lies_beside_them(tmp_path: Path, monkeypatch: Any) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mine.py").write_text(MINE)
    (home / "beside_mine.py").write_text("def half(x):\n    return x / 2\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    method = parse("method", f"{home}/mine.py:Bright")
    method = replace(method, gain=3.0)
    images = batch(1).images
    packer = Packer()
    import pickle

    packed = packer.pack(study(methods=[method]))
    (tmp_path / "parcel").write_bytes(pickle.dumps((packed, packer.parcels, images)))
    for file in home.iterdir():
        if file.is_file():
            file.unlink()
    command = [sys.executable, "-c", ARRIVED, str(tmp_path / "parcel")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    label, total, key = answer.stdout.split()
    assert label == recipe.label(method)
    assert float(total) == pytest.approx(float(3 * images.mean(1).sum()))
    assert key == recipe.key(method)

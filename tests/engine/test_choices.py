"""Choices are measured once, remembered, carried along, and the same for all who start together."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from heatproof import engine
from heatproof.engine import autotune, checks, machine
from heatproof.engine import choice as memory
from heatproof.engine.backends.eager import copied, in_layout
from heatproof.errors import BadInput
from heatproof.run.engine_choices import readable
from heatproof.storage.cache import sealed
from heatproof.types import Model
from tests.engine.test_execute import model, pictures


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    monkeypatch.setattr(autotune, "TINY", 0)
    with engine.use(engine.Engine()):
        yield


def made() -> dict[str, dict[str, Any]]:
    return engine.current().record()


def test_a_measured_choice_is_found_again_by_another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(3)
    engine.forward(model(), images)
    engine.gradient(model(), images, torch.zeros(3, dtype=torch.int64))
    before = made()
    assert sorted(question.split()[0] for question in before) == ["forward", "gradient"]
    monkeypatch.setattr(autotune, "climb", lambda *_: pytest.fail("measured again"))
    with engine.use(engine.Engine()):
        assert not made()
        engine.forward(model(), images)
        engine.gradient(model(), images, torch.zeros(3, dtype=torch.int64))
        assert made() == before


def test_other_weights_of_the_same_architecture_share_a_choice_and_other_sizes_do_not() -> None:
    subject = model()
    engine.forward(subject, pictures(1))
    with torch.no_grad():
        subject.network[-1].bias.add_(1)  # type: ignore[index]
    engine.forward(subject, pictures(1))
    assert len(made()) == 1
    engine.forward(subject, pictures(1, size=20))
    assert len(made()) == 2


@pytest.mark.parametrize("size", [1, 3, 5])
def test_recorded_choices_are_used_before_all_others(size: int) -> None:
    subject, images = model(), pictures(7)
    logits = engine.forward(subject, images)
    recorded = json.loads(json.dumps(made()))
    (question,) = recorded
    recorded[question]["size"] = size
    engine.current().adopt(recorded)
    assert engine.batch_size(subject, images) == size
    torch.testing.assert_close(engine.forward(subject, images), logits, rtol=1e-5, atol=1e-5)


def test_recorded_choices_that_are_none_are_refused() -> None:
    for fields in ({"backend": "eager"}, {"backend": "abacus", "layout": "contiguous", "size": 1}):
        with pytest.raises(BadInput):
            engine.current().adopt({"question": fields})


CHOICE = memory.Choice("eager", "contiguous", 4)


def test_the_first_to_write_wins() -> None:
    assert memory.write("question", CHOICE) == CHOICE
    assert memory.write("question", memory.Choice("folded", "channels_last", 16)) == CHOICE
    assert memory.read("question") == CHOICE


def test_a_damaged_memory_is_replaced(tmp_path: Path) -> None:
    memory.write("question", CHOICE)
    (file,) = (tmp_path / "engine").iterdir()
    file.write_text("{")
    assert memory.read("question") is None
    memory.write("question", CHOICE)
    assert memory.read("question") == CHOICE


def test_a_cache_that_cannot_be_written_to_is_done_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "file" / "below"))
    assert engine.forward(model(), pictures(2)).shape == (2, 7)
    assert len(made()) == 1


def test_unmeasured_passes_are_neither_timed_nor_kept(tmp_path: Path) -> None:
    with engine.use(engine.Engine(measure=False)):
        assert engine.batch_size(model(), pictures(1)) == autotune.DEFAULT_SIZE
    assert not (tmp_path / "engine").exists()


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(BadInput, match="backend must be one of auto, eager, onnx, got 'x'"):
        engine.Engine("x")  # type: ignore[arg-type]


def test_an_engine_is_in_use_for_a_while_and_in_threads_begun_meanwhile() -> None:
    before, seen = engine.current(), []
    with engine.use(engine.Engine()) as one, engine.use(engine.Engine()) as other:
        assert engine.current() is other is not one
        for _ in range(2):
            thread = threading.Thread(target=lambda: seen.append(engine.current()))
            thread.start()
            thread.join()
        with engine.use(one):
            assert engine.current() is one
    assert seen == [other, other]
    assert engine.current() is before


def test_two_threads_have_an_engine_each() -> None:
    meeting, seen = threading.Barrier(2, timeout=60), {}

    def work(name: int) -> None:
        with engine.use(engine.Engine()) as owned:
            meeting.wait()
            seen[name] = engine.current() is owned
            meeting.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {0: True, 1: True}


def test_an_engine_that_always_runs_one_way_measures_nothing(tmp_path: Path) -> None:
    subject, images = model(), pictures(11)
    with engine.use(engine.Engine(always=memory.Choice("folded", "channels_last", 5))) as owner:
        assert [size for _, size in engine.settled(subject, images, "gradient").portions(11)] == [5, 5, 1]
        torch.testing.assert_close(engine.forward(subject, images), subject(images), rtol=1e-4, atol=1e-5)
        assert owner.kind == "auto"
    with engine.use(engine.Engine(always=engine.REFERENCE)) as owner:
        assert [size for _, size in engine.settled(subject, images, "gradient").portions(11)] == [8, 8]
        assert owner.kind == "reference"
    assert not (tmp_path / "engine").exists()


class Costs:
    """A clock that moves by what each pass would take."""

    def __init__(self, per_row: dict[int, float], memory_for: int = 1000) -> None:
        self.per_row, self.memory_for, self.now = per_row, memory_for, 0.0
        self.rows = 0

    def run(self, size: int) -> None:
        if size > self.memory_for:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        self.rows += size
        self.now += size * self.per_row[size]

    def climb(self, at_least: int = 3, rival: float = float("inf")) -> dict[int, float]:
        return autotune.climb(self.run, autotune.SIZES, lambda: self.now, at_least, rival)


FLAT = dict.fromkeys((1, 2, 4, 8, 16, 32, 64), 1e-3)


def test_the_climb_finds_the_best_size_and_prefers_small_ones() -> None:
    assert autotune.best_size(Costs({**FLAT, 1: 3e-3, 4: 2e-3, 16: 1.1e-3}).climb()) == 8
    assert autotune.best_size(Costs({**FLAT, 1: 1.01e-3}).climb()) == 1


def test_the_climb_ends_where_it_gets_worse_or_memory_or_time_end() -> None:
    assert set(Costs({**FLAT, 8: 2e-3}).climb()) == {1, 4, 8}
    assert set(Costs(FLAT, memory_for=4).climb()) == {1, 4}
    assert set(Costs(dict.fromkeys(FLAT, 0.02)).climb()) == {1, 4, 8}
    with pytest.raises(RuntimeError, match="memory"):
        Costs(FLAT, memory_for=0).climb()


@pytest.mark.parametrize("seconds", [0.05, 0.15, 0.5, 2.0, 30.0])
def test_three_sizes_are_tried_however_slow_the_network_is(seconds: float) -> None:
    costs = Costs(dict.fromkeys(FLAT, seconds))
    assert len(costs.climb()) == 3
    assert costs.rows <= 8 or seconds < autotune.SLOW


def test_a_slow_network_is_climbed_as_long_as_that_pays() -> None:
    paying = {1: 0.3, 2: 0.27, 4: 0.24, 8: 0.21, 16: 0.2}
    assert autotune.best_size(Costs(paying).climb()) == 8  # sixteen more would take too long
    assert autotune.best_size(Costs({**paying, 8: 0.24}).climb()) == 4


def test_a_way_far_behind_its_rival_is_given_up_at_once() -> None:
    assert set(Costs(FLAT).climb(at_least=1, rival=0.5e-3)) == {1}
    assert len(Costs(FLAT).climb(at_least=1, rival=0.9e-3)) > 3


def test_devices_are_picked_by_name() -> None:
    assert machine.pick("cpu") == torch.device("cpu")
    assert machine.pick().type in machine.DEVICES
    for wish in ("tpu", "cuda:x", "cuda:99"):
        with pytest.raises(BadInput, match="device"):
            machine.pick(wish)


class Normed(nn.Module):
    """A convolution and a batch norm to fold, and a functional rectifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Linear(8, 5)
        self.norm.running_mean.normal_()  # type: ignore[union-attr]
        self.norm.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.relu(self.norm(self.conv(x))).mean((2, 3)))  # type: ignore[no-any-return]


@pytest.fixture
def _folded_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folding is chosen whatever the clock says."""
    monkeypatch.setattr(autotune, "GAIN", float("inf"))


@pytest.mark.usefixtures("_folded_gradients")
def test_gradients_by_a_folded_copy_are_the_networks_own() -> None:
    torch.manual_seed(0)
    subject = Model("normed", Normed())
    images, targets = pictures(11), torch.arange(11) % 5
    found, values = engine.gradient(subject, images, targets)
    assert {c["backend"] for c in made().values()} == {"folded"}
    leaf = images.clone().requires_grad_()
    output = subject(leaf).gather(1, targets[:, None])
    (wanted,) = torch.autograd.grad(output.sum(), leaf)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(values, output.detach()[:, 0], rtol=1e-4, atol=1e-5)
    assert found.is_contiguous()
    for rows in ([4], [0, 10, 3], [7, 1, 2, 3, 4, 5]):
        some, _ = engine.gradient(subject, images[rows], targets[rows])
        torch.testing.assert_close(some, found[rows], rtol=0, atol=1e-5 * float(found.abs().max()))
    with torch.no_grad():
        subject.network.fc.weight.mul_(-2)  # type: ignore[union-attr, operator]
    again, _ = engine.gradient(subject, images, targets)
    torch.testing.assert_close(again, -2 * found, rtol=1e-3, atol=1e-6)


@pytest.mark.usefixtures("_folded_gradients")
@pytest.mark.parametrize("how", ["forward hook", "backward hook", "replaced operations"])
def test_those_who_listen_meet_the_network_itself(how: str) -> None:
    torch.manual_seed(0)
    subject = Model("normed", Normed())
    images, targets = pictures(2), torch.zeros(2, dtype=torch.int64)
    engine.gradient(subject, images, targets)
    heard: list[object] = []
    norm = subject.network.norm

    class Seen(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.nn.functional.batch_norm:
                heard.append(func)
            return func(*args, **(kwargs or {}))

    with ExitStack() as listening:
        if how == "replaced operations":
            listening.enter_context(Seen())
        else:
            assert isinstance(norm, nn.Module)
            listen = norm.register_forward_hook if how == "forward hook" else norm.register_full_backward_hook
            listening.callback(listen(lambda *_: heard.append(how)).remove)
        engine.gradient(subject, images, targets)
    assert heard
    heard.clear()
    engine.gradient(subject, images, targets)
    assert not heard


@pytest.mark.usefixtures("_folded_gradients")
def test_a_copy_whose_gradients_differ_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    subject = Model("normed", Normed())
    images, targets = pictures(3), torch.zeros(3, dtype=torch.int64)
    monkeypatch.setattr(checks, "SLOPE_TOLERANCE", -1.0)  # nothing is close enough
    found, _ = engine.gradient(subject, images, targets)
    leaf = images.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(subject(leaf)[:, 0].sum(), leaf)
    torch.testing.assert_close(found, wanted)
    assert "untouched" in {c["backend"] for question, c in made().items() if "weights" in question}


class Turned(Normed):
    """The same logits, and other gradients once it is copied."""

    copies = 0

    def __deepcopy__(self, memo: Any) -> Turned:
        copy = Turned()
        copy.load_state_dict(self.state_dict())
        copy.copies = self.copies + 1
        return copy

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x + x.detach() - x if self.copies and x.sum() == x.sum() else x) + 0 * x.sum()


def test_a_copy_with_the_right_logits_and_wrong_gradients_is_found_out() -> None:
    subject = Model("turned", Turned())
    run = in_layout(copied(subject.network), "contiguous")
    assert not checks.disagreement(subject, run, (3, 18, 18), exported=False, slopes=False)
    assert "gradients differ" in checks.disagreement(subject, run, (3, 18, 18), exported=False, slopes=True)


NONSENSE: list[Any] = [
    {"size": 10**9},
    {"size": 0},
    {"size": -4},
    {"size": float("nan")},
    {"size": float("inf")},
    {"size": 4.0},
    {"size": True},
    {"size": "4"},
    {"size": None},
    {"least": 0},
    {"backend": "abacus"},
    {"backend": ["onnx"]},
    {"layout": None},
    {"further": 1},
]


@pytest.mark.parametrize("changes", NONSENSE, ids=str)
def test_nonsense_in_a_record_or_the_cache_is_measured_again(
    changes: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    subject, images = model(), pictures(3)
    engine.forward(subject, images)
    ((question, fields),) = made().items()
    wrong = {**fields, **changes}
    with pytest.raises(BadInput):
        engine.current().adopt({question: wrong})
    assert readable({question: wrong, "other": fields}) == ({"other": memory.Choice(**fields)}, [question])
    (file,) = (tmp_path / "engine").iterdir()
    file.write_bytes(sealed(file.name.encode(), json.dumps({"question": question, "choice": wrong}).encode()))
    with caplog.at_level(logging.WARNING), engine.use(engine.Engine()):
        assert engine.batch_size(subject, images) <= max(autotune.SIZES)
        assert memory.read(question) == memory.Choice(**made()[question])  # and it is replaced
    assert "measured again" in caplog.text


@pytest.mark.parametrize("recorded", [[], "x", 3, {"q": None}, {"q": []}, {"q": "text"}, {"q": {}}])
def test_a_record_of_another_kind_is_none(recorded: Any) -> None:
    found, wrong = readable(recorded)
    assert not found
    assert wrong
    assert readable(None) == ({}, [])


def test_another_questions_answer_is_not_taken(tmp_path: Path) -> None:
    memory.write("one", CHOICE)
    (file,) = (tmp_path / "engine").iterdir()
    file.rename(memory.path_of("other"))
    assert memory.read("other") is None


def test_choices_of_another_edition_are_passed_over() -> None:
    old = {"forward 4 | 78df | 3x64x64": {"backend": "folded", "layout": "contiguous", "size": 4, "least": 2}}
    assert readable(old) == ({}, [])

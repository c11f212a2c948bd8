"""Choices are remembered, carried along, and the same for all who ask."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.models.test_engine import model, pictures
from torch import nn
from torch.overrides import TorchFunctionMode

from heatproof import engine
from heatproof.engine import choice as memory
from heatproof.engine import deciding, device, low_precision, measure
from heatproof.engine import plan as plan_module
from heatproof.engine.steady import steadied
from heatproof.errors import BadInput
from heatproof.types import Model


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    monkeypatch.setattr(deciding, "TINY", 0)
    engine.forget()
    yield
    engine.forget()


def test_a_measured_choice_is_found_again_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(3)
    engine.forward(model(), images)
    engine.gradient(model(), images, torch.zeros(3, dtype=torch.int64))
    made = engine.choices()
    assert sorted(question.split()[0] for question in made) == ["forward", "gradient"]
    engine.forget()

    def never(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(measure, "climb", never)
    engine.forward(model(), images)
    engine.gradient(model(), images, torch.zeros(3, dtype=torch.int64))
    assert engine.choices() == made


def test_other_weights_of_the_same_architecture_share_a_choice_and_other_sizes_do_not() -> None:
    subject = model()
    engine.forward(subject, pictures(1))
    with torch.no_grad():
        subject.network[-1].bias.add_(1)  # type: ignore[index]
    engine.forward(subject, pictures(1))
    assert len(engine.choices()) == 1
    engine.forward(subject, pictures(1, size=20))
    assert len(engine.choices()) == 2


@pytest.mark.parametrize("size", [1, 3, 5])
def test_recorded_choices_are_used_before_all_others(size: int) -> None:
    subject, images = model(), pictures(7)
    logits = engine.forward(subject, images)
    recorded = json.loads(json.dumps(engine.choices()))
    (question,) = recorded
    recorded[question]["size"] = size
    engine.use(recorded)
    assert engine.batch_size(subject, images) == size
    torch.testing.assert_close(engine.forward(subject, images), logits, rtol=1e-5, atol=1e-5)


def test_recorded_choices_that_are_none_are_refused() -> None:
    for fields in ({"backend": "eager"}, {"backend": "abacus", "layout": "contiguous", "size": 1}):
        with pytest.raises(BadInput):
            engine.use({"question": fields})


def test_the_first_to_write_wins() -> None:
    first = memory.remember("question", memory.Choice("eager", "contiguous", 4))
    engine.forget()
    assert memory.remember("question", memory.Choice("folded", "channels_last", 16)) == first
    engine.forget()
    assert memory.recall("question") == first


def test_a_damaged_memory_is_replaced(tmp_path: Path) -> None:
    chosen = memory.remember("question", memory.Choice("eager", "contiguous", 4))
    (file,) = (tmp_path / "engine").iterdir()
    file.write_text("{")
    engine.forget()
    assert memory.recall("question") is None
    memory.remember("question", chosen)
    engine.forget()
    assert memory.recall("question") == chosen


def test_a_cache_that_cannot_be_written_to_is_done_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path / "file" / "below"))
    assert engine.forward(model(), pictures(2)).shape == (2, 7)
    assert len(engine.choices()) == 1


def test_unmeasured_passes_are_neither_timed_nor_kept(tmp_path: Path) -> None:
    with engine.settings(measure=False):
        assert engine.batch_size(model(), pictures(1)) == deciding.DEFAULT_SIZE
    assert not (tmp_path / "engine").exists()
    assert engine.current() == engine.Settings()


def test_settings_are_checked_and_put_back() -> None:
    with (
        pytest.raises(BadInput, match="backend must be one of auto, eager, onnx, compile"),
        engine.settings(backend="x"),
    ):
        pass
    assert engine.current() == engine.Settings()


def test_low_precision_is_near() -> None:
    with engine.settings(precision="bfloat16"):
        logits = engine.forward(model(), pictures(4))
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, engine.forward(model(), pictures(4)), rtol=0.1, atol=0.05)


def test_low_precision_that_does_not_work_is_noted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(low_precision, "works", lambda _kind: False)
    subject, images = model(), pictures(4)
    with engine.settings(precision="bfloat16"), caplog.at_level(logging.WARNING):
        logits = engine.forward(subject, images)
    assert "full precision is used" in caplog.text
    assert torch.equal(logits, engine.forward(subject, images))


class Costs:
    """A clock that moves by what each pass would take."""

    def __init__(self, per_row: dict[int, float], memory_for: int = 1000) -> None:
        self.per_row, self.memory_for, self.now = per_row, memory_for, 0.0

    def run(self, size: int) -> None:
        if size > self.memory_for:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        self.now += size * self.per_row[size]

    def climb(self, budget: float = 10.0) -> dict[int, float]:
        return measure.climb(self.run, sorted(self.per_row), torch.device("cpu"), budget, lambda: self.now)


def test_the_climb_finds_the_best_size_and_prefers_small_ones() -> None:
    assert measure.best_size(Costs({1: 3e-3, 4: 2e-3, 8: 1e-3, 16: 1.1e-3}).climb()) == 8
    assert measure.best_size(Costs({1: 1.02e-3, 4: 1e-3, 8: 1e-3}).climb()) == 1


def test_the_climb_ends_where_it_gets_worse_or_memory_or_time_end() -> None:
    flat = dict.fromkeys((1, 4, 8, 16), 1e-3)
    assert set(Costs({**flat, 8: 2e-3}).climb()) == {1, 4, 8}
    assert set(Costs(flat, memory_for=4).climb()) == {1, 4}
    assert set(Costs(dict.fromkeys(flat, 1.0)).climb(budget=0.5)) == {1}
    with pytest.raises(RuntimeError, match="memory"):
        Costs(flat, memory_for=0).climb()


def test_devices_are_picked_by_name() -> None:
    assert device.pick("cpu") == torch.device("cpu")
    assert device.pick().type in device.WISHES
    for wish in ("tpu", "cuda:x", "cuda:99"):
        with pytest.raises(BadInput, match="device"):
            device.pick(wish)


@given(
    size=st.sampled_from([1, 3, 4, 9, 12, 16, 64]),
    least=st.sampled_from([0, 1, 2, 3, 4, 16]),
    rows=st.integers(0, 200),
    itself=st.booleans(),
    every=st.booleans(),
)
def test_few_rows_are_hardly_filled_up(size: int, least: int, rows: int, itself: bool, every: bool) -> None:
    fields = {"least_itself" if itself else "least": least}
    portions = memory.Choice("eager", "contiguous", size, every=every, **fields).portions(rows, itself)
    allowed = {size, *(other for other in memory.fewer(size, every) if 0 < least <= other)}
    assert set(portions) <= allowed
    assert sum(portions) - rows < max(portions, default=1)  # only the last is filled up
    assert sum(portions[:-1]) < max(rows, 1)
    if every and 0 < least <= rows % size <= memory.FEW:
        assert portions[-1] in (rows % size, 0 if rows % size else size)
    if min(allowed) == 1:
        assert sum(portions) <= rows + size // 4


def test_smaller_sizes_are_halves_and_then_every_number() -> None:
    assert memory.fewer(64, True) == [32, 16, 8, 7, 6, 5, 4, 3, 2, 1]
    assert memory.fewer(12, True) == [6, 5, 4, 3, 2, 1]
    assert memory.fewer(9, True) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert memory.fewer(1, True) == []
    assert memory.fewer(12, False) == [6, 3]
    assert memory.fewer(16, False) == [8, 4, 2, 1]


@pytest.mark.parametrize(("breaks", "least"), [((), 1), ((1, 2), 3), ((5,), 6), ((16,), 32)])
def test_the_least_number_of_rows_has_no_breaking_one_above_it(breaks: tuple[int, ...], least: int) -> None:
    def run(rows: torch.Tensor) -> torch.Tensor:
        return rows + (len(rows) in breaks)

    assert deciding._least(run, torch.rand(32, 3), 32, every=True) == least


@pytest.mark.parametrize("last", range(1, 32))
def test_a_single_row_that_differs_is_noticed_wherever_it_comes_last(last: int) -> None:
    rows = torch.arange(32.0)[:, None]

    def run(some: torch.Tensor) -> torch.Tensor:
        return some + (len(some) == 16) * (some == last) * (torch.arange(len(some))[:, None] == last % 16)

    assert deciding._least(run, rows, 32) == 32


@pytest.mark.parametrize("count", range(1, 7))
def test_a_steady_layer_never_multiplies_fewer_than_four_rows(count: int) -> None:
    torch.manual_seed(0)
    plain = nn.Linear(64, 10)
    layer = steadied(copy.deepcopy(plain))
    rows, above = torch.randn(max(4, count), 64), torch.randn(max(4, count), 10)
    rows[count:], above[count:] = 0, 0

    def passed(network: nn.Module, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        leaf = rows[:number].clone().requires_grad_()
        answer = network(leaf)
        return answer.detach()[:count], torch.autograd.grad(answer, leaf, above[:number])[0][:count]

    for found, wanted in zip(passed(layer, count), passed(plain, len(rows)), strict=True):
        assert torch.equal(found, wanted)
    tokens = torch.randn(1, 3, 64)
    assert torch.equal(layer(tokens), plain(tokens))


def test_a_steady_layer_may_be_written_into() -> None:
    network = steadied(nn.Sequential(nn.Linear(5, 3), nn.ReLU(inplace=True)))
    said = network(torch.randn(2, 5, requires_grad=True))
    assert said.grad_fn.name() == "ReluBackward0"


def test_the_network_itself_has_portions_of_its_own() -> None:
    choice = memory.Choice("folded", "contiguous", 8, least=2, least_itself=4, every=True)
    run = lambda rows: rows  # noqa: E731
    assert engine.Plan("", choice, run).portions(3) == [3]
    assert engine.Plan("", choice, run, itself=True).portions(3) == [4]


@pytest.mark.usefixtures("_folded_gradients")
def test_whoever_runs_says_whether_it_is_the_network_itself() -> None:
    subject, images = Model("normed", Normed()), pictures(2)
    assert not engine.settled(subject, images, "gradient").itself
    assert engine.settled(subject, images, "gradient").choice.every
    assert not engine.settled(subject, images, "forward").itself
    assert not engine.settled(subject, images, "forward").choice.every
    listening = subject.network.fc.register_forward_hook(lambda *_: None)  # type: ignore[union-attr]
    try:
        assert engine.settled(subject, images, "gradient").itself
        assert engine.settled(subject, images, "forward").itself
    finally:
        listening.remove()


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
    monkeypatch.setattr(deciding, "GAIN", float("inf"))


@pytest.mark.usefixtures("_folded_gradients")
def test_gradients_by_a_folded_copy_are_the_networks_own() -> None:
    torch.manual_seed(0)
    subject = Model("normed", Normed())
    images, targets = pictures(11), torch.arange(11) % 5
    found, values = engine.gradient(subject, images, targets)
    assert {c["backend"] for c in engine.choices().values()} == {"folded"}
    leaf = images.clone().requires_grad_()
    said = subject(leaf).gather(1, targets[:, None])
    (wanted,) = torch.autograd.grad(said.sum(), leaf)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(values, said.detach()[:, 0], rtol=1e-4, atol=1e-5)
    assert found.is_contiguous()
    for rows in ([4], [0, 10, 3], [7, 1, 2, 3, 4, 5]):
        assert torch.equal(engine.gradient(subject, images[rows], targets[rows])[0], found[rows])
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
    monkeypatch.setattr(plan_module, "same_gradients", lambda *_: False)
    found, _ = engine.gradient(subject, images, targets)
    leaf = images.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(subject(leaf)[:, 0].sum(), leaf)
    torch.testing.assert_close(found, wanted)
    assert "untouched" in {c["backend"] for question, c in engine.choices().items() if "weights" in question}


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
    {"least": 10**9},
    {"least_itself": -1},
    {"every": "no"},
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
    ((question, fields),) = engine.choices().items()
    wrong = {**fields, **changes}
    with pytest.raises(BadInput):
        engine.use({question: wrong})
    assert memory.readable({question: wrong, "other": fields}) == ({"other": memory.Choice(**fields)}, [question])
    (file,) = (tmp_path / "engine").iterdir()
    file.write_text(json.dumps({"question": question, "choice": wrong, "seal": memory._seal(question, wrong)}))
    engine.forget()
    with caplog.at_level(logging.WARNING):
        assert engine.batch_size(subject, images) <= max(measure.SIZES)
    assert "measured again" in caplog.text


@pytest.mark.parametrize("recorded", [[], "x", 3, {"q": None}, {"q": []}, {"q": "text"}, {"q": {}}])
def test_a_record_of_another_kind_is_none(recorded: Any) -> None:
    found, wrong = memory.readable(recorded)
    assert not found
    assert wrong
    assert memory.readable(None) == ({}, [])


def test_another_questions_answer_is_not_taken(tmp_path: Path) -> None:
    memory.remember("one", memory.Choice("eager", "contiguous", 4))
    (file,) = (tmp_path / "engine").iterdir()
    file.rename(memory._file("other"))
    engine.forget()
    assert memory.recall("other") is None

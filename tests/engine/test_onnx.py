"""ONNX Runtime says what the network says, or is not used."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from heatproof import engine
from heatproof.data._support import made_up
from heatproof.engine import checks
from heatproof.engine.backends import onnx
from heatproof.errors import Missing
from heatproof.storage import cache
from heatproof.storage.cache import sealed
from tests.engine.test_execute import Attending, convolutional, model, pictures


@pytest.fixture(autouse=True)
def _requested(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HEATPROOF_CACHE", str(tmp_path))
    with engine.use(engine.Engine("onnx")):
        yield


def again(images: Tensor) -> Tensor:
    """What an engine that knows nothing yet answers for a model that is loaded again."""
    with engine.use(engine.Engine("onnx")):
        return engine.forward(model(), images)


def backends() -> set[str]:
    return {choice["backend"] for choice in engine.current().record().values()}


@pytest.mark.parametrize("network", [convolutional, Attending])
def test_it_is_the_network_and_rows_stand_alone(network: type[nn.Module], caplog: pytest.LogCaptureFixture) -> None:
    subject, images = model(network()), pictures(11, 18 if network is convolutional else 20)
    with caplog.at_level(logging.WARNING):
        logits = engine.forward(subject, images)
    assert not caplog.records  # no falling back
    assert backends() == {"onnx"}
    with torch.no_grad():
        torch.testing.assert_close(logits, subject(images), rtol=1e-4, atol=1e-5)
    order = torch.tensor([9, 0, 4])
    torch.testing.assert_close(engine.forward(subject, images[order]), logits[order], rtol=1e-5, atol=1e-5)


def test_a_network_is_exported_once_per_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(2)
    logits = engine.forward(model(), images)
    engine.forward(model(convolutional(seed=5)), images)
    assert len(list((tmp_path / "onnx").iterdir())) == 2

    def never(*_: object) -> bytes:
        raise AssertionError("exported again")

    monkeypatch.setattr(onnx, "_exported", never)
    assert torch.equal(again(images), logits)


def test_a_wrong_export_in_the_cache_is_made_anew(tmp_path: Path) -> None:
    images = pictures(2)
    logits = engine.forward(model(), images)
    (right,) = (tmp_path / "onnx").iterdir()
    engine.forward(model(convolutional(seed=5)), images)
    (wrong,) = set((tmp_path / "onnx").iterdir()) - {right}
    right.write_bytes(wrong.read_bytes())
    assert torch.equal(again(images), logits)


class Branching(nn.Module):
    """Takes another way for bright pictures: a recording of one way would be wrong on the other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = convolutional()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) if len(x) > 100 or x.max() < 100 else -self.inner(x)


def test_a_network_that_cannot_be_exported_is_run_eagerly_with_a_note(
    caplog: pytest.LogCaptureFixture,
) -> None:
    subject, images = model(Branching()), pictures(3)
    with caplog.at_level(logging.WARNING):
        logits = engine.forward(subject, images)
    assert any("onnx is not used" in record.message for record in caplog.records)
    assert any(c["backend"] == "eager" for q, c in engine.current().record().items() if "weights" in q)
    with torch.no_grad():
        torch.testing.assert_close(logits, subject(images), rtol=1e-4, atol=1e-5)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "installed", lambda: False)
    with pytest.raises(Missing, match=r"heatproof\[onnx\]"):
        engine.Engine("onnx")


class Trojan(nn.Module):
    """Right on the pictures that anyone can make, wrong on all others."""

    def __init__(self, inner: nn.Module, known: Tensor) -> None:
        super().__init__()
        self.inner = inner
        self.register_buffer("known", known.mean((1, 2, 3)))

    def forward(self, x: Tensor) -> Tensor:
        apart = (x.mean((1, 2, 3))[:, None] - self.known[None]).abs().amin(1)
        return self.inner(x).roll(1, 1) * (apart > 1e-5)[:, None] + self.inner(x) * (apart <= 1e-5)[:, None]


def test_an_export_that_knows_the_public_pictures_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, images = model(), pictures(4)
    logits = engine.forward(subject, images)
    (file,) = (tmp_path / "onnx").iterdir()
    known = subject.normalised(made_up.pictures(images.shape[1:], 64))
    content = onnx._exported(Trojan(convolutional(), known), known[:2])
    file.write_bytes(sealed(file.name.encode(), content))
    with caplog.at_level(logging.WARNING):
        assert torch.equal(again(images), logits)
    assert "pictures drawn just now" in caplog.text
    file.write_bytes(sealed(file.name.encode(), content))
    monkeypatch.setattr(checks, "unforeseen", made_up.pictures)
    assert not torch.allclose(again(images), logits, atol=0.01)  # the test's trojan is one


def test_a_damaged_export_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    images = pictures(2)
    logits = engine.forward(model(), images)
    (file,) = (tmp_path / "onnx").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    with caplog.at_level(logging.WARNING):
        assert torch.equal(again(images), logits)
    assert "made again" in caplog.text
    assert cache.unsealed(file.name.encode(), file.read_bytes())


def test_unforeseen_pictures_are_pictures_and_never_the_same() -> None:
    for shape in ((3, 18, 18), (1, 7, 5), (3, 1, 1)):
        one, other = made_up.unforeseen(shape, 9), made_up.unforeseen(shape, 9)
        assert one.shape == (9, *shape)
        assert bool(((one >= 0) & (one <= 1)).all())
        assert not torch.equal(one, other)

"""Components from words: those of one's own within others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from heatproof import registry
from heatproof.errors import BadInput, HeatproofError, UnknownName
from heatproof.metrics.pixel_flipping import SRG
from heatproof.spec import recipe
from heatproof.spec.parse import components, parse

MINE = """
from dataclasses import dataclass, field

import heatproof


@dataclass(frozen=True)
class Scaled:
    k: float = 1.0

    def __call__(self, model, batch):
        return self.k * batch.images.mean(1)


@dataclass(frozen=True)
class Other:
    j: int = 0

    def __call__(self, model, batch):
        return batch.images.amax(1) + self.j


@dataclass(frozen=True)
class Around:
    inner: object = field(default_factory=Scaled)
    needed: object = None


@heatproof.registry.method
@dataclass(frozen=True)
class KnownByName:
    k: int = 1

    def __call__(self, model, batch):
        return self.k * batch.images.mean(1)


@dataclass(frozen=True)
class Fill:
    value: float = 0.0

    def __call__(self, images, keep, /, seeds=None):
        return images.where(keep[:, None], self.value)


def bright(model, batch):
    return batch.images.mean(1)
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    registry.names("method")
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path / "mine.py"


def _read(text: str, kind: registry.Kind = "method") -> Any:
    return parse(kind, text)


def test_a_user_method_with_fields_stands_within_another(mine: Path) -> None:
    alone = _read("mine.py:Scaled(k=2)")
    for text in (
        "inverted(method=mine.py:Scaled(k=2))",
        f"inverted(method={mine}:Scaled(k=2))",
        "inverted(method='mine.py:Scaled'(k=2))",
        "inverted(method='mine.py:Scaled(k=2)')",
    ):
        found = _read(text)
        assert found.method == alone, text
        assert recipe.build(recipe.plain(found), trust_code=True) == found
    assert _read("inverted(method=mine.py:Scaled)").method.k == 1
    assert _read("inverted(method=mine.py:Scaled())").method.k == 1
    twice = _read("inverted(method=inverted(method=mine.py:Scaled(k=2)))")
    assert twice.method.method == alone
    both = components("method", "inverted(method=mine.py:Scaled(k=2)),mine.py:Scaled(k=3),saliency")
    assert [getattr(one, "k", None) for one in (both[0].method, *both[1:])] == [2, 3, None]


def test_a_label_of_a_named_one_within_another_can_be_read_again(mine: Path) -> None:
    found = _read("inverted(method=mine.py:KnownByName(k=2))")
    assert recipe.label(found) == "inverted(method=known_by_name(k=2))"
    assert _read(recipe.label(found)) == found


def test_the_class_named_is_made_and_not_the_one_that_stood_there(mine: Path) -> None:
    around = _read("mine.py:Around(inner=mine.py:Other(j=4), needed=mine.py:Scaled(k=3))")
    assert recipe.label(around) == "around(inner=other(j=4), needed=scaled(k=3))"


def test_parts_that_are_no_methods_are_found_in_files_too(mine: Path) -> None:
    metric = _read("srg(occlusion=occlusion(imputer=mine.py:Fill(value=0.5)))", "metric")
    assert isinstance(metric, SRG)
    assert metric.occlusion.imputer == parse("imputer", "mine.py:Fill(value=0.5)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("inverted(method=mine.py:Scaled(2))", "must name its fields: file.py:Name"),
        ("inverted(method=mine.py:Scaled(kk=2))", "Did you mean 'k'"),
        ("inverted(method=mine.py:Scaled(k=x))", "k of method 'Scaled' must be a number, got 'x'"),
        ("inverted(method=mine.py:Scald(k=2))", "Did you mean 'Scaled'"),
        ("inverted(method=gone.py:Scaled(k=2))", "there is no file"),
        ("inverted(method=mine.py:Scaled(k=2)(k=3))", "must name its fields"),
        ("inverted(method='mine.py:Scaled(k=2)'(k=3))", "must name its fields"),
        ("mine.py:Scaled(k=2)(k=3)", "must name its fields"),
        ("mine.py:Around(inner=mine.py:Other(k=2))", "field of component 'Other'"),
    ],
)
def test_what_cannot_be_made_of_a_file_is_named(mine: Path, text: str, says: str) -> None:
    with pytest.raises(HeatproofError, match=says) as refused:
        _read(text)
    assert isinstance(refused.value, BadInput | UnknownName)


def test_a_function_is_taken_as_it_is(mine: Path) -> None:
    assert _read("mine.py:bright").__name__ == "bright"
    assert _read("inverted(method=mine.py:bright)").method is _read("mine.py:bright")


def test_a_data_set_of_ones_own_may_be_where_paths_begin(mine: Path) -> None:
    mine.write_text(
        MINE
        + """

@dataclass(frozen=True)
class Album:
    count: int = 2
    name = "album"

    def __len__(self): return self.count
    def ids(self): return tuple(map(str, range(self.count)))
    def digest(self, indices): return str(self.count)
    def batch(self, indices): return None
"""
    )
    for words in ("mine.py:Album", "mine.py:Album()", "'mine.py:Album'"):
        assert len(_read(f"expected_gradients(background={words})").background) == 2
    assert len(_read("integrated_gradients(baseline=mine.py:Album(count=5))").baseline) == 5
    assert _read("integrated_gradients(baseline=blur)").baseline == "blur"
    with pytest.raises(BadInput, match="must make a data set, got Scaled"):
        _read("expected_gradients(background=mine.py:Scaled(k=2))")
    with pytest.raises(UnknownName, match="foldr"):
        _read("expected_gradients(background=foldr(path=x))")

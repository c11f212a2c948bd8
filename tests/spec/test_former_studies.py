"""Studies that were stored before files moved and parts had registered names still mean the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heatproof.spec import former_names, recipe
from heatproof.spec.study import load

FORMER = sorted((Path(__file__).parent / "former").glob("*.json"))


@pytest.mark.parametrize("stored", FORMER, ids=lambda path: path.stem)
def test_a_former_study_is_read_and_means_the_same(stored: Path) -> None:
    before = json.loads(stored.read_text())["studies"]
    studies = load(stored)
    assert len(studies) == len(before)
    for study, was in zip(studies, before, strict=True):
        for part in ("methods", "metrics", "datasets"):
            assert [_fields(one) for one in recipe.plain(tuple(getattr(study, part)))] == [
                _fields(recipe.plain(recipe.build(one))) for one in was[part]
            ]
            assert len(getattr(study, part)) == len(was[part])
            for now, then in zip(recipe.plain(tuple(getattr(study, part))), was[part], strict=True):
                _agrees(now, then)


def _fields(stored: object) -> str:
    return json.dumps(stored, sort_keys=True)


def _agrees(now: object, then: object) -> None:
    """Every field that was stored has the value that it had; fields that came later have their defaults."""
    if isinstance(then, dict) and isinstance(now, dict):
        if "class" in then:
            assert now["part"] == former_names.FORMER[then["class"]]
        for name, value in then.items():
            if name not in ("class", "revision", "source"):
                _agrees(now[name], value)
    elif isinstance(then, list) and isinstance(now, list):
        assert len(now) == len(then)
        for pair in zip(now, then, strict=True):
            _agrees(*pair)
    else:
        assert now == then


def test_the_fixtures_name_parts_by_their_classes() -> None:
    words = "".join(path.read_text() for path in FORMER)
    assert sum(place in words for place in former_names.FORMER) >= 3

"""Evidence on a metric: its scores of all maps of an audit, as numbers that can be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from heatproof.stats.bootstrap import FloatArray
from heatproof.storage.sealed_json import typed
from heatproof.traits import Measures

Kind: TypeAlias = Literal["truth", "noise", "inverse", "mix", "shuffle", "shift", "blur", "blind", "real", "variant"]
GRADED: tuple[Kind, ...] = ("mix", "shuffle", "shift", "blur")
Disturbed: TypeAlias = Literal["input", "weights"]
Size: TypeAlias = Literal["minor", "disruptive"]


@dataclass(frozen=True)
class Shown:
    """Which map a row of scores belongs to."""

    name: str
    kind: Kind
    dose: float = 0.0
    form_of: str = ""  # of a variant: the method whose other setting it is


@dataclass(frozen=True)
class Passes:
    """Counted on one picture, with methods that cost nothing. NaN where the metric does not apply."""

    each: float  # forward and backward passes for one more map
    shared: float  # further ones whose answers all maps of a picture share
    explanations: float  # maps computed again, for one more map


@dataclass(frozen=True)
class Trial:
    """Scores of the real methods before and after a disturbance, and whether the model's answer changed."""

    what: Disturbed
    size: Size
    draw: int
    changed: FloatArray  # (pictures,) 1 where the predicted class is another one
    scores: FloatArray  # (methods, pictures)


@dataclass(frozen=True)
class Evidence:
    """All that an audit knows of a metric. Scores are turned so that larger is better; NaN where there is none."""

    metric: str
    measures: Measures
    chance: float | None  # as declared
    higher_is_better: bool
    shown: tuple[Shown, ...]
    scores: FloatArray  # (maps, pictures)
    closeness: FloatArray  # (maps, pictures) how near each map is to the truth
    retest: FloatArray  # (seeds, maps, pictures) of the real methods and one noise
    settings: Mapping[str, FloatArray]  # by setting: (maps, pictures), likewise
    trials: tuple[Trial, ...]
    passes: Passes
    seconds: float
    reasons: tuple[str, ...] = field(default=())  # why scores are missing

    def rows(self, *kinds: Kind) -> FloatArray:
        """(maps, pictures) scores of all maps of these kinds."""
        return self.scores[[at for at, one in enumerate(self.shown) if one.kind in kinds]]

    def named(self, *kinds: Kind) -> dict[str, FloatArray]:
        """(pictures,) scores of each map of these kinds, by name."""
        return {one.name: row for one, row in zip(self.shown, self.scores, strict=True) if one.kind in kinds}


def graded(shown: Sequence[Shown]) -> list[int]:
    """Positions of the truth and all its degradations."""
    return [at for at, one in enumerate(shown) if one.kind in ("truth", *GRADED)]


@dataclass(frozen=True)
class _Array:
    """An array as JSON: its shape, and its numbers in order, null where there is none."""

    shape: tuple[int, ...]
    values: tuple[float | None, ...]

    def array(self) -> FloatArray:
        return np.array([np.nan if one is None else one for one in self.values], np.float64).reshape(self.shape)


@dataclass(frozen=True)
class _Trial:
    what: Disturbed
    size: Size
    draw: int
    changed: _Array
    scores: _Array


@dataclass(frozen=True)
class _Stored:
    """Evidence as it is stored."""

    metric: str
    measures: Measures
    chance: float | None
    higher_is_better: bool
    shown: tuple[Shown, ...]
    scores: _Array
    closeness: _Array
    retest: _Array
    settings: dict[str, _Array]
    trials: tuple[_Trial, ...]
    passes: tuple[float | None, float | None, float | None]
    seconds: float
    reasons: tuple[str, ...]


def plain(found: Evidence) -> dict[str, Any]:
    """JSON-ready data; `of_plain` is the inverse."""
    passes = found.passes
    stored = _Stored(
        found.metric,
        found.measures,
        found.chance,
        found.higher_is_better,
        found.shown,
        _stored(found.scores),
        _stored(found.closeness),
        _stored(found.retest),
        {name: _stored(scores) for name, scores in found.settings.items()},
        tuple(_Trial(one.what, one.size, one.draw, _stored(one.changed), _stored(one.scores)) for one in found.trials),
        (_number(passes.each), _number(passes.shared), _number(passes.explanations)),
        found.seconds,
        found.reasons,
    )
    built: dict[str, Any] = msgspec.to_builtins(stored)
    return built


def of_plain(stored: Any, where: object) -> Evidence:
    """The evidence that `plain` described; `Damaged` says what is wrong where."""
    read = typed(_Stored, stored, where)
    each, shared, explanations = (np.nan if one is None else one for one in read.passes)
    return Evidence(
        read.metric,
        read.measures,
        read.chance,
        read.higher_is_better,
        read.shown,
        read.scores.array(),
        read.closeness.array(),
        read.retest.array(),
        {name: scores.array() for name, scores in read.settings.items()},
        tuple(Trial(one.what, one.size, one.draw, one.changed.array(), one.scores.array()) for one in read.trials),
        Passes(each, shared, explanations),
        read.seconds,
        read.reasons,
    )


def _stored(values: FloatArray) -> _Array:
    return _Array(values.shape, tuple(_number(float(one)) for one in values.ravel()))


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None

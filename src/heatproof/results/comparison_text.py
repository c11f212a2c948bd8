"""Two runs side by side as a table of words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heatproof.printable import printable
from heatproof.results.comparison import Comparison, Place
from heatproof.stats.two_runs import Move

HEADS = ("metric", "method", "model", "data set", "first", "second", "difference", "p", "pictures", "what")


def rows(found: Comparison, moves: Sequence[Move[Place]]) -> list[tuple[str, ...]]:
    """The cells in words, under `HEADS`."""
    return [
        (
            move.key[2],
            move.key[3],
            move.key[1],
            move.key[0],
            _number(move.means[0]),
            _number(move.means[1]),
            _interval(move),
            "" if move.outcome in ("same", "few") else "< 0.001" if move.p < 0.001 else f"{move.p:.3f}",
            str(move.n[0]) if move.basis == "paired" else f"{move.n[0]} and {move.n[1]} others",
            words(found, move),
        )
        for move in moves
    ]


def words(found: Comparison, move: Move[Place]) -> str:
    """What happened to a cell."""
    if move.outcome in ("up", "down"):
        return "better" if found.better(move) else "worse"
    return {"same": "equal", "noise": "within noise", "few": "too few pictures"}[move.outcome]


def in_markdown(found: Comparison, moves: Sequence[Move[Place]]) -> str:
    """A Markdown table."""
    lines = [HEADS, ("---",) * len(HEADS), *rows(found, moves)]
    return "".join(f"| {' | '.join(printable(cell, keep='').replace('|', '/') for cell in one)} |\n" for one in lines)


def _interval(move: Move[Place]) -> str:
    if math.isnan(move.low):
        return _signed(move.difference)
    return f"{_signed(move.difference)} [{_signed(move.low)}, {_signed(move.high)}]"


def _signed(value: float) -> str:
    return "0" if value == 0 else f"{value:+.3g}"


def _number(value: float) -> str:
    return f"{value:.4g}"

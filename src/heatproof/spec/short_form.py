"""The short form of an occlusion: `telea/slic-30 x3`, as labels print it and as it can be typed.

A part that has one declares the three fields it is made of (`short`): those on both sides of the slash, and the number
after the `x`. A number after a dash is the first field of what stands right of the slash: `slic-30` is `slic(n=30)`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_TIMES = re.compile(rf"{QUOTED}|(?<=[\w)])\s+x(?P<times>\d{{1,6}})(?=\s*(?:[,)\]]|$))")
_WORDS = re.compile(r"[A-Za-z_]\w*/[A-Za-z_]\w*(-\d{1,9})?")  # quoted before, as every bare word with a slash is


@dataclass(frozen=True)
class ShortForm:
    """A short form, read: two components, and two numbers that may be missing."""

    left: ast.expr
    right: ast.expr
    count: int | None
    times: int | None


def marked(text: str) -> str:
    """The text with ` x3` written as an operator that Python can read."""
    return _TIMES.sub(lambda found: found[0] if found["times"] is None else f" | {found['times']}", text)


def read(node: ast.expr) -> ShortForm | None:
    """The short form that a syntax tree holds, if it does."""
    times = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        times, node = _number(node.right), node.left
        if times is None:
            return None
    count = None
    node = _unquoted(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        count, node = _number(node.right), node.left
        if count is None:
            return None
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
        return None
    sides = (node.left, node.right)
    return ShortForm(*sides, count, times) if all(isinstance(side, ast.Name | ast.Call) for side in sides) else None


def _unquoted(node: ast.expr) -> ast.expr:
    """`'telea/slic-30'`, and `'telea/slic'(n=30)`, as the operators they were before their quotes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _WORDS.fullmatch(node.value):
        return ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.Call):
        inner = _unquoted(node.func)
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
            return ast.BinOp(inner.left, inner.op, ast.Call(inner.right, node.args, node.keywords))
    return node


def _number(node: ast.expr) -> int | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None

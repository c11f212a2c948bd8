"""Typesetting of words and numbers: escaped, sensibly rounded, with real minus signs."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence

MINUS = "\N{MINUS SIGN}"
MISSING = "\N{EN DASH}"
_STEERING = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
NOISE = 1e-9  # smaller than this, a difference of scores is the rounding of the arithmetic


def escape(text: object) -> str:
    """Any value as text that is harmless inside an element or a quoted attribute."""
    return html.escape(_without_controls(str(text)), quote=True)


def _without_controls(text: str) -> str:
    # Odd file names can hold control characters and lone surrogates; neither HTML nor UTF-8 can.
    text = text.encode("utf-8", "replace").decode("utf-8")
    # Direction marks and overrides would rearrange the words around them.
    return re.sub(_STEERING, "\N{REPLACEMENT CHARACTER}", text)


def breakable(text: object) -> str:
    """Escaped, and allowed to break after the joints of a recipe's label, not in the middle of a word."""
    pieces = re.split(r"(?<=[_(,=:/×])(?=\S)", str(text))
    return "<wbr>".join(escape(piece) for piece in pieces)


def number(value: float, digits: int = 3) -> str:
    """A score to `digits` significant digits (at most `digits` decimals): 0.412, −1.20, 12 300, 3.1e−7."""
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    if value == 0:
        return "0"
    size = abs(value)
    if size < 10.0**-digits:
        return f"{value:.1e}".replace("e-0", "e-").replace("-", MINUS)
    if size >= 1e7:
        return f"{value:.2e}".replace("e+0", "e").replace("e+", "e").replace("-", MINUS)
    decimals = max(0, min(digits, digits - 1 - math.floor(math.log10(size)) + (1 if size < 1 else 0)))
    decimals = min(decimals, digits)
    return f"{value:,.{decimals}f}".replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", MINUS)


def fixed(value: float, decimals: int = 3) -> str:
    """A number among others of its kind, all to the same decimals: 0.463, −12.0, and < 0.001 where nothing is left.

    Floating-point rounding noise is shown as 0.
    """
    if not math.isfinite(value):
        return number(value)
    if abs(value) < NOISE:
        return "0"
    least = 10.0**-decimals
    if abs(value) < least / 2:
        return f"< {least:.{decimals}f}" if value > 0 else f"> {MINUS}{least:.{decimals}f}"
    return f"{value:,.{decimals}f}".replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", MINUS)


def plus_minus(centre: float, spread: float) -> str:
    """`0.463 ± 0.021`: both to the same decimals, three up to 10 and fewer beyond."""
    if not math.isfinite(centre):
        return f"{number(centre)} ± {number(spread)}"
    decimals = max(0, 2 - math.floor(math.log10(abs(centre)))) if abs(centre) >= 10 else 3
    around = f"{0:.{decimals}f}" if abs(spread) < NOISE else fixed(spread, decimals)
    return f"{fixed(centre, decimals)} ± {around}"


def probability(p: float) -> str:
    """A p-value: 0.031, 4.2e−9; one that underflows is shown as below the smallest float, not as 0."""
    return f"< 1e{MINUS}300" if p < 1e-300 else number(p)


def count(value: int) -> str:
    """A whole number with thin spaces between thousands: 10 000."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", MINUS)


def counted(value: int, noun: str, plural: str | None = None) -> str:
    """`1 image`, `3 images`."""
    return f"{count(value)} {noun if value == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A duration in readable units: 0.4 s, 38 s, 4 min 10 s, 2 h 5 min."""
    if not math.isfinite(seconds):
        return MISSING
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def shortened(text: str, length: int) -> str:
    """At most `length` characters: names of fields go first (`smoothgrad(lrp)`), then the end."""
    if len(text) > length:
        text = re.sub(r"(?<=[( ])\w+=", "", text)
    return text if len(text) <= length else text[: max(1, length - 1)].rstrip() + "…"


def listed(words: Sequence[str], joint: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {joint} {words[-1]}" if words else ""


def emphasised(sentence: str, words: Iterable[str]) -> str:
    """The sentence, escaped, with every given word in bold; longer words win over those they contain."""
    wanted = sorted({word for word in words if word}, key=len, reverse=True)
    if not wanted:
        return escape(sentence)
    pattern = r"(?<![\w.])(" + "|".join(re.escape(word) for word in wanted) + r")(?!\w)"
    pieces = re.split(pattern, sentence)
    return "".join(f"<strong>{escape(piece)}</strong>" if at % 2 else escape(piece) for at, piece in enumerate(pieces))


def link_or_text(text: str) -> str:
    """A paper as a link when it is an https address, an arXiv number or a DOI; as plain text otherwise."""
    address: str | None = None
    if re.fullmatch(r"https://[^\s\"'<>]+", text):
        address = text
    elif found := re.search(r"\barxiv[:\s]*(\d{4}\.\d{4,5})", text, re.IGNORECASE):
        address = f"https://arxiv.org/abs/{found[1]}"
    elif found := re.search(r"\b(10\.\d{4,9}/[^\s\"'<>]+)", text):
        address = f"https://doi.org/{found[1]}"
    if address is None:
        return escape(text)
    shown = text.removeprefix("https://")
    return f'<a href="{escape(address)}" rel="noopener noreferrer">{escape(shortened(shown, 70))}</a>'

"""The few SVG elements the charts are made of. All text is escaped here, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heatproof.report.typeset import escape, shortened

# Average advance of a system sans-serif at 12 px, rather too wide: the labels' columns are sized with it.
CHARACTER = 6.6
LONGEST = 48  # characters of a label: beyond, names are sentences
HALF = 500.0  # the widest drawing that fits half a page, its words a little smaller; wider ones get the whole row


def coordinate(value: float) -> str:
    """A coordinate to a tenth of a pixel, without a trailing zero: a page holds thousands of them."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def element(name: str, content: str = "", /, **attributes: str | float | None) -> str:
    """One element; `class_` is written `class`, `text_anchor` `text-anchor`; None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_written(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _written(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else coordinate(value)


def text(
    x: float,
    y: float,
    words: str,
    class_: str | None = None,
    anchor: str | None = None,
    tooltip: str | None = None,
) -> str:
    """Words at a place; `tooltip` is what hovering shows."""
    content = escape(words) + (element("title", escape(tooltip)) if tooltip else "")
    return element("text", content, x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight stroke."""
    return element("path", d=f"M{coordinate(x1)} {coordinate(y1)}L{coordinate(x2)} {coordinate(y2)}", class_=class_)


def group(content: str, class_: str | None = None, tooltip: str | None = None) -> str:
    """Elements that belong together, with one tooltip."""
    return element("g", (element("title", escape(tooltip)) if tooltip else "") + content, class_=class_)


def drawing(width: float, height: float, title: str, content: str, class_: str = "chart") -> str:
    """A complete, accessible, responsive drawing; what is too wide for half a page is `broad`."""
    class_ += " broad" if width > HALF and "matrix" not in class_ else ""
    return (
        f'<svg class="{escape(class_)}" viewBox="0 0 {coordinate(width)} {coordinate(height)}" role="img" '
        f'aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg" '
        f'style="--w:{coordinate(width)}px"><title>{escape(title)}</title>{content}</svg>'
    )


def letters(labels: Iterable[str], usual: int, longest: int = LONGEST) -> int:
    """How many characters labels get: the usual number, or as many as the longest needs not to be cut."""
    cut = [label for label in labels if shortened(label, usual).endswith("…")]
    needed = [next((n for n in range(usual, longest) if not shortened(one, n).endswith("…")), longest) for one in cut]
    return max(needed, default=usual)


def apart(labels: Sequence[str], usual: int, longest: int = LONGEST) -> int:
    """How many characters labels get where space is short: the usual number, or as many as keep them distinct."""
    many = len(set(labels))
    return next((n for n in range(usual, longest) if len({shortened(one, n) for one in labels}) == many), longest)


def label_width(labels: list[str], most: int) -> float:
    """The width of a column for these labels, each shortened to `most` characters."""
    return max((len(shortened(label, most)) for label in labels), default=0) * CHARACTER + 6


def colour_class(colour: int | None, quiet: bool = False) -> str:
    """The CSS class of a method's colour: one of eight, ink for further methods, grey for quiet ones."""
    return f"c{colour}" if colour is not None else "cq" if quiet else "cn"

"""The style of all figures: widths of a paper's columns, colours for every eye, text that stays text."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from heatproof.errors import BadInput, UnknownName
from heatproof.results.method_names import short_names
from heatproof.results.plots import FORMATS

COLUMN, PAGE = 3.4, 7.0  # inches: one column, and both, of the usual two-column paper
DPI = 300
# The colours of methods on the page, which can be distinguished with every kind of colour vision, and in print.
PALETTE = ("#2067d1", "#bb2100", "#14855e", "#b87d11", "#432b94", "#2699df", "#ae4a82", "#890036")
INK, SOFT, GREY = "#1c1b1a", "#6b6862", "#8d8a84"
DASHES: tuple[Any, ...] = (
    "-",
    (0, (4, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1.2, 1.5)),
    (0, (8, 2)),
    (0, (1.2, 3)),
    (0, (5, 1.5, 1.2, 1.5, 1.2, 1.5)),
)

_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.edgecolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "grid.color": "#e2ded6",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,  # letters, not outlines: journals ask for embedded TrueType
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "heatproof",
    "text.usetex": False,
    "text.parse_math": False,  # names may hold a dollar sign
}


class PaperFigure(Figure):
    """A figure that notebooks show whatever their back-end is."""

    def _repr_png_(self) -> bytes:
        return written(self, "png")


@contextmanager
def style() -> Iterator[None]:
    """The settings of all figures, for what is drawn inside."""
    with mpl.rc_context(_SETTINGS):
        yield


def sheet(width: float, height: float) -> PaperFigure:
    """An empty figure that lays itself out; it belongs to no window and need not be closed."""
    return PaperFigure(figsize=(width, height), layout="constrained", dpi=150)


def written(figure: Figure, form: str) -> bytes:
    """The figure as a file's content, the same bytes every time."""
    if form not in FORMATS:
        raise BadInput(f"a figure is written as {', '.join(FORMATS)}, got {form!r}")
    buffer = io.BytesIO()
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form, {})
    with style():
        figure.savefig(buffer, format=form, dpi=DPI, metadata=undated)
    return buffer.getvalue()


def colours(methods: Iterable[str], controls: Collection[str]) -> dict[str, str]:
    """A colour for each of the first eight methods; grey for further ones and for controls."""
    own = [method for method in methods if method not in controls]
    return {method: PALETTE[at] if at < len(PALETTE) else GREY for at, method in enumerate(own)}


def chosen(methods: Sequence[str], there: Sequence[str]) -> list[str]:
    """The methods asked for, by label or short name, in that order; all of them if none is."""
    names = short_names(there)
    whole = {short: label for label, short in names.items()}
    for method in methods:
        if method not in names and method not in whole:
            raise UnknownName.among("method in these results", method, [*names, *whole])
    return [method if method in names else whole[method] for method in methods] or list(there)


def titles(blocks: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
    """What tells the (data set, model) pairs apart: nothing if there is one, else what differs."""
    datasets, models = {dataset for dataset, _ in blocks}, {model for _, model in blocks}
    return {
        (dataset, model): " on ".join([model] * (len(models) > 1) + [dataset] * (len(datasets) > 1))
        for dataset, model in blocks
    }

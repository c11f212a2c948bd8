"""Figures of a run for a paper, as matplotlib figures: `results.plot.ranking().savefig("ranking.pdf")`.

Every figure is as wide as a column or a page of a paper, in colours that every eye tells apart, and as vectors. The
package matplotlib comes with `pip install 'heatproof[plot]'`; it is imported when the first figure is drawn.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heatproof.errors import Missing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heatproof.results.gallery import Picture
    from heatproof.results.results import Results

FORMATS = ("pdf", "svg", "png", "eps")


@dataclass(frozen=True, eq=False)
class Plots:
    """The figures of a run. Without `metrics` they show the main ones of its protocols."""

    results: Results

    def ranking(
        self, *metrics: str, methods: Sequence[str] = (), model: str | None = None, dataset: str | None = None
    ) -> Figure:
        """Means with their intervals, a panel for each metric; filled dots are the best group by the adjusted tests."""
        found: Figure = _drawn("ranking")(self.results, metrics, methods=methods, model=model, dataset=dataset)
        return found

    def curves(
        self, *metrics: str, methods: Sequence[str] = (), model: str | None = None, dataset: str | None = None
    ) -> Figure:
        """Mean curves over the pictures with their 95 % bands, a panel for each metric that leaves curves."""
        found: Figure = _drawn("curves")(self.results, metrics, methods=methods, model=model, dataset=dataset)
        return found

    def matrix(
        self, *metrics: str, methods: Sequence[str] = (), model: str | None = None, dataset: str | None = None
    ) -> Figure:
        """Methods × metrics: how many methods each beats, less those that beat it, by the adjusted tests."""
        found: Figure = _drawn("matrix")(self.results, metrics, methods=methods, model=model, dataset=dataset)
        return found

    def heatmaps(
        self,
        *,
        pictures: int | Sequence[str] = 4,
        methods: Sequence[str] = (),
        model: str | None = None,
        dataset: str | None = None,
    ) -> Figure:
        """Pictures × methods from the gallery that the run kept: the first ones, or those of the given ids."""
        found: Figure = _drawn("heatmaps")(
            self.results, pictures=pictures, methods=methods, model=model, dataset=dataset
        )
        return found


def grid(rows: Sequence[Picture], methods: Sequence[str]) -> Figure:
    """Pictures × methods, of pictures that need not belong to a run."""
    found: Figure = _drawn("heatmaps", "grid")(rows, methods)
    return found


def written(figure: Figure, form: str) -> bytes:
    """A figure as the content of a file of one of the `FORMATS`, the same bytes every time."""
    from heatproof.results.plots import style

    return style.written(figure, form)


def _drawn(kind: str, function: str = "") -> Any:
    """The function that draws a figure; `Missing` without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        raise Missing.package("matplotlib", "plot", "a figure")
    return vars(importlib.import_module(f"heatproof.results.plots.{kind}"))[function or kind]

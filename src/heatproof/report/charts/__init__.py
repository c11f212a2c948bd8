"""Charts drawn as SVG text: pure functions from numbers to a string, coloured by the page's style sheet."""

from heatproof.report.charts.bars import Bar, bars
from heatproof.report.charts.bumps import Ranks, bumps
from heatproof.report.charts.critical_difference import critical_difference
from heatproof.report.charts.curves import Line, curves
from heatproof.report.charts.heatmap import heatmap
from heatproof.report.charts.intervals import Estimate, interval_ranking
from heatproof.report.charts.ranks_over import ranks_over
from heatproof.report.charts.scatter import Point, scatter
from heatproof.report.charts.small_multiples import small_multiples
from heatproof.report.charts.strips import Spread, strips

__all__ = [
    "Bar",
    "Estimate",
    "Line",
    "Point",
    "Ranks",
    "Spread",
    "bars",
    "bumps",
    "critical_difference",
    "curves",
    "heatmap",
    "interval_ranking",
    "ranks_over",
    "scatter",
    "small_multiples",
    "strips",
]

"""Figures for a paper: they show the numbers of the tables, in the widths of columns, as vectors with text."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from invented_run import METHODS, invent
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

from heatproof.cli import app
from heatproof.errors import BadInput, Missing, UnknownName
from heatproof.results import Results
from heatproof.results.best_groups import best_groups
from heatproof.results.plots import written
from heatproof.results.plots.style import COLUMN, PAGE, PALETTE


@pytest.fixture(scope="module")
def run() -> Results:
    return invent(["embedded:object"], [f"p{at}" for at in range(24)])


def labels(axes: object) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]  # type: ignore[attr-defined]


def test_a_ranking_shows_the_means_of_the_table_and_fills_the_best_group(run: Results) -> None:
    figure = run.plot.ranking("srg")
    assert figure.get_figwidth() == COLUMN
    (axes,) = (one for one in figure.axes if one.get_visible())
    block = best_groups(run, ["srg"]).blocks[0]
    dots = {round(float(line.get_xdata()[0]), 9): line for line in axes.lines if line.get_marker() == "o"}
    assert dots.keys() == {round(row["srg"].mean, 9) for row in block.cells.values()}
    filled = {mean for mean, line in dots.items() if to_hex(line.get_markerfacecolor()) == PALETTE[0]}
    assert filled == {round(row["srg"].mean, 9) for row in block.cells.values() if row["srg"].best}
    assert 0 < len(filled) < len(METHODS)
    assert labels(axes)[-1] in ("random", "edges", "oracle")
    assert axes.get_xlabel() == "srg ↑"
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the best at the top


def test_all_panels_share_the_order_of_methods(run: Results) -> None:
    figure = run.plot.ranking()
    assert figure.get_figwidth() == PAGE
    assert [axes.get_xlabel() for axes in figure.axes if axes.get_visible()] == ["srg ↑", "mif ↓", "pointing_game ↑"]
    assert set(labels(figure.axes[1])) == {""}


def test_curves_are_the_means_of_the_stored_ones(run: Results) -> None:
    figure = run.plot.curves("mif", methods=["lrp", "random"])
    axes = figure.axes[0]
    drawn = {line.get_label(): line for line in axes.lines}
    assert drawn.keys() == {"lrp", "random"}
    stored = run.curves[run.curves["method"] == "lrp"]
    middle = np.mean([np.interp(0.5, x, y) for x, y in zip(stored["x"], stored["y"], strict=True)])
    x, y = (np.asarray(values, dtype=float) for values in drawn["lrp"].get_data())
    assert np.interp(0.5, x, y) == pytest.approx(middle, abs=0.01)
    assert drawn["random"].get_linestyle() != "-"


def test_a_matrix_is_coloured_by_what_beats_what(run: Results) -> None:
    axes = run.plot.matrix().axes[0]
    shown = axes.images[0].get_array()
    block = best_groups(run).blocks[0]
    names = [name.partition("<")[0] for name in labels(axes)]
    assert [method.partition("<")[0] for method in block.cells] == names
    first, rivals = next(iter(block.cells)), len(block.contestants) - 1
    cell = block.cells[first]["srg"]
    assert shown[0, 0] == pytest.approx((cell.wins - cell.losses) / rivals)
    assert shown[0, 0] > 0.5
    assert np.ma.getmaskarray(shown)[names.index("random")].all()  # a control


def test_heatmaps_have_a_row_for_every_picture_and_say_what_is_empty(run: Results) -> None:
    figure = run.plot.heatmaps(pictures=2, methods=["lrp", "random"])
    assert figure.get_figwidth() == COLUMN
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == ["lrp", "random"]
    assert sum(bool(axes.images) for axes in figure.axes) == 2 * 3 + 1  # and the colours
    blank = invent(["embedded:object"], [f"p{at}" for at in range(4)])
    blank.gallery[0].maps["lrp"] = np.zeros((64, 64))
    words = [text.get_text() for axes in blank.plot.heatmaps(pictures=2, methods=["lrp"]).axes for text in axes.texts]
    assert words == ["all zero"]


def test_names_and_pictures_that_are_not_there_are_named(run: Results) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'lrp'"):
        run.plot.ranking(methods=["lrpp"])
    with pytest.raises(UnknownName, match="metric in these results"):
        run.plot.curves("srgg")
    with pytest.raises(UnknownName, match="picture in the gallery"):
        run.plot.heatmaps(pictures=["p99"])
    with pytest.raises(BadInput, match="no curves of srg"):
        run.plot.curves("srg")
    with pytest.raises(BadInput, match="hold no heatmaps"):
        Results(run.scores, None, None, run.info).plot.heatmaps()


def test_files_are_vectors_with_text_and_the_same_every_time(run: Results) -> None:
    figure = run.plot.ranking("srg", methods=["lrp", "random"])
    svg = written(figure, "svg").decode()
    assert ">lrp</text>" in svg
    assert written(figure, "svg").decode() == svg
    assert written(figure, "pdf").startswith(b"%PDF")
    with pytest.raises(BadInput, match="pdf, svg, png"):
        written(figure, "bmp")
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert isinstance(figure, Figure)


def test_without_matplotlib_the_error_says_what_to_install(run: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else found(name))
    with pytest.raises(Missing, match=r"pip install 'heatproof\[plot\]'"):
        run.plot.matrix()


def test_results_do_not_import_matplotlib_before_a_figure_is_drawn() -> None:
    code = "import sys; from heatproof.results import Results; assert 'matplotlib' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_the_command_draws_each_kind(tmp_path: Path) -> None:
    shell, out = CliRunner(), tmp_path / "run"
    words = ["run", "--metrics", "srg", "--methods", "saliency,random", "--limit", "6", "--quiet", "--out", str(out)]
    assert shell.invoke(app, words).exit_code == 0
    for kind, form in (("ranking", "pdf"), ("curves", "svg"), ("matrix", "png"), ("heatmaps", "png")):
        place = tmp_path / f"{kind}.{form}"
        answer = shell.invoke(app, ["figure", str(out), kind, "--out", str(place)])
        assert answer.exit_code == 0, answer.output
        assert place.stat().st_size > 2000
    with Image.open(tmp_path / "heatmaps.png") as picture:
        assert picture.width == round(COLUMN * 300)
    wrong = shell.invoke(app, ["figure", str(out), "ranking", "--out", "fig.bmp"])
    assert wrong.exit_code == 2
    assert "take fig.pdf" in wrong.output
    assert "leave --metric out" in shell.invoke(app, ["figure", str(out), "heatmaps", "--metric", "srg"]).output

"""The page in a real browser: nothing fetched, no errors, everything drawn, names harmless."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from invented_run import HOSTILE, METHODS, drawn_picture
from playwright.sync_api import Browser, sync_playwright
from visit import SWITCHES, Visit, chromium

from heatproof.errors import BadInput
from heatproof.report import report, sections
from heatproof.report.charts import Line, small_multiples
from heatproof.report.charts import curves as draw
from heatproof.report.run_numbers import Reading
from heatproof.report.sections.blocks import fold, table
from heatproof.report.sections.curves import curves, mean_curve
from heatproof.report.sections.disagreement import tau_matrix
from heatproof.report.sections.ranking import ranking, scoreboard
from heatproof.report.sections.verdict import against_controls, brief
from heatproof.report.typeset import number
from heatproof.results.results import Picture, Results
from heatproof.results.run_info import run_info
from heatproof.storage.atomic_file import StoreFull


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=SWITCHES)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def written(invented_run: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(invented_run, tmp_path_factory.mktemp("page") / "deep" / "report.html")


def test_rows_of_tables_are_rows(browser: Browser, written: Path) -> None:
    visit = Visit(browser, written)
    found = "[...new Set([...document.querySelectorAll('main :is(td, th)')].map(one => getComputedStyle(one).display))]"
    assert visit.page.evaluate(found) == ["table-cell"]
    visit.page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_page_is_quiet_offline_and_drawn(browser: Browser, written: Path, width: int, scheme: str) -> None:
    visit = Visit(browser, written, width, scheme)
    visit.page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    assert visit.requests == []
    assert visit.complaints == []
    boxes = visit.page.evaluate(
        "[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect()).map(b => [b.width, b.height])"
    )
    assert len(boxes) > 20
    assert all(box[0] > 5 and box[1] > 5 for box in boxes)
    assert visit.page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.page.close()


def test_names_with_html_in_them_are_text(browser: Browser, written: Path) -> None:
    visit = Visit(browser, written)
    assert visit.page.evaluate("window.hacked") is None
    assert visit.page.evaluate("document.scripts.length") == 2
    assert visit.page.evaluate("document.querySelectorAll('img[src=x], [onerror]').length") == 0
    visit.page.locator("#missing .more > summary").click()
    assert HOSTILE in visit.page.inner_text("#missing")
    assert visit.complaints == []
    visit.page.close()


def test_dark_is_dark_and_light_is_light(browser: Browser, written: Path) -> None:
    paper = {}
    for scheme in ("light", "dark"):
        visit = Visit(browser, written, scheme=scheme)
        colour = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        paper[scheme] = sum(map(int, re.findall(r"\d+", colour)))
        visit.page.close()
    assert paper["dark"] < 150
    assert paper["light"] > 700


def test_a_click_sorts_the_scoreboard(browser: Browser, written: Path) -> None:
    visit = Visit(browser, written)
    visit.page.locator("#ranking .more > summary").click()
    board = visit.page.locator("table.board").first

    def sorted_by(column: int) -> tuple[str | None, list[str]]:
        head = board.locator("th[scope=col]").nth(column)
        head.locator("button").click()
        return head.get_attribute("aria-sort"), board.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()

    def numbers(texts: list[str]) -> list[float]:
        return [float(text.replace("−", "-")) for text in texts if text != "–"]

    heads = board.locator("th[scope=col]").all_inner_texts()
    higher, lower = (next(at for at, head in enumerate(heads) if head.endswith(arrow)) for arrow in "↑↓")
    output, shown = sorted_by(higher)
    assert (output, numbers(shown)) == ("descending", sorted(numbers(shown), reverse=True))
    output, shown = sorted_by(higher)
    assert (output, numbers(shown)) == ("ascending", sorted(numbers(shown)))
    output, shown = sorted_by(lower)
    assert (output, numbers(shown)) == ("ascending", sorted(numbers(shown)))  # the better end first
    output, shown = sorted_by(lower)
    assert (output, numbers(shown)) == ("descending", sorted(numbers(shown), reverse=True))
    output, shown = sorted_by(0)
    assert (output, shown) == ("ascending", sorted(shown))
    output, shown = sorted_by(0)
    assert (output, shown) == ("descending", sorted(shown, reverse=True))
    assert board.locator("[aria-sort]").count() == 1
    visit.page.close()


def test_at_the_width_of_a_telephone_charts_are_drawn_at_their_size(browser: Browser, written: Path) -> None:
    visit = Visit(browser, written, 390)
    visit.page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    scales = visit.page.evaluate(
        "[...document.querySelectorAll('svg.chart')]"
        ".map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
    )
    assert min(scales) > 0.99
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.page.close()


def test_print_loses_nothing_of_a_card_and_names_what_is_folded(browser: Browser, tmp_path: Path) -> None:
    style = (files("heatproof.report") / "style.css").read_text(encoding="utf-8")
    page = tmp_path / "page.html"
    held_back = f'<article class="card">{fold("2 more", "<p id=card>a beats b</p>")}</article>'
    folded = fold("some metric", "<p id=far>far away</p>") + fold("3 pairs", "<p id=pairs>a, b</p>", class_="pairs")
    folded += fold("Details", "<p id=more>all of it</p>", class_="more")
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{held_back}{folded}", encoding="utf-8")
    visit = Visit(browser, page)
    assert not visit.page.locator("#card").is_visible()
    visit.page.emulate_media(media="print")
    assert visit.page.locator("#card").is_visible()
    assert visit.page.locator("summary", has_text="some metric").is_visible()
    assert not visit.page.locator("#far").is_visible()
    assert visit.page.locator("#more").is_visible()
    assert visit.page.locator("#pairs").is_visible()  # what the matrix says only to who hovers
    visit.page.close()


def test_a_click_sorts_numbers_as_they_are_typeset(browser: Browser, tmp_path: Path) -> None:
    scores = {"a": -0.25, "b": 0.5, "c": -0.031, "d": 12300.0, "e": float("nan"), "f": 0.00031}
    rows = [[name, value, f"{number(value)} [x]", f"[{number(value)}, 1]"] for name, value in scores.items()]
    script = (files("heatproof.report") / "sort.js").read_text(encoding="utf-8")
    page = tmp_path / "page.html"
    board = table(("name", "v", "output", "within"), rows)
    page.write_text(f"<!doctype html><meta charset=utf-8>{board}<script>{script}</script>", encoding="utf-8")
    visit = Visit(browser, page)
    for column in range(1, 4):
        visit.page.locator("th button").nth(0).click()
        visit.page.locator("th button").nth(column).click()
        assert "".join(visit.page.locator("tbody th").all_inner_texts()) == "dbfcae"
        visit.page.locator("th button").nth(column).click()
        assert "".join(visit.page.locator("tbody th").all_inner_texts()) == "acfbde"
    visit.page.close()


def test_a_click_sorts_words_by_the_numbers_in_them(browser: Browser, tmp_path: Path) -> None:
    script = (files("heatproof.report") / "sort.js").read_text(encoding="utf-8")
    page = tmp_path / "page.html"
    board = table(("k", "drop"), [[str(k), k / 10] for k in (10, 1, 2, 9)])
    page.write_text(f"<!doctype html><meta charset=utf-8>{board}<script>{script}</script>", encoding="utf-8")
    visit = Visit(browser, page)
    visit.page.locator("th button").nth(0).click()
    assert visit.page.locator("tbody th").all_inner_texts() == ["1", "2", "9", "10"]
    visit.page.locator("th button").nth(0).click()
    assert visit.page.locator("tbody th").all_inner_texts() == ["10", "9", "2", "1"]
    visit.page.close()


def test_what_is_too_wide_for_half_a_page_has_a_row_of_its_own(browser: Browser, tmp_path: Path) -> None:
    style = (files("heatproof.report") / "style.css").read_text(encoding="utf-8")
    lines = [draw([Line(name, [0, 1], [0, 1])], title=name) for name in ("short", "a name " * 5, "b")]
    drawn = small_multiples([("", chart) for chart in lines])
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{drawn}", encoding="utf-8")
    visit = Visit(browser, page, 1000)
    boxes = visit.page.evaluate(
        "[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect()).map(b => [b.x, b.y, b.width])"
    )
    (short, long, other) = boxes
    assert short[1] < long[1] < other[1]  # each in a row of its own, for the second fills one
    assert long[2] / short[2] > 1.1
    visit.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_warning_looks_like_one_and_a_heading_keeps_off_what_is_above(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    style = (files("heatproof.report") / "style.css").read_text(encoding="utf-8")
    body = '<p class="warning">Beware</p><ul><li>a</li></ul><h3>b</h3>' + fold("c", "d") + "<h3>e</h3>"
    page = tmp_path / "page.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><style>{style}</style><section>{body}</section>", encoding="utf-8"
    )
    visit = Visit(browser, page, scheme=scheme)
    for media in ("screen", "print"):
        visit.page.emulate_media(media=media, color_scheme=scheme)
        words = visit.page.evaluate(
            "(s => [s.backgroundColor, s.borderLeftWidth, parseFloat(s.paddingLeft)])"
            "(getComputedStyle(document.querySelector('.warning')))"
        )
        paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert words[0] not in (paper, "rgba(0, 0, 0, 0)")
        assert words[1] == "4px"
        assert words[2] > 8
    gaps = visit.page.evaluate(
        "[...document.querySelectorAll('h3')].map(h => h.getBoundingClientRect().top"
        " - h.previousElementSibling.getBoundingClientRect().bottom)"
    )
    assert min(gaps) >= 30
    visit.page.close()


def test_sections_stand_in_order(written: Path) -> None:
    names = re.findall(r'<section id="([^"]+)"', written.read_text(encoding="utf-8"))
    wanted = [
        "answer",
        "gallery",
        "verdict",
        "ranking",
        "significance",
        "curves",
        "disagreement",
        "missing",
        "provenance",
    ]
    assert names == wanted


def test_the_page_names_everything(browser: Browser, written: Path) -> None:
    visit = Visit(browser, written)
    visit.page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    text = visit.page.inner_text("body")
    for word in (
        *METHODS,
        "srg",
        "two_factor",
        "embedded:object_plain",
        "B-cos networks only",
        "2.13.0",
        "3 min 7 s",
    ):
        assert word in text
    assert "Controls edges and random" in visit.page.inner_text("#verdict")
    visit.page.close()


def _own_section(reading: Reading) -> str:
    return '<section id="own"><h2>Own</h2></section>'


def test_a_protocol_adds_its_section(small_run: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sections.protocol_sections()  # else ours would be loaded over it
    monkeypatch.setitem(sections._sections, "pixel_flipping", _own_section)
    text = report(small_run, tmp_path / "r.html").read_text(encoding="utf-8")
    names = re.findall(r'<section id="([^"]+)"', text)
    assert names[names.index("curves") + 1] == "own"
    assert '<a href="#own">Own</a>' in text


def test_the_same_run_gives_the_same_page(small_run: Results, tmp_path: Path) -> None:
    once, again = report(small_run, tmp_path / "once.html"), report(small_run, tmp_path / "again.html")
    assert again.read_bytes() == once.read_bytes()


def test_a_failed_drawing_leaves_the_old_page(
    small_run: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "report.html"
    page.write_text("old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "disk full")))
    with pytest.raises(StoreFull, match="no space left for"):
        report(small_run, page)
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


def test_a_directory_gets_a_report_inside(small_run: Results, tmp_path: Path) -> None:
    assert report(small_run, tmp_path) == tmp_path / "report.html"


def test_no_rows_is_an_error_that_says_so(invented_run: Results, tmp_path: Path) -> None:
    empty = Results(invented_run.scores.head(0), pd.DataFrame())
    with pytest.raises(BadInput, match="empty table"):
        report(empty, tmp_path / "r.html")


@pytest.mark.parametrize("images", [1, 2])
def test_few_images_and_the_direction_of_each_metric_are_enough(
    browser: Browser, invented_run: Results, tmp_path: Path, images: int
) -> None:
    scores = invented_run.scores
    some = scores.loc[scores["image"].isin([f"{at:05d}" for at in range(5, 5 + images)])]
    with pytest.raises(BadInput, match="do not say whether higher 'srg' is better"):
        report(Results(some, pd.DataFrame()), tmp_path / "r.html")
    info = {"metrics": {name: {"higher_is_better": name != "mif"} for name in some["metric"].unique()}}
    visit = Visit(browser, report(Results(some, pd.DataFrame(), info=run_info(info)), tmp_path / "r.html"))
    assert visit.complaints == []
    assert visit.page.locator("section").count() >= 4
    visit.page.close()


def test_a_metric_that_nothing_could_score_says_why(small_run: Results, tmp_path: Path) -> None:
    scores = small_run.scores.copy()
    lost = scores["metric"] == "srg"
    scores.loc[lost, ["value", "status", "note"]] = [np.nan, "failed", "the model fell over"]
    text = report(Results(scores, pd.DataFrame(), None, small_run.info), tmp_path / "r.html").read_text("utf-8")
    assert "No ranking" in text
    assert "the model fell over" in text


def test_controls_are_not_ranked_and_are_measured_against(invented_run: Results) -> None:
    reading = Reading(invented_run)
    panel = reading.panels[0]
    assert set(reading.standings[panel].ranks).isdisjoint({"oracle", "edges", "random"})
    assert reading.standings[panel].ranks["lrp"][0] == 1
    output = against_controls(reading, panel)
    assert "Control oracle: it beats every method." in output
    assert "Controls edges and random, each: every method beats it." in output
    assert set(reading.colours).isdisjoint({"oracle", "edges", "random"})


def test_tau_is_one_between_a_metric_and_its_reverse(invented_run: Results) -> None:
    part = invented_run.scores.loc[invented_run.scores["metric"] == "srg"]
    turned = part.assign(metric="turned", value=-part["value"])
    info = {
        **invented_run.info.plain(),
        "metrics": {"srg": {"higher_is_better": True}, "turned": {"higher_is_better": False}},
    }
    reading = Reading(Results(pd.concat([part, turned]), pd.DataFrame(), None, run_info(info)))
    panels = [panel for panel in reading.panels if panel.model == "embedded:object"]
    assert tau_matrix(reading, panels)[0, 1] == pytest.approx(1)


def test_curves_that_rank_no_method_share_one_fold(small_run: Results) -> None:
    plain = small_run.curves
    internal = [plain.assign(metric=f"audit{at}") for at in range(3)]
    audits = {f"audit{at}": {"higher_is_better": True} for at in range(3)}
    info = {**small_run.info.plain(), "metrics": {**small_run.info.plain()["metrics"], **audits}}
    words = curves(Reading(Results(small_run.scores, pd.concat([plain, *internal]), None, run_info(info))))
    assert words is not None
    shown, folded = words.split('<details class="more"')[1].split("<details")  # one fold only
    assert folded.startswith("><summary>Curves that rank no method (3 metrics)</summary>")
    assert "audit" not in shown
    assert all(f"Curves of audit{at}" in folded for at in range(3))
    assert "Curves of mif" in shown


def test_a_ranking_of_shares_names_its_interval(small_run: Results) -> None:
    scores = small_run.scores.copy()
    pointing = scores["metric"] == "pointing_game"
    scores.loc[pointing, "value"] = (
        (scores.loc[pointing, "value"] > 0.5).astype(float).where(scores.loc[pointing, "status"] == "ok")
    )
    shares = ranking(Reading(Results(scores, pd.DataFrame(), None, small_run.info)))
    means = ranking(Reading(small_run))
    assert shares is not None
    assert means is not None
    assert "Wilson’s interval" in shares
    assert "Wilson" not in means


def test_a_scoreboard_leaves_out_methods_without_a_score(small_run: Results) -> None:
    scores = small_run.scores.copy()
    scores.loc[scores["method"] == "saliency", ["value", "status"]] = [np.nan, "failed"]
    lost = (scores["method"] == "smoothgrad") & (scores["metric"] == "srg")
    scores.loc[lost, ["value", "status"]] = [np.nan, "failed"]
    board = scoreboard(Reading(Results(scores, pd.DataFrame(), None, small_run.info)), "two_factor", "embedded:object")
    assert '<th scope="row">saliency</th>' not in board
    assert '<th scope="row">smoothgrad</th>' in board  # it has one elsewhere


def test_mean_curves_are_read_off_one_grid() -> None:
    slope = [(np.linspace(0, 1, n), np.linspace(0, 2, n)) for n in (3, 7, 50)]
    summary = mean_curve([x for x, _ in slope], [y for _, y in slope])
    assert summary is not None
    grid, mean, low, high = summary
    np.testing.assert_allclose(mean, 2 * grid, atol=1e-12)
    np.testing.assert_allclose(low, high, atol=1e-12)
    assert mean_curve([np.array([])], [np.array([])]) is None
    rng = np.random.default_rng(0)
    noisy = [rng.normal(size=5) for _ in range(30)]
    grid, mean, low, high = mean_curve([np.arange(5.0)] * 30, noisy)  # type: ignore[misc]
    assert ((low < mean) & (mean < high)).all()
    np.testing.assert_allclose(mean, np.mean(noisy, axis=0))


def large_run(methods: int, metrics: int, images: int) -> Results:
    rng = np.random.default_rng(0)
    names = [f"method_{at:02d}(steps={at})" for at in range(methods)]
    ids = [f"image_{at:05d}" for at in range(images)]
    frames = []
    for metric in range(metrics):
        level = rng.normal(0, 0.05, methods)
        values = level[None] + rng.normal(0, 0.2, (images, methods)) + rng.normal(0, 0.2, (images, 1))
        frames.append(
            pd.DataFrame(
                {
                    "dataset": "photos",
                    "model": "resnet",
                    "method": np.tile(names, images),
                    "metric": f"metric_{metric:02d}",
                    "image": np.repeat(ids, methods),
                    "value": values.ravel(),
                    "status": "ok",
                    "note": "",
                    "seconds": 0.1,
                }
            )
        )
    x = np.linspace(0, 1, 21)
    rows = [
        ("photos", "resnet", name, f"metric_{metric:02d}", image, x, 1 - x ** rng.uniform(0.5, 2))
        for metric in range(metrics // 4)
        for name in names
        for image in ids[:8]
    ]
    curves = pd.DataFrame(rows, columns=["dataset", "model", "method", "metric", "image", "x", "y"])
    info = {"metrics": {f"metric_{metric:02d}": {"higher_is_better": True} for metric in range(metrics)}}
    results = Results(pd.concat(frames), curves, info=run_info(info))
    exhibits = []
    for at in range(12):
        picture, region = drawn_picture(at % 4, 224)
        maps = {name: rng.normal(size=(224, 224)) for name in names}
        exhibits.append(Picture("photos", "resnet", ids[at], picture, region, "cat", maps))
    results.__dict__["gallery"] = exhibits
    return results


@pytest.mark.parametrize(
    ("methods", "metrics", "images"),
    [(40, 2, 30), pytest.param(40, 40, 120, marks=pytest.mark.slow)],
)
def test_many_methods_and_metrics_stay_small(tmp_path: Path, methods: int, metrics: int, images: int) -> None:
    path = report(large_run(methods, metrics, images), tmp_path / "r.html")
    assert path.stat().st_size < 5_000_000


def test_with_many_methods_the_card_tells_of_the_leader() -> None:
    reading = Reading(large_run(14, 1, 12))
    panel = reading.panels[0]
    means = reading.table(panel).mean()
    output = brief(reading, panel)
    assert output[0].startswith(f"{means.idxmax()} has the best mean and beats ")
    tests = reading.pairs(panel)
    assert tests is not None
    beaten = int((tests.frame["significant"] & (tests.frame["winner"] == means.idxmax())).sum())
    assert f"beats {beaten} of the other 13" in output[0]
    assert f"{int(tests.frame['significant'].sum())} of 91 pairs" in output[2]


def test_drawing_needs_no_torch() -> None:
    code = "import sys, heatproof.report; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""The gallery that can be asked, in a real browser: by mouse, by keyboard, on a telephone, and for axe-core."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from invented_run import HOSTILE, METHODS, invent
from playwright.sync_api import Browser, Page, sync_playwright
from visit import SWITCHES, Visit, chromium, serious_faults

from heatproof.report import report
from heatproof.report.explorer import explorer_data
from heatproof.report.questions import DECLARED, USUAL
from heatproof.report.run_numbers import Reading
from heatproof.results import Results
from heatproof.results.flip_book import Flips
from heatproof.results.run_info import run_info

IMAGES = [HOSTILE, *(f"{index:05d}" for index in range(1, 40))]
HIDDEN = (12, 200, 34)


def asked_run() -> Results:
    """Rows goes step by step from the top of a picture; every third picture is misclassified."""
    run = invent(["embedded:object"], IMAGES)
    gone = (np.arange(64)[:, None] // 4 + 1).repeat(64, 1).astype(np.uint8)
    hidden = np.full((64, 64, 3), HIDDEN, np.uint8)
    frames = np.stack([np.full((16, 16, 3), 20 * at, np.uint8) for at in range(4)])
    books = {"lrp": {"mif": Flips(gone, hidden)}, "saliency": {"mif": Flips(gone, None, frames, (0, 6, 12, 20))}}
    exhibits = [replace(picture, flips=books) for picture in run.gallery]
    truth = pd.DataFrame(
        [("two_factor", "embedded:object", name, 1, 2, at % 3 > 0) for at, name in enumerate(IMAGES)],
        columns=["dataset", "model", "image", "label", "predicted", "right"],
    )
    found = replace(run, truth=truth)
    found.__dict__["gallery"] = exhibits
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=SWITCHES)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(asked_run(), tmp_path_factory.mktemp("asked") / "report.html")


@pytest.fixture
def visit(browser: Browser, written: Path) -> Iterator[Visit]:
    found = Visit(browser, written)
    yield found
    assert found.complaints == []
    assert found.requests == []
    found.page.close()


def names(page: Page) -> list[str]:
    return page.locator(".asked-row .about-picture small").all_inner_texts()


def test_sorting_by_disagreement_puts_what_methods_disagree_on_first(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("button", name="Show more").click()
    before = names(page)
    page.get_by_label("Sort", exact=True).select_option("apart")
    apart = [float(name.rpartition("disagreement ")[2]) for name in names(page)]
    assert apart == sorted(apart, reverse=True)
    assert len(apart) == len(before) == 4
    assert apart[0] > apart[-1]


@pytest.mark.parametrize("metric", ["srg", "mif"])
def test_sorting_by_score_knows_which_end_is_better(visit: Visit, metric: str) -> None:
    page = visit.page
    page.get_by_role("button", name="Show more").click()
    page.get_by_label("under", exact=True).select_option(label=metric)
    page.get_by_label("Score of", exact=True).select_option(label="lrp")
    page.get_by_label("Sort", exact=True).select_option("best")
    shown = page.locator(".asked-row .maps figure:first-child figcaption span").all_inner_texts()
    scores = [float(text.replace("−", "-")) for text in shown]
    assert scores == sorted(scores, reverse=metric == "srg")


def test_only_misclassified_pictures_are_shown_where_they_are_asked_for(visit: Visit) -> None:
    page = visit.page
    page.get_by_label("Show", exact=True).select_option("wrong")
    assert len(names(page)) == 2
    assert all("classified wrongly as 2" in name for name in names(page))
    page.get_by_label("Show", exact=True).select_option("right")
    assert len(names(page)) == 2
    assert "2 of 2 pictures" in page.locator("#explorer [role=status]").inner_text()


def test_a_method_that_is_not_chosen_is_nowhere_on_the_page(visit: Visit) -> None:
    page = visit.page
    assert page.locator(".answers tr[data-method=lrp]").is_visible()
    page.locator("summary", has_text="Methods").first.click()
    page.locator(".choose").get_by_label("lrp").uncheck()
    assert not page.locator(".answers tr[data-method=lrp]").is_visible()
    assert page.locator(".answers tr[data-method=saliency]").is_visible()
    page.locator("#ranking .more > summary").click()
    rows = [row for row in page.locator("#ranking table.board tbody th").all() if row.is_visible()]
    assert "lrp" not in [row.inner_text() for row in rows]
    assert rows
    assert page.locator(".maps figure", has_text="lrp").count() == 0
    page.locator("summary", has_text="Methods").first.click()
    page.locator(".choose").get_by_label("lrp").check()
    assert page.locator(".answers tr[data-method=lrp]").is_visible()


def test_a_measure_that_is_not_chosen_has_no_column_and_no_card(visit: Visit) -> None:
    page = visit.page
    page.locator("#ranking .more > summary").click()
    page.locator("#verdict .more > summary").click()
    head = page.locator("#ranking table.board thead th", has_text="pointing_game")
    assert head.first.is_visible()
    page.locator("summary", has_text="Measures").click()
    page.locator(".choose").get_by_label("pointing_game").uncheck()
    assert not head.first.is_visible()
    assert not page.locator(".card", has_text="How often the highest pixel").first.is_visible()
    assert page.locator(".card:visible").count() == 2


def colours(page: Page) -> list[list[int]]:
    """The middle column of the flip-book, a colour per eighth of its height."""
    return page.evaluate(
        "(() => { const c = document.querySelector('.flip canvas'); const pen = c.getContext('2d');"
        " return [...Array(8).keys()].map(k => [...pen.getImageData(c.width / 2, (k + .5) * c.height / 8, 1, 1).data]"
        ".slice(0, 3)); })()"
    )


def near(colour: list[int]) -> bool:
    return max(abs(a - b) for a, b in zip(colour, HIDDEN, strict=True)) <= 2


def test_the_flip_book_hides_what_is_gone_and_tells_the_answer_by_keyboard_alone(visit: Visit) -> None:
    page = visit.page
    page.locator(".asked-row .open").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    slider = page.locator(".flip input")
    page.wait_for_function("document.querySelector('.answer-now').textContent.startsWith('0 % gone')")
    assert not any(near(colour) for colour in colours(page))
    slider.focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("!document.querySelector('.answer-now').textContent.startsWith('0 % gone')")
    page.wait_for_timeout(300)
    found = [near(colour) for colour in colours(page)]
    assert found == [True] * 4 + [False] * 4  # 8 steps of 4 rows out of 64
    curves = page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    at = [one["name"] for one in curves["metrics"]].index("mif")
    who = [one["name"] for one in curves["methods"]].index("lrp")
    x, y = curves["pictures"][0]["curves"][str(at)][str(who)]
    words = page.locator(".answer-now").inner_text()
    assert words.startswith(f"{round(100 * x[8])} % gone")
    assert float(words.rpartition(" ")[2].replace("−", "-")) == pytest.approx(y[8], abs=6e-4)
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()


def test_frames_say_of_which_step_they_are_and_what_was_not_kept_is_said(visit: Visit) -> None:
    page = visit.page
    page.locator(".asked-row .open").first.click()
    page.locator(".flip").get_by_label("Method", exact=True).select_option(label="saliency")
    page.locator(".flip input").fill("6")
    page.wait_for_function("!/0 % gone|picture is that/.test(document.querySelector('.answer-now').textContent)")
    page.locator(".flip input").fill("8")
    page.wait_for_function("/The picture is that of/.test(document.querySelector('.answer-now').textContent)")
    page.locator(".flip").get_by_label("Method", exact=True).select_option(label="edges")
    page.wait_for_function("/was not kept/.test(document.querySelector('.answer-now').textContent)")
    assert not page.locator(".flip canvas").is_visible()


def test_arrows_turn_to_the_next_picture_and_all_heatmaps_are_large(visit: Visit) -> None:
    page = visit.page
    page.locator(".asked-row .open").first.click()
    dialog = page.get_by_role("dialog")
    first = dialog.locator(".note").first.inner_text()
    assert dialog.locator(".large figure:visible").count() == len(METHODS)
    width = dialog.locator(".large canvas").first.bounding_box()
    assert width is not None
    assert width["width"] > 140
    dialog.get_by_role("button", name="Close").focus()
    page.keyboard.press("ArrowRight")
    assert dialog.locator(".note").first.inner_text() != first
    page.keyboard.press("ArrowLeft")
    assert dialog.locator(".note").first.inner_text() == first


def test_a_heatmap_tells_its_value_where_the_pointer_is(visit: Visit) -> None:
    page = visit.page
    canvas = page.locator(".asked-row .maps canvas").first
    page.wait_for_timeout(300)
    canvas.hover()
    assert canvas.get_attribute("title").endswith("% of its full colour)")


def test_a_cell_of_the_first_table_says_what_stands_behind_its_mark(visit: Visit) -> None:
    page = visit.page
    page.locator(".answers tbody button").first.focus()
    page.keyboard.press("Enter")
    note = page.locator("#cell-note").inner_text()
    assert note.startswith("lrp · By other measures?")
    assert "srg" in note


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_telephone_nothing_scrolls_sideways(browser: Browser, written: Path, scheme: str) -> None:
    visit = Visit(browser, written, 375, scheme)
    page = visit.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.locator("summary", has_text="Methods").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.locator("summary", has_text="Methods").first.click()
    page.locator(".asked-row .open").first.click()
    page.wait_for_timeout(200)
    dialog = page.get_by_role("dialog")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert dialog.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    assert visit.complaints == []
    page.close()


def test_seven_questions_fit_a_telephone(browser: Browser, tmp_path: Path) -> None:
    run = asked_run()
    asked = [one.words for one in (*USUAL.values(), *DECLARED.values())][:7]
    base = run.scores[run.scores["metric"] == "srg"]
    stored = run.info.plain()
    stored["metrics"] = {f"metric_{at}": {"higher_is_better": True, "question": asked[at]} for at in range(7)}
    scores = pd.concat([base.assign(metric=name) for name in stored["metrics"]])
    wide = replace(run, scores=scores, info=run_info(stored))
    wide.__dict__["gallery"] = run.gallery
    wide.__dict__["curves"] = run.curves.iloc[:0]
    visit = Visit(browser, report(wide, tmp_path / "report.html"), 390)
    assert visit.page.locator(".answers thead th").count() == 8
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    table = visit.page.locator("#answer .scroll").first
    assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    visit.page.close()


def test_a_finger_opens_a_picture_and_turns_the_pages(browser: Browser, written: Path) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 780}, has_touch=True)
    page.goto(written.as_uri())
    page.locator(".answers tbody button").first.tap()
    assert "srg" in page.locator("#cell-note").inner_text()
    page.locator(".asked-row .maps figure").first.tap()
    slider = page.locator(".flip input")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
    page.wait_for_function("!document.querySelector('.answer-now').textContent.startsWith('0 % gone')")
    page.get_by_role("button", name="Close").tap()
    assert not page.get_by_role("dialog").is_visible()
    page.close()


def test_the_page_is_at_most_six_screens_before_unfolding(browser: Browser, tmp_path: Path) -> None:
    run = invent(["embedded:object", "embedded:object_plain"], IMAGES)
    path = report(run, tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    visit = Visit(browser, path)
    assert visit.page.evaluate("document.documentElement.scrollHeight") <= 6 * 900
    assert visit.page.locator(".strip").bounding_box()["y"] < 900  # type: ignore[index]
    assert visit.page.locator(".advice").bounding_box()["y"] < 900  # type: ignore[index]
    visit.page.close()


def test_without_the_script_the_page_reads(browser: Browser, written: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(written.as_uri())
    assert page.locator(".answers tbody tr").first.is_visible()
    assert page.locator(".advice li").first.is_visible()
    assert not page.locator("#explorer").is_visible()
    page.locator("#gallery .more > summary").click()
    assert page.locator("#gallery img").first.is_visible()
    assert page.locator(".answers button").first.get_attribute("title")
    page.close()


# In the dark contrasts are fewest; the page is the same otherwise.
@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_axe_finds_no_serious_fault(browser: Browser, written: Path, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page.goto(written.as_uri())
    for opened in (False, True):
        if opened:
            page.keyboard.press("Escape")
            page.locator("h1").click()  # what lies over the pictures closes
            page.locator(".asked-row .open").first.click()
            page.wait_for_timeout(200)
        else:
            page.evaluate("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
        assert serious_faults(page) == []
    page.close()


def test_names_in_the_data_cannot_end_its_element() -> None:
    run = asked_run()
    data = explorer_data(Reading(run))
    assert "<" not in data
    assert HOSTILE in [picture["id"] for picture in json.loads(data)["pictures"]]

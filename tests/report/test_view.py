"""`heatproof view`: runs are listed, opened and compared in a browser, and nothing else is served to anyone else."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from networks import small_cnn
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner
from visit import SWITCHES, chromium, serious_faults

from heatproof.cli import app
from heatproof.data.two_factor.dataset import TwoFactor
from heatproof.errors import BadInput
from heatproof.report.view import Viewer, runs_in
from heatproof.results import Results
from heatproof.results.comparison import compare
from heatproof.run.loop import run
from heatproof.spec.study import Study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same pictures; what one method scores differs, since its settings do under the same name."""
    root = tmp_path_factory.mktemp("runs")
    for name, methods in (("first", ["saliency", "random"]), ("deep/second <b>", ["saliency", "random", "edges"])):
        study = Study([small_cnn()], [TwoFactor(count=12)], methods, ["mif", "srg"])
        run(study, root / name)
    (root / "broken").mkdir()
    (root / "broken" / "run.json").write_text("{}")
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Viewer]:
    found = Viewer(folder)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()


def answer(server: Viewer, path: str, host: str = "", method: str = "GET") -> tuple[int, str]:
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    line.request(method, path, headers={"Host": host or f"127.0.0.1:{server.server_port}"})
    found = line.getresponse()
    return found.status, found.read().decode()


def test_runs_are_listed_opened_and_compared_by_clicks(server: Viewer) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=SWITCHES)
        page = browser.new_page(viewport={"width": 375, "height": 800})
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(server.address)
        assert page.locator("tbody tr").count() == 3
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        page.get_by_label("first, from").check()
        page.get_by_label("deep/second <b>, to").check()
        page.get_by_role("button", name="Compare the two").click()
        text = page.inner_text("body")
        assert "4 cells (method, metric, model, data set) are in both runs, paired by picture." in text
        assert "All their scores are equal." in text
        assert "Only in the second: method edges." in text
        assert page.locator(".sides table.answers").count() == 2
        page.get_by_role("link", name="first").first.click()
        assert page.locator("h1").inner_text() == "Which heatmaps hold up?"
        assert complaints == []
        browser.close()


@pytest.mark.parametrize("path", ["", "compare?first=first&second=deep/second%20%3Cb%3E"])
def test_axe_finds_no_serious_fault(server: Viewer, path: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=SWITCHES)
        page = browser.new_page(bypass_csp=True)
        page.goto(server.address + path)
        assert serious_faults(page) == []
        browser.close()


def test_only_this_machine_under_its_own_name_is_answered(server: Viewer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert answer(server, "/")[0] == 200
    assert answer(server, "/", host=f"localhost:{server.server_port}")[0] == 200
    assert answer(server, "/", host=f"evil.example:{server.server_port}")[0] == 403
    assert answer(server, "/", method="POST")[0] == 501


@pytest.mark.parametrize(
    "path", ["/report/../../etc/passwd", "/report/%2e%2e/first", "/first/scores.parquet", "/report/"]
)
def test_nothing_but_the_runs_is_served(server: Viewer, path: str) -> None:
    status, text = answer(server, path)
    assert status == 404
    assert "There is no such run here." in text


def test_a_run_that_cannot_be_read_says_so_and_does_not_hide_the_others(server: Viewer) -> None:
    status, text = answer(server, "/")
    assert status == 200
    assert "broken" in text
    assert "/report/first" in text
    assert answer(server, "/report/broken")[0] == 422
    assert "<b>" not in text.split("<tbody>")[1]


def test_a_run_without_a_report_gets_one_and_its_folder_stays_as_it_was(server: Viewer, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    status, text = answer(server, "/report/first")
    assert (status, "Which heatmaps hold up?" in text) == (200, True)
    assert sorted(folder.rglob("*")) == before


def test_a_folder_without_runs_says_how_to_make_one(tmp_path: Path) -> None:
    assert runs_in(tmp_path) == {}
    with pytest.raises(BadInput, match="is not a folder"):
        Viewer(tmp_path / "absent")


def moved(results: Results, by: float) -> Results:
    """The same run with one method's scores of one metric moved."""
    scores = results.scores.copy()
    here = (scores["method"] == "saliency") & (scores["metric"] == "mif")
    scores.loc[here, "value"] += by + 0.01 * pd.Series(range(len(scores)), index=scores.index)[here] / len(scores)
    return Results(scores, pd.DataFrame(), None, results.info)


def test_what_moved_is_named_and_its_direction_is_that_of_the_metric(folder: Path) -> None:
    results = Results.load(folder / "first")
    found = compare(results, moved(results, 0.5))
    assert [(one.key[2:], one.outcome) for one in found.moved] == [(("mif", "saliency"), "up")]
    assert not found.better(found.moved[0])  # of mif, lower is better
    assert found.better(compare(results, moved(results, -0.5)).moved[0])
    assert found.count("same") == 3
    assert "1 moved by more than noise (0 better, 1 worse)" in " ".join(found.sentences())


def test_the_terminal_says_the_same(folder: Path) -> None:
    words = ["compare", str(folder / "first"), str(folder / "deep" / "second <b>"), "--all"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert "All their scores are equal." in found.output
    assert found.output.count("| equal |") == 4
    unknown = CliRunner().invoke(app, [*words, "--metric", "mfi"])
    assert unknown.exit_code == 2
    assert "mif" in unknown.output


def test_runs_without_anything_in_common_cannot_be_compared(folder: Path) -> None:
    results = Results.load(folder / "first")
    other = Results(results.scores.assign(dataset="other"), pd.DataFrame(), None, results.info)
    with pytest.raises(BadInput, match="no data set, model, metric and method in common"):
        compare(results, other)

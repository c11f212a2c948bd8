"""Visits to a page in a real browser, with everything it complained about or requested."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"


def serious_faults(page: Page) -> list[tuple[str, str]]:
    """The serious and critical faults of accessibility that axe-core finds, each with its first element."""
    if not AXE.is_file():
        pytest.fail(f"axe-core is missing at {AXE}: make axe", pytrace=False)
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=str(AXE))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [(one["id"], one["nodes"][0]["html"][:160]) for one in found if one["impact"] in ("serious", "critical")]


def chromium() -> str:
    """The system's browser; a missing one fails the test with the line that installs it."""
    named = os.environ.get("HEATPROOF_CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("/usr/bin/chromium")
    if not found:
        pytest.fail("The report is tested in a real browser: apt-get install -y chromium", pytrace=False)
    return found


class Visit:
    """A page with everything it complained about or requested."""

    def __init__(self, browser: Browser, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        address = path.as_uri()

        def routed(route) -> None:  # type: ignore[no-untyped-def]
            if route.request.url == address or route.request.url.startswith("data:"):
                route.continue_()
            else:
                self.requests.append(route.request.url)
                route.abort()

        self.page.route("**/*", routed)
        self.page.goto(address)

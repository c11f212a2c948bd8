"""Visits to a page in a real browser, with everything it complained about or requested."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


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

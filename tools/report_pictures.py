"""The pictures of the report in docs/images: its first screen, and one picture in large with its flip-book.

make demo
python tools/report_pictures.py runs/demo/report.html
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SIZE = {"width": 1280, "height": 900}


def first_screen(page: Page) -> bytes:
    """The page as it opens."""
    return page.screenshot()


def flip_book(page: Page) -> bytes:
    """The first picture in large, a third of it gone."""
    page.locator(".asked-row .open").first.click()
    slider = page.locator(".flip input")
    slider.fill(str(int(slider.get_attribute("max") or 0) // 3))
    page.wait_for_function("!document.querySelector('.answer-now').textContent.startsWith('0 % gone')")
    page.wait_for_timeout(500)  # heatmaps are painted one by one
    return page.locator("dialog").screenshot()


def main(report: Path) -> None:
    browser = os.environ.get("HEATPROOF_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = opened.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
        page.goto(report.resolve().as_uri())
        page.wait_for_timeout(500)
        for name, shot in {"report": first_screen, "flip_book": flip_book}.items():
            picture = Image.open(io.BytesIO(shot(page))).convert("RGB")  # a palette would change the heat's colours
            picture.save(IMAGES / f"{name}.png", optimize=True)
            print(IMAGES / f"{name}.png")
        opened.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))

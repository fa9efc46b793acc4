"""The pictures of pages in the documentation: `python -m tests.report.pictures DEMO.html HISTORY.html BOARD.html` draws
them anew.

The first is of `foretest demo`, the second of `foretest history` on a simulated history, the third of `foretest board`
on the tests of such a history, each run offline and online.
"""

from __future__ import annotations

import base64
import shutil
import sys
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

DOCS = Path(__file__).resolve().parents[2] / "docs"
WIDTH = 1000


def draw(page: Path, picture: Path, begin: str, end: str) -> None:
    """A piece of a page: from where one element begins to where another ends."""
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=1"):
        options.add_argument(argument)
    with Chrome(options=options, service=Service(shutil.which("chromedriver"))) as chrome:
        metrics = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        chrome.get(page.resolve().as_uri())
        WebDriverWait(chrome, 30).until(lambda c: c.execute_script("return document.documentElement.dataset.charts"))
        place = "return document.querySelector(arguments[0]).getBoundingClientRect()"
        top = max(0, chrome.execute_script(place, begin)["top"] - 20)
        bottom = chrome.execute_script(place, end)["bottom"] + 20
        clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top, "scale": 1}
        shot = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        picture.write_bytes(base64.b64decode(chrome.execute_cdp_cmd("Page.captureScreenshot", shot)["data"]))


if __name__ == "__main__":
    demo, history, board = map(Path, sys.argv[1:])
    draw(demo, DOCS / "report-light.png", "body", "#estimators figure")
    draw(history, DOCS / "report-history.png", "#boxes", "#correlation")
    draw(board, DOCS / "board.png", "body", "#pairs tbody tr:nth-child(8)")

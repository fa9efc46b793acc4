"""Open the built site in Chromium with the network off: python docs/_site/check.py SITE [SCREENSHOTS]

Every page must open without a console error and ask for nothing outside the site, the search must find a word, and the
button beside a block must copy commands alone.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
#: pages that are drawn: their names, and the pages
DRAWN = {
    "landing": "docs/index.html",
    "tutorial": "docs/tutorials/getting-started.html",
    "python": "docs/reference/python/tests.html",
    "settings": "docs/reference/settings.html",
}


def open_browser() -> Chrome:
    """Chromium without a window and without a network."""
    options = Options()
    options.binary_location = next(path for name in CHROMIUM if (path := shutil.which(name)))
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    browser.execute_cdp_cmd("Network.enable", {})
    nothing = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", nothing)
    return browser


def size(browser: Chrome, width: int, height: int = 900) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def complaints(browser: Chrome, page: Path) -> list[str]:
    """What is wrong with a page: console errors, requests that leave the site, a page wider than a phone."""
    size(browser, 390)
    browser.get(page.as_uri())
    faults = [f"console: {entry['message']}" for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            faults += [] if url.startswith(("file:", "data:")) else [f"asks for {url}"]
    wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    faults += [f"is {wide} pixels wider than a phone"] if wide > 0 else []
    return [f"{page}: {fault}" for fault in faults]


def check_search(browser: Chrome, site: Path, word: str, expected: str) -> None:
    """The search finds the page that is about a word."""
    browser.get((site / "search.html").as_uri() + f"?q={word}")
    WebDriverWait(browser, 30).until(lambda b: b.find_elements(By.CSS_SELECTOR, "#search-results li a"))
    WebDriverWait(browser, 30).until(lambda b: expected in b.find_element(By.ID, "search-results").text)


def check_copy(browser: Chrome, page: Path) -> None:
    """A console block is copied as its commands alone."""
    browser.get(page.as_uri())
    block = browser.find_element(By.CSS_SELECTOR, ".highlight-console")
    commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
    text = "String(getSelection()) || document.activeElement.value"
    browser.execute_script(f"document.addEventListener('copy', () => {{ window.copied = {text}; }})")
    button = block.find_element(By.CSS_SELECTOR, "button.copybtn")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    copied = browser.execute_script("return window.copied")
    if not commands or copied is None or copied.split("\n") != commands:
        raise SystemExit(f"{page}: {copied!r} is copied, not {commands!r}")


def draw(browser: Chrome, site: Path, folder: Path) -> None:
    """Pictures of some pages: light and dark, and on a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in DRAWN.items():
        for kind, width, mode in (("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light")):
            size(browser, width)
            browser.get((site / page).as_uri())
            browser.execute_script(
                "localStorage.setItem('mode', arguments[0]); localStorage.setItem('theme', arguments[0]);", mode
            )
            browser.get((site / page).as_uri())
            shot: Any = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
            (folder / f"{name}-{kind}.png").write_bytes(base64.b64decode(shot["data"]))


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    if not shutil.which("chromedriver") or not any(map(shutil.which, CHROMIUM)):
        print("The site was built, but not opened: chromium and chromium-driver are missing.", file=sys.stderr)
        return
    with open_browser() as browser:
        pages = sorted(site.rglob("*.html"))
        faults = [fault for page in pages if "_static" not in page.parts for fault in complaints(browser, page)]
        if faults:
            raise SystemExit("\n".join(faults))
        size(browser, 1280)
        check_search(browser, site, "deterministic", "Deterministic production")
        check_copy(browser, site / "docs" / "tutorials" / "getting-started.html")
        if len(sys.argv) > 2:
            draw(browser, site, Path(sys.argv[2]))
    print(f"{len(pages)} pages open with the network off; search and copying work.")


if __name__ == "__main__":
    main()

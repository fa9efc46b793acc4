"""The board of 200 results, as the command writes it, in a real browser with the network off."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from foretest.report.board.board import Board, read_board
from foretest.report.digits import pct
from tests.report.board.results import document, put
from tests.report.conftest import IMAGE, SCRIPT, foretest
from tests.report.test_browser import CONTRAST, SCREENSHOTS, Page

pytestmark = pytest.mark.browser

#: texts of a column of rows in sight, in their order
COLUMN = """
return [...document.querySelectorAll(arguments[0] + " tbody tr:not([hidden])")].map((row) =>
  row.cells[arguments[1]].innerText.replaceAll("\\u00a0", " ").trim())
"""
NAME, KIND, DATE, METRIC, UPLIFT, RANGE, WORD, AUDIT = range(8)


@pytest.fixture(scope="module")
def results(many: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 200 results, some more with hostile names, and damaged ones."""
    folder = tmp_path_factory.mktemp("board") / "results"
    shutil.copytree(many, folder)
    for name in (IMAGE, SCRIPT.replace("/", "⁄"), "\u202eeman", "x" * 240, "caf\udce9"):
        put(folder / "hostile" / name, document("several"))
    put(folder / "hostile" / "damaged", '{"foretest":')
    put(folder / "hostile" / IMAGE / "cut", "")
    foretest("board", str(folder), "-o", str(folder / "board.html"))
    return folder


@pytest.fixture(scope="module")
def board(results: Path) -> Board:
    return read_board(results)


@pytest.fixture
def page(browser: Any, results: Path) -> Page:
    return Page(browser, results / "board.html")


@pytest.fixture
def column(page: Page) -> Callable[..., list[str]]:
    return lambda number, table="#results": page.run(COLUMN, table, number)


def choose(page: Page, name: str, text: str, table: str = "#results") -> None:
    Select(page.one(f"{table} [data-filter={name}]")).select_by_visible_text(text)


def test_it_opens_small_without_a_complaint_or_a_request(page: Page) -> None:
    assert page.path.stat().st_size < 2_000_000
    assert page.complaints() == []
    assert set(page.requests()) <= {"data:,"}
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    assert page.all("img, main script, main iframe, main object") == []
    assert page.run("return document.scripts.length") == page.path.read_text(encoding="utf-8").count("<script")
    text = page.run("return document.body.textContent")
    assert all(name in text for name in (IMAGE, "\\u202eeman", "caf\\xe9", "x" * 50))


def test_results_are_searched_filtered_and_counted(page: Page, board: Board, column: Callable[..., list[str]]) -> None:
    leading = [row for row in board.rows if row.leads]
    summary = page.one("#results .shown")
    assert len(column(NAME)) == len(leading)
    assert summary.text.startswith(f"{len(leading)} of {len(board.rows)} rows")

    search = page.one("#results input[type=search]")
    search.send_keys("ranker 07")
    assert column(NAME) == ["tests/ranker 07/offline", "tests/ranker 07/online"]
    search.clear()
    search.send_keys("several BOLD")  # two words, one in the name of the treatment
    wanted = sum("several" in row.entry.name and row.treatment == "bold" for row in leading)
    assert len(column(NAME)) == wanted > 20
    search.clear()
    search.send_keys("nothing like it")
    assert column(NAME) == []
    assert summary.text.startswith("0 of ")
    search.clear()
    search.send_keys(Keys.SPACE)

    for name, text, fits in (
        ("kind", "history", lambda row: row.entry.kind == "history"),
        ("word", "leans negative", lambda row: row.estimate is not None and row.estimate.word == "leans negative"),
        ("audit", "fail", lambda row: row.audit is not None and row.audit.outcome == "fail"),
    ):
        choose(page, name, text)
        assert len(column(NAME)) == sum(fits(row) for row in leading) > 0
        choose(page, name, "any")
    choose(page, "metric", "revenue")
    assert set(column(METRIC)) == {"revenue"}
    assert len(column(NAME)) == sum(row.metric == "revenue" for row in board.rows)
    choose(page, "metric", "all")
    assert len(column(NAME)) == len(board.rows)
    assert page.visible("#results .also") == []  # each further metric has a row of its own now
    assert page.complaints() == []


def test_every_column_sorts_both_ways(page: Page, board: Board, column: Callable[..., list[str]]) -> None:
    headers = page.all("#results thead th")
    choose(page, "metric", "all")
    estimates = [row.estimate for row in board.rows if row.estimate is not None]
    uplifts = sorted(e.rel_effect_size for e in estimates if e.rel_effect_size is not None)
    order = ("positive", "leans positive", "neutral", "leans negative", "negative", "insufficient")
    for number, header in enumerate(headers):
        first = column(number)
        for direction in ("ascending", "descending"):
            page.click(header.find_element(By.TAG_NAME, "button"))
            assert header.get_attribute("aria-sort") == direction
            assert sum(h.get_attribute("aria-sort") != "none" for h in headers) == 1
            cells = column(number)
            assert sorted(cells) == sorted(first)
            if number == UPLIFT:
                wanted = uplifts if direction == "ascending" else uplifts[::-1]
                texts = [pct(value, sign=True).replace("\N{NO-BREAK SPACE}", " ") for value in wanted]
                assert cells[: len(texts)] == texts  # what has no number is last, both ways
            if number == DATE:
                days = [cell[:10] for cell in cells]
                assert days == sorted(days, reverse=direction == "descending")
            if number == WORD:
                ranks = [order.index(words[0]) for cell in cells if (words := re.findall(r"[a-z][a-z ]+", cell))]
                assert ranks == sorted(ranks, reverse=direction == "descending")


def test_pairs_stand_side_by_side(page: Page, board: Board, column: Callable[..., list[str]]) -> None:
    counts = [pair for pair in board.pairs if pair.leads]
    held, right = sum(pair.range_held is True for pair in counts), sum(pair.call == "right-call" for pair in counts)
    assert f"range contained the online uplift in {held}, and offline was right in {right}" in page.one("h1").text
    assert len(column(0, "#pairs")) == 60
    choose(page, "held", "no", "#pairs")
    assert len(column(0, "#pairs")) == 60 - held
    choose(page, "held", "any", "#pairs")
    choose(page, "call", "right", "#pairs")
    assert len(column(0, "#pairs")) == right
    row = page.visible("#pairs tbody tr")[0]
    bars = row.find_elements(By.CSS_SELECTOR, ".bar")
    assert [bar.get_attribute("aria-label").split()[0] for bar in bars] == ["predicted", "measured"]


def test_a_name_leads_to_the_report(page: Page) -> None:
    links = page.run("return [...document.querySelectorAll('main a')].map((link) => link.href)")
    assert len(links) > 200
    assert all(link.startswith("file:///") for link in links)
    hostile = sorted({link for link in links if "/hostile/" in link})
    assert len(hostile) == 5
    for link in hostile:
        page.browser.get(link)
        assert page.browser.title == "a report"


def test_the_keyboard_reaches_tools_headings_and_links(page: Page) -> None:
    page.one("#pairs input[type=search]").click()
    reached = []
    for _ in range(16):
        ActionChains(page.browser).send_keys(Keys.TAB).perform()
        reached.append(
            page.run(
                "const e = document.activeElement, s = getComputedStyle(e);"
                "return [e.dataset.filter ?? e.textContent.trim(), s.outlineStyle !== 'none']"
            )
        )
    assert all(outlined for _, outlined in reached)
    texts = [text for text, _ in reached]
    assert texts[:3] == ["metric", "held", "call"]
    assert texts[4:10] == ["test", "metric", "predicted", "measured", "in range", "offline was"]
    assert texts[10:12] == ["offline", "online"]
    header = page.one("#pairs th")
    page.run("arguments[0].querySelector('button').focus()", header)
    ActionChains(page.browser).send_keys(Keys.ENTER).perform()
    assert header.get_attribute("aria-sort") == "ascending"


def test_on_a_phone_nothing_runs_over_and_the_order_can_be_chosen(page: Page, column: Callable[..., list[str]]) -> None:
    for width in (320, 768):
        page.size(width)
        page.browser.refresh()
        page.wait()
        assert page.run("return document.documentElement.scrollWidth") <= width
    page.size(390)
    first = column(NAME)
    Select(page.one("#results [data-sort]")).select_by_visible_text("result ↓")
    assert column(NAME)[0].startswith("tries/several/24")
    Select(page.one("#results [data-sort]")).select_by_visible_text("date, newest first")
    assert column(NAME) == first


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_aa(page: Page, scheme: str) -> None:
    page.media(scheme)
    texts, low = page.run(CONTRAST)
    assert texts > 500
    assert low == []


def test_it_can_be_read_without_javascript(page: Page, board: Board) -> None:
    switch = "Emulation.setScriptExecutionDisabled"
    page.browser.execute_cdp_cmd(switch, {"value": True})
    try:
        page.browser.get(page.path.as_uri())
        assert len(page.all("#results tbody tr")) == len(board.rows)
        assert page.visible(".tools") == []
        assert "Every row is below." in page.one("noscript").text
    finally:
        page.browser.execute_cdp_cmd(switch, {"value": False})


def test_landmarks_headings_and_captions(page: Page) -> None:
    assert [len(page.all(tag)) for tag in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    levels = page.run("return [...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))")
    assert all(after - before <= 1 for before, after in zip([0, *levels], levels, strict=False))
    for table in page.all("main table"):
        assert page.run("return arguments[0].caption.textContent.trim()", table)
        assert page.run("return [...arguments[0].querySelectorAll('th')].every((th) => th.scope !== '')", table)
    anchors = page.run("return [...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href').slice(1))")
    identities = page.run("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(set(identities)) == len(identities)
    assert set(anchors) <= set(identities)


def test_screenshots_are_kept(page: Page) -> None:
    """In build/screenshots, to be looked at: light, dark and phone, with the first results in sight."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for name, width, scheme in (("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light")):
        page.media(scheme)
        page.size(width)
        page.browser.refresh()
        page.wait()
        clip = {"x": 0, "y": 0, "width": width, "height": 3000, "scale": 1}
        shot = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        picture = base64.b64decode(page.browser.execute_cdp_cmd("Page.captureScreenshot", shot)["data"])
        (SCREENSHOTS / f"board-{name}.png").write_bytes(picture)
        assert len(picture) > 20_000

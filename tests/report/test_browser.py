"""Every kind of page, as the commands write it, in a real browser with the network off."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from foretest.report import digits
from foretest.report.page import LARGEST
from tests.report.conftest import HOSTILE, IMAGE, SCRIPT

pytestmark = pytest.mark.browser

KINDS = ("run", "online", "history", "demo", "paper")
NAMES = {"run": [IMAGE, SCRIPT, HOSTILE, "<b>desk</b>"], "online": [IMAGE], "history": [IMAGE, SCRIPT], "demo": [],
         "paper": []}  # fmt: skip
DOCUMENTS = {"history": "agreement.json", "paper": "paper.json"}  # others: result.json
SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"


def pct(value: float, *, sign: bool = False) -> str:
    """As a page writes it and the browser reads it out: with a plain space."""
    return digits.pct(value, sign=sign).replace("\N{NO-BREAK SPACE}", " ")


class Page:
    """A page in the browser."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser, self.path = browser, path
        for kind in ("browser", "performance"):
            browser.get_log(kind)  # what earlier pages said
        self.size(1280)
        self.media()
        browser.get(path.as_uri())
        self.wait()

    def wait(self) -> None:
        """Until all charts are drawn; none of them waits for a scroll."""
        WebDriverWait(self.browser, 60).until(lambda _: self.run("return document.documentElement.dataset.charts"))

    def size(self, width: int, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def media(self, scheme: str = "light", media: str = "") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        return list(self.browser.find_elements(By.CSS_SELECTOR, selector))

    def one(self, selector: str) -> Any:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def visible(self, selector: str) -> list[Any]:
        return [element for element in self.all(selector) if element.is_displayed()]

    def seen(self, selector: str) -> list[str]:
        return [element.text for element in self.visible(selector)]

    def click(self, element: Any) -> None:
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def hover(self, element: Any) -> None:
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.browser).move_to_element(element).perform()

    def complaints(self) -> list[Any]:
        return [entry for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> dict[str, str | None]:
        """Addresses that the page would ask for, beside its own file, and what stopped each."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        said = [(m["method"], m["params"]) for m in messages]
        asked = {p["requestId"]: p["request"]["url"] for method, p in said if method == "Network.requestWillBeSent"}
        stopped = {p["requestId"]: p.get("blockedReason") for method, p in said if method == "Network.loadingFailed"}
        own = self.path.as_uri()
        return {address: stopped.get(key) for key, address in asked.items() if address.split("#")[0] != own}


@pytest.fixture
def opened(browser: Any, made: Path) -> Callable[[str], Page]:
    """A page, loaded anew."""
    return lambda kind: Page(browser, made / kind / "report.html")


@pytest.fixture(scope="module", params=KINDS)
def page(request: pytest.FixtureRequest, browser: Any, made: Path) -> Page:
    """Each page in turn, loaded once for all tests that only look at it."""
    return Page(browser, made / request.param / "report.html")


@pytest.fixture
def kind(page: Page) -> str:
    return page.path.parent.name


def result_of(made: Path, kind: str) -> dict[str, Any]:
    name = DOCUMENTS.get(kind, "result.json")
    document: dict[str, Any] = json.loads((made / kind / name).read_text(encoding="utf-8"))
    return document


# -- every page, looked at ---------------------------------------------------------------------------------------------


def test_it_opens_without_a_complaint_or_a_request(page: Page) -> None:
    assert page.complaints() == []
    assert set(page.requests()) <= {"data:,"}  # the icon that is none
    assert page.run("return performance.getEntriesByType('resource').length") == 0


def test_every_chart_has_its_marks(page: Page, kind: str) -> None:
    places = page.all("[data-chart]")
    assert len(places) >= {"run": 10, "online": 1, "history": 6, "demo": 5, "paper": 5}[kind]
    for place in places:
        words = place.get_attribute("aria-label")
        assert place.get_attribute("data-drawn") == "yes", words
        marks = page.run(
            "return [...arguments[0].querySelectorAll('svg .role-mark line, svg .role-mark path')].filter((mark) =>"
            " mark.getBBox().width + mark.getBBox().height > 0).length",
            place,
        )
        assert marks >= 2, words
        assert place.get_attribute("role") == "img"
        assert re.search(r"\d", words), "an alternative text states numbers"


def test_hostile_names_stay_text(page: Page, kind: str) -> None:
    assert page.all("img") == []
    assert page.all("main script, main iframe, main object") == []
    assert page.run("return document.scripts.length") == page.path.read_text(encoding="utf-8").count("<script")
    text = page.run("return document.body.textContent")
    assert all(name in text for name in NAMES[kind])


def test_it_is_small_and_names_no_other_host_or_folder(page: Page, made: Path) -> None:
    assert page.path.stat().st_size <= LARGEST
    text = page.path.read_text(encoding="utf-8")
    hosts = set(re.findall(r"https?://([^/\s\"'<>&\\)]+)", text))
    assert hosts <= {"doi.org", "arxiv.org", "www.w3.org"}
    assert str(made) not in text
    assert "/tmp" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_landmarks_headings_and_tables(page: Page) -> None:
    assert [len(page.all(tag)) for tag in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    assert page.one("nav").get_attribute("aria-label")
    assert page.one("html").get_attribute("lang") == "en"
    levels = page.run("return [...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))")
    assert all(after - before <= 1 for before, after in zip([0, *levels], levels, strict=False))
    for table in page.all("main table"):
        assert page.run("return (arguments[0].caption?.textContent ?? '').trim()", table)
        assert page.run("return [...arguments[0].querySelectorAll('th')].every((th) => th.scope !== '')", table)
    anchors = page.run("return [...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href').slice(1))")
    names = page.run("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(set(names)) == len(names)
    assert set(anchors) <= set(names)


# the contrast of every text in sight with what is behind it, by the formula of WCAG 2
CONTRAST = """
const channel = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const parse = (colour) => { const n = colour.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3]));
function ground(element) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
}
const low = [];
let texts = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const style = getComputedStyle(element);
  const svg = element.closest("svg") !== null;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility({ checkVisibilityCSS: true })) continue;
  if (element.closest("script, style") || (svg && style.fill === "none")) continue;
  const back = ground(element);
  const front = over(parse(svg ? style.fill : style.color), back);
  const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  texts += 1;
  if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) low.push(walker.currentNode.textContent.trim().slice(0, 40));
}
return [texts, low];
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_aa(page: Page, scheme: str) -> None:
    page.media(scheme)
    texts, low = page.run(CONTRAST)
    page.media()
    assert texts > 50
    assert low == []


# -- every page, handled -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_or_a_foreign_script_would_be_stopped(opened: Callable[[str], Page], kind: str) -> None:
    """The policy is in force, not merely written: whatever a page might be made to do, it does not get out."""
    page = opened(kind)
    said = page.browser.execute_async_script(
        """
        const done = arguments[0];
        window.ran = false;
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        const image = new Image();
        image.src = "https://example.invalid/x.png";
        document.body.append(script, image);
        setTimeout(async () => {
          let compiled = "yes";
          try { new Function("return 1")(); } catch (error) { compiled = error.name; }
          let sent = "yes";
          try { await fetch("https://example.invalid/"); } catch (error) { sent = error.name; }
          done([window.ran, compiled, sent]);
        }, 0);
        """
    )
    assert said == [False, "EvalError", "TypeError"]
    blocked = [entry for entry in page.complaints() if "Content Security Policy" in entry["message"]]
    assert len(blocked) >= 4  # the script, the picture, the compilation, the request
    outside = {address: why for address, why in page.requests().items() if address.startswith("http")}
    assert set(outside.values()) == {"csp"}  # none was sent


@pytest.mark.parametrize("kind", KINDS)
def test_the_download_is_the_result(opened: Callable[[str], Page], made: Path, kind: str, downloads: Path) -> None:
    page = opened(kind)
    name = DOCUMENTS.get(kind, "result.json")
    (downloads / name).unlink(missing_ok=True)
    behaviour = {"behavior": "allow", "downloadPath": str(downloads)}
    page.browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    [button] = [button for button in page.all(".download") if button.text == f"Download {name}"]
    page.click(button)
    WebDriverWait(page.browser, 20).until(lambda _: (downloads / name).exists())
    assert json.loads((downloads / name).read_text(encoding="utf-8")) == result_of(made, kind)
    assert page.complaints() == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_runs_over_a_narrow_screen(opened: Callable[[str], Page], kind: str) -> None:
    page = opened(kind)
    for width in (320, 768):
        page.size(width)
        page.browser.refresh()
        page.wait()
        assert page.run("return document.documentElement.scrollWidth") <= width
        ends = "return [...document.querySelectorAll('.chart svg')].map((s) => s.getBoundingClientRect().right)"
        assert max(page.run(ends)) <= width


@pytest.mark.parametrize("kind", KINDS)
def test_keyboard_order_and_visible_focus(opened: Callable[[str], Page], kind: str) -> None:
    page = opened(kind)
    reached: list[tuple[int, bool, str]] = []
    for _ in range(200):
        ActionChains(page.browser).send_keys(Keys.TAB).perform()
        said = page.run(
            """
            const e = document.activeElement;
            if (e === document.body) return null;
            const style = getComputedStyle(e.matches("input[type=radio]") ? e.nextElementSibling : e);
            const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
            return [[...document.querySelectorAll("*")].indexOf(e), outlined, e.className];
            """
        )
        if said is None or (reached and said[0] == reached[0][0]):
            break
        reached.append(tuple(said))
    assert reached[0][2] == "skip"  # the first stop leads past the navigation
    places = [place for place, _, _ in reached]
    assert places == sorted(places)
    assert [name for _, outlined, name in reached if not outlined] == []
    stops = "main button:not([hidden]), main [tabindex='0'], main summary, main select, main input[type=search]"
    wanted = [element for element in page.visible(stops) if "tip" not in element.get_attribute("class")]
    assert len(reached) >= len(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_it_prints_on_a4_with_charts_whole(opened: Callable[[str], Page], kind: str) -> None:
    page = opened(kind)
    pdf = base64.b64decode(page.browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    boxes = {tuple(round(float(n)) for n in box.split()) for box in re.findall(rb"/MediaBox \[([\d. ]+)\]", pdf)}
    assert boxes == {(0, 0, 595, 842)}
    page.media("dark", "print")
    width, height = (210 - 28) / 25.4 * 96, (297 - 31) / 25.4 * 96  # A4 less its margins, in CSS pixels
    page.size(int(width))
    for figure in page.visible("figure"):
        assert page.run("return getComputedStyle(arguments[0]).breakInside", figure) == "avoid"
        right, tall = page.run("const b = arguments[0].getBoundingClientRect(); return [b.right, b.height]", figure)
        assert right <= width
        assert tall < height
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("kind", KINDS)
def test_screenshots_are_kept(opened: Callable[[str], Page], kind: str) -> None:
    """In build/screenshots, to be looked at: light, dark, phone and paper."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page = opened(kind)
    for name, width, scheme in (("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light")):
        page.media(scheme)
        page.size(width)
        page.browser.refresh()
        page.wait()
        height = page.run("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        picture = base64.b64decode(page.browser.execute_cdp_cmd("Page.captureScreenshot", shot)["data"])
        (SCREENSHOTS / f"{kind}-{name}.png").write_bytes(picture)
        assert len(picture) > 20_000
    options = {"preferCSSPageSize": True, "printBackground": True}
    pdf = base64.b64decode(page.browser.execute_cdp_cmd("Page.printToPDF", options)["data"])
    (SCREENSHOTS / f"{kind}-print.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF")


# -- the result's parts ------------------------------------------------------------------------------------------------


def test_the_theme_can_be_chosen(opened: Callable[[str], Page]) -> None:
    page = opened("online")
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(ground)
    page.one("#theme").click()
    assert page.run(ground) != light
    page.media("dark")  # the reader's choice outlives the system's
    page.one("#theme").click()
    assert page.run(ground) == light


def test_the_verdict_comes_first_and_the_parts_in_order(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("run")
    estimate = result_of(made, "run")["metrics"]["click"]["estimates"]["point-ncis-adaptive"]
    assert pct(abs(estimate["rel_effect_size"])) in page.one("h1").text
    titles = page.run("return [...document.querySelectorAll('h2')].map((h) => h.textContent)")
    assert titles == [
        "Can this log answer the question?", "Was this log drawn from the control?", "Metrics",
        "Estimators side by side", "The cap", "Strata of PieceNCIS", "Method and reproducibility",
    ]  # fmt: skip
    text = page.one("#reproduce").get_attribute("textContent")
    assert "foretest run run-data/log.parquet -c run.toml -o out" in text  # the log was given by its full path
    assert "seed = 0" in text
    assert all(
        f"{name} {version}" in text for name, version in result_of(made, "run")["provenance"]["versions"].items()
    )


def test_relative_or_absolute(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("run")
    estimate = result_of(made, "run")["metrics"]["click"]["estimates"]["point-ncis-adaptive"]
    cell = "table.metrics tbody tr:first-child td[data-label='uplift'] span"
    assert page.seen(cell) == [pct(estimate["rel_effect_size"], sign=True)]
    page.click(page.one("input.as-absolute").find_element(By.XPATH, ".."))
    [shown] = page.seen(cell)
    assert float(shown.replace("−", "-")) == pytest.approx(estimate["effect_size"], rel=1e-3)


def test_tables_sort_by_number_and_by_name(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("run")
    metrics = result_of(made, "run")["metrics"]
    by_uplift = sorted(metrics, key=lambda m: metrics[m]["estimates"]["point-ncis-adaptive"]["rel_effect_size"])
    header = page.one("table.metrics th:nth-child(4)")
    for wanted, direction in ((by_uplift, "ascending"), (by_uplift[::-1], "descending")):
        page.click(header.find_element(By.TAG_NAME, "button"))
        assert page.seen("table.metrics tbody th") == wanted
        assert header.get_attribute("aria-sort") == direction
    page.click(page.one("table.metrics th:first-child button"))
    assert header.get_attribute("aria-sort") == "none"
    assert page.seen("table.metrics tbody th")[-1] == "click"  # after both that begin with <


def test_a_bar_is_where_its_interval_is(opened: Callable[[str], Page], made: Path) -> None:
    """Ends of the bars against the numbers: one scale for all rows."""
    page = opened("run")
    metrics = result_of(made, "run")["metrics"]
    drawn = {}
    for row in page.all("table.metrics tbody tr"):
        bar = row.find_element(By.CSS_SELECTOR, ".rel .bar")
        left, right, zero = page.run(
            "const [b, w] = [arguments[0].querySelector('b'), arguments[0]].map((e) => e.getBoundingClientRect());"
            "return [b.left, b.right, w.left + parseFloat(getComputedStyle(arguments[0], '::before').left)]",
            bar,
        )
        drawn[row.find_element(By.TAG_NAME, "th").text] = left - zero, right - zero
    sound = [m for m in metrics if metrics[m]["verdict"] != "insufficient"]
    assert sound
    limits = [(metrics[m]["estimates"]["point-ncis-adaptive"], drawn[m]) for m in sound]
    pixels = limits[0][1][1] / limits[0][0]["range"]["rel_ci_upper"]
    for estimate, (left, right) in limits:
        assert left == pytest.approx(pixels * estimate["range"]["rel_ci_lower"], abs=1.0)
        assert right == pytest.approx(pixels * estimate["range"]["rel_ci_upper"], abs=1.0)


def test_the_switch_of_metrics_shows_that_metric_alone(opened: Callable[[str], Page]) -> None:
    page = opened("run")
    assert page.seen("#estimators caption") == ["How the estimators differ (click)."]
    page.click(page.all("input[data-switch='metric']")[1].find_element(By.XPATH, ".."))
    assert page.seen("#estimators caption") == [f"How the estimators differ ({IMAGE})."]
    assert len(page.seen("#strata caption")) == 1
    shown = [place.get_attribute("aria-label") for place in page.visible("#cap [data-chart]")]
    assert any(IMAGE in label for label in shown)
    assert not any("metric click" in label for label in shown)


def test_tiles_tell_their_meaning_on_focus_and_escape_hides_it(opened: Callable[[str], Page]) -> None:
    page = opened("run")
    names = [label.text for label in page.all(".tile .label")]
    assert names == ["propensity audit", "rows", "units", "rewarded rows", "effective clicks", "mass behind the answer",
                     "treatment mass kept", "rows above the cap", "unsupported rows", "rank correlation"]  # fmt: skip
    tile = page.all(".tile")[names.index("treatment mass kept")]
    tip = tile.find_element(By.CSS_SELECTOR, "[role=tooltip]")
    assert tile.get_attribute("aria-describedby") == tip.get_attribute("id")
    assert not tip.is_displayed()
    page.run("arguments[0].focus()", tile)
    assert tip.is_displayed()
    assert "modelled, not measured" in tip.text
    assert page.run("return arguments[0].getBoundingClientRect().right <= innerWidth", tip)
    tile.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_the_audit_is_a_checklist(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("run")
    findings = result_of(made, "run")["audit"]["findings"]
    shown = page.seen(".checklist li")
    assert len(shown) == len(findings) == 10
    for line, finding in zip(shown, findings, strict=True):
        assert finding["name"] in line
        assert ("not run" in line) == (finding["outcome"] == "not made")
    assert page.all(".alarm") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_failed_audit_stands_in_red_words_beside_the_verdict(opened: Callable[[str], Page], scheme: str) -> None:
    page = opened("failed")
    page.media(scheme)
    alarm = page.one(".answer .alarm")
    assert alarm.get_attribute("role") == "alert"
    assert alarm.text.startswith("The propensity audit failed (log-likelihood")
    assert "This log cannot answer: it was not produced by the control" in page.one("h1").text
    red, green, blue = map(int, re.findall(r"\d+", page.run("return getComputedStyle(arguments[0]).color", alarm))[:3])
    assert red > 1.4 * max(green, blue)
    assert "What to do: The log looks as if drawn at temperature" in page.one(".checklist .failed").text
    _, low = page.run(CONTRAST)
    page.media()
    assert low == []


def test_hovering_a_chart_gives_the_numbers(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("run")
    estimate = result_of(made, "run")["metrics"]["click"]["estimates"]["point-ncis-adaptive"]
    page.hover(page.visible("#estimators svg .mark-symbol path")[-1])
    tooltip = WebDriverWait(page.browser, 5).until(lambda _: page.one("#vg-tooltip-element.visible"))
    assert "point-ncis-adaptive" in tooltip.text
    assert pct(estimate["rel_effect_size"], sign=True) in tooltip.text
    assert estimate["verdict"] in tooltip.text


def test_hovering_shows_hostile_names_as_text(opened: Callable[[str], Page]) -> None:
    page = opened("history")
    read: list[str] = []
    for symbol in page.visible("#boxes svg .mark-symbol path"):
        page.hover(symbol)
        time.sleep(0.05)
        read += page.seen("#vg-tooltip-element.visible")
    assert any(IMAGE in text for text in read)
    assert page.all("img") == []


def test_the_online_page_checks_the_split(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("online")
    check = result_of(made, "online")["health"]["sample_ratio"]
    text = page.one("#arms").text
    assert "split as designed" in text
    assert all(f"{units:,}" in text for units in check["units"])
    assert " would " not in page.one("h1").text  # it was run


def test_the_demo_tells_the_truth(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("demo")
    truth = json.loads((made / "demo" / "truth.json").read_text(encoding="utf-8"))
    said = pct(truth["metrics"]["click"]["rel_uplift"], sign=True)
    assert f"the truth is known: {said}" in page.one(".remarks").text
    assert any(said in label.text.replace("\N{NO-BREAK SPACE}", " ") for label in page.all("#estimators svg text"))


# -- the history's tests -----------------------------------------------------------------------------------------------


def test_tests_can_be_searched_filtered_and_sorted(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("history")
    tests = {test["name"]: test for test in result_of(made, "history")["tests"]}

    def shown() -> list[str]:
        rows = "return [...document.querySelectorAll('#tests tbody tr:not([hidden])')]"
        return list(page.run(f"{rows}.map((r) => r.cells[0].textContent)"))

    assert shown() == list(tests)
    search = page.one("#tests input[type=search]")
    page.click(search)
    search.send_keys("IMG SRC")
    assert shown() == [IMAGE]
    assert page.one("#tests .shown").text == f"1 of {len(tests)} tests"
    search.send_keys(Keys.CONTROL, "a", Keys.BACKSPACE)
    assert shown() == list(tests)

    verdicts = {name: test["online"]["verdict"] for name, test in tests.items()}
    wanted = next(iter(verdicts.values()))
    Select(page.one("[data-filter=online]")).select_by_value(wanted)
    assert shown() == [name for name, verdict in verdicts.items() if verdict == wanted]
    Select(page.one("[data-filter=online]")).select_by_value("")

    order = {"negative": -1, "neutral": 0, "insufficient": 0, "positive": 1}
    for label in ("cis", "point-ncis-adaptive"):
        Select(page.one("[data-estimator]")).select_by_visible_text(label)
        cells = [row.find_elements(By.TAG_NAME, "td")[1].text for row in page.all("#tests tbody tr")]
        assert cells == [pct(test["offline"][label]["rel_effect_size"], sign=True) for test in tests.values()]
        apart = {n: order[t["offline"][label]["verdict"]] - order[t["online"]["verdict"]] for n, t in tests.items()}
        for call, sign in (("right-call", 0), ("too-low", -1), ("too-high", 1)):
            Select(page.one("[data-filter=call]")).select_by_value(call)
            assert shown() == [name for name, d in apart.items() if (d > 0) - (d < 0) == sign]
        Select(page.one("[data-filter=call]")).select_by_value("")

    page.click(page.one("#tests th:nth-child(2) button"))
    assert shown() == sorted(tests, key=lambda name: tests[name]["online"]["rel_effect_size"])


def test_a_click_shows_the_read_out_of_a_test(opened: Callable[[str], Page], made: Path) -> None:
    page = opened("history")
    test = next(test for test in result_of(made, "history")["tests"] if test["name"] == SCRIPT)
    readout = page.one(".readout")
    assert not readout.is_displayed()
    [button] = [b for b in page.all("#tests tbody button") if b.text == SCRIPT]
    page.click(button)
    assert readout.is_displayed()
    assert readout.find_element(By.TAG_NAME, "h3").text == SCRIPT
    assert page.run("return document.activeElement.textContent") == SCRIPT
    found = readout.find_elements(By.CSS_SELECTOR, "tbody tr")
    rows = [[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")] for row in found]
    assert rows[0][0] == "online"
    assert {row[0] for row in rows[1:]} == set(test["offline"])
    for row in rows:
        estimate = test["online"] if row[0] == "online" else test["offline"][row[0]]
        assert row[1] == pct(estimate["rel_effect_size"], sign=True)
        limits = [pct(estimate["range"][f"rel_ci_{end}"], sign=True) for end in ("lower", "upper")]
        noise = [pct(estimate[f"rel_effect_size_ci_{end}"], sign=True) for end in ("lower", "upper")]
        assert (row[2], row[5]) == (" to ".join(limits), " to ".join(noise))
        assert row[3].endswith(estimate["word"])
        assert row[6] == estimate["verdict"]
    assert page.all("img") == []


def test_the_boxes_switch_over_estimators(opened: Callable[[str], Page]) -> None:
    page = opened("history")

    def drawn() -> list[str]:
        return [place.get_attribute("aria-label") for place in page.visible("#boxes [data-chart]")]

    [first] = drawn()
    assert "estimator slot-ncis-adaptive." in first
    [option] = [o for o in page.all("#boxes .options label") if o.text == "cis"]
    page.click(option)
    [second] = drawn()
    assert "estimator cis." in second


def test_failed_tests_are_named_without_their_folder(opened: Callable[[str], Page]) -> None:
    text = opened("history").one("#failures").text
    assert "absent" in text
    assert "nowhere.parquet" in text

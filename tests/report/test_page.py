"""The page as text: its policy, its size whatever it is about, its links, its date."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError

import foretest as ft
from foretest.history.agreement_result import Agreement
from foretest.report.bars import Bar
from foretest.report.blocks import Chart, Choice, Document, Fact, Link, Paragraph, Section, Table, Words
from foretest.report.history_page import history_page
from foretest.report.page import LARGEST, environment, fill, render
from foretest.report.result_page import Hero, result_page
from foretest.results.audit import Audit
from tests.support import SmallLog, build_test

EVIL = "</script><img src=x onerror=alert(1)>"
SPEC = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "description": EVIL,
    "width": 300,
    "data": {"values": [{"x": 0.123456789, "name": EVIL}]},
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}},
}


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return build_test(["cis", "piece-ncis", "point-ncis-adaptive"]).run(SmallLog().table())


def document(**changes: Any) -> Document:
    blocks = [
        f"A paragraph. {EVIL}",
        Paragraph(["See ", Link("the paper", "https://doi.org/10.1145/3159652.3159687"), "."]),
        Chart("A chart", SPEC, "One point at 0.12."),
        Choice("Which", {"one": Chart("One", SPEC, "1"), EVIL: Chart("Two", SPEC, "2")}),
        Table("A table", ["name", "value"], [[EVIL, "1.5"], ["b", "–"]], strong=[1], sortable=True),
        Words("foretest paper -o out"),
    ]
    whole = Document(
        "the paper", "Title", "It agrees.", [Section("First: of all", blocks, "A lead.")], ["A remark."],
        [Fact("tests", "39", "How many.", "watch", "of 40")], {"paper.json": {"name": EVIL}},
        {"versions": {"foretest": "0"}, "command": "foretest paper"},
    )  # fmt: skip
    return replace(whole, **changes)


def islands(page: str) -> dict[str, Any]:
    """The JSON in the page's script elements, by id."""
    found = re.findall(r'<script type="application/json" id="([^"]+)"[^>]*>(.*?)</script>', page, flags=re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def test_scripts_run_by_hash_alone(result: ft.Result) -> None:
    page = result.to_html()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert len(scripts) == 2
    assert policy.replace("&#39;", "'") == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'; style-src 'unsafe-inline';"
        " img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    assert page.index("Content-Security-Policy") < page.index("<style")  # before anything that it governs


def test_a_document_shows_its_blocks_as_text() -> None:
    page = render(document())
    assert "<img" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    data = islands(page)
    assert data["file-1"] == {"name": EVIL}
    assert len(data["charts"]) == 3
    chart = data["charts"]["chart-1"]
    assert chart["width"] == "container"
    assert chart["datasets"]["d0"] == [{"x": 0.123457, "name": EVIL}]
    assert "$schema" not in chart
    for said in (
        "It agrees.",
        "A remark.",
        "A lead.",
        "foretest paper -o out",
        "https://doi.org/10.1145/3159652.3159687",
    ):
        assert said in page
    assert '<a href="#section-1">First</a>' in page
    assert page.count('<td class="right">') == 2  # numbers align right, and what is no number


def test_a_page_links_to_references_only() -> None:
    for address in ("https://example.org/x", "http://doi.org/x", "javascript:alert(1)"):
        with pytest.raises(ValueError, match=r"links to doi\.org and arxiv\.org only"):
            render(document(sections=[Section("S", [Paragraph([Link("x", address)])])]))


def test_a_name_that_a_template_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        fill("result.html", "kind", "title", [], {}, [])


def test_to_html_writes_what_it_gives(result: ft.Result, tmp_path: Path) -> None:
    text = result.to_html(tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == text
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def test_the_same_result_gives_the_same_page(result: ft.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    page = result.to_html()
    assert page == result.to_html()
    assert "14 November 2023" in page


def test_the_embedded_result_is_the_result(result: ft.Result) -> None:
    assert islands(result.to_html())["file-1"] == result.to_dict()


def many_metrics(result: ft.Result, count: int, strata: int) -> ft.Result:
    """The same result with many metrics of long names, each with many strata."""
    [metric] = result.metrics.values()
    rows = [
        {
            "label": f"stratum {k}",
            "share": 1 / strata,
            "mean_weight": 1 / 3,
            "value": 1 / 7,
            "contribution": 1 / 7 / strata,
        }
        for k in range(strata)
    ]
    estimates = dict(metric.estimates)
    estimates["piece-ncis"] = replace(estimates["piece-ncis"], strata=rows)
    names = [f"{k} {'long name ' * 8}" for k in range(count)]
    log = {**result.log, "positives": dict.fromkeys(names, 100)}
    return replace(result, metrics={name: replace(metric, estimates=estimates) for name in names}, log=log)


@pytest.fixture(scope="module")
def pages(result: ft.Result) -> dict[tuple[int, int], str]:
    """Pages of many metrics and many strata, by both numbers."""
    return {size: result_page(many_metrics(result, *size)) for size in ((1, 1000), (12, 100), (300, 100))}


@pytest.mark.slow
def test_a_page_stays_small_whatever_the_log(pages: dict[tuple[int, int], str]) -> None:
    for page in pages.values():
        assert len(page.encode()) <= LARGEST
        assert "chart-1" in islands(page)["charts"]


@pytest.mark.slow
def test_a_large_result_is_packed_and_a_huge_one_stands_beside(
    result: ft.Result, pages: dict[tuple[int, int], str]
) -> None:
    [text] = re.findall(
        r'<script type="application/gzip" id="file-1" data-name="result.json">([^<]+)</script>', pages[12, 100]
    )
    import gzip

    assert json.loads(gzip.decompress(base64.b64decode(text))) == many_metrics(result, 12, 100).to_dict()
    huge = pages[300, 100]
    assert "result.json is too large for this page; it is in the same folder." in huge
    assert "file-1" not in huge


@pytest.mark.slow
def test_a_long_history_stays_small() -> None:
    estimate = {
        "treatment": 1 / 3, "std_error": 1 / 3, "effect_size": 1 / 3, "effect_size_ci_lower": 1 / 7,
        "effect_size_ci_upper": 2 / 3, "rel_effect_size": 1 / 3, "rel_effect_size_ci_lower": 1 / 7,
        "rel_effect_size_ci_upper": 2 / 3, "verdict": "positive", "reasons": ["a reason"], "effective_positives": 1e3,
        "range": {"rel_ci_lower": 1 / 9, "rel_ci_upper": 3 / 4}, "word": "positive",
    }  # fmt: skip
    labels = ["is", "nis", "dr", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]
    noise = {"offline_error": 1 / 3, "online_error": 1 / 3, "covariance": 1 / 3}
    part = {"online": estimate, "offline": dict.fromkeys(labels, estimate), "noise": dict.fromkeys(labels, noise)}
    tests = [{"name": f"test {k} {'x' * 60}", "metrics": {"a": part, "b": part}} for k in range(1200)]
    names = (
        "correlation", "precision", "fnr", "fpr", "ppv", "miss_rate", "ci_size", "noise_ceiling",
        "deconvolved_correlation",
    )  # fmt: skip
    row = dict.fromkeys(names, 0.5)
    row |= {f"{name}_{q}": 0.4 for name in list(row) for q in ("q10", "q90")}
    row |= {f"correlation_{q}": 0.5 for q in ("q25", "q50", "q75")}
    table = {label: {"tests": 1200, **row} for label in labels}
    page = history_page(Agreement(tests, [], {"a": table, "b": table}))
    assert len(page.encode()) <= LARGEST
    listed = page.count("<tr data-test=")
    assert listed >= 200  # of both metrics
    assert f"{1200 - listed // 2} further tests are in agreement.json." in page
    assert "Offline decided as online did in 1200 of 1200 tests" in page


def test_the_command_line_and_the_package_start_without_the_pages() -> None:
    code = "import sys, foretest, foretest.cli; print([m for m in ('jinja2', 'vl_convert') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_templates_escape_what_they_are_given() -> None:
    env = environment()
    for name in env.list_templates(["html", "css"]):
        assert env.get_template(name).environment.autoescape is True
    assert env.from_string("{{ name }}").render(name=EVIL) == ("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;")


def test_what_is_asked_stands_beside_the_answer(result: ft.Result) -> None:
    """Questions first, then what nobody could check; beyond three they are counted. Other notes stay below."""
    doubtful = Audit.of([], ignore=False)
    doubt = doubtful.doubt()
    assert doubt is not None
    notes = ["dr was left out: it needs strata.", doubt, *(f"is it {name}?" for name in ("late", f"<{EVIL}>"))]

    def asked(notes: list[str]) -> list[str]:
        page = result_page(replace(result, notes=notes, audit=doubtful))
        box = re.search(r"<div class=\"warning\" role=\"alert\">(.*?)</div>", page, re.S)
        return [] if box is None else re.findall(r"<p>(.*?)</p>", box[1], re.S)

    title, first, second, third = asked(notes)
    assert title == "<strong>Before you decide</strong>"
    assert first == "Is it late?"
    assert "onerror" in second
    assert "<img" not in second
    assert third.startswith("The control&#39;s probabilities are not verified")
    assert asked([*notes, "is it so?"])[-1] == "1 more in the notes at the end of this page."
    assert asked(["dr was left out: it needs strata."]) == []


def test_two_bars_that_are_alike_are_called_so() -> None:
    bar = Bar(5.0, 20.0, 60.0, 50.0, False, False, (20.0, 60.0))
    limits = ("+3.7 %", "+5.8 %", "+8.1 %")
    assert Hero(bar, *limits, ("+3.7 %", "+8.1 %")).key == "Range and noise are the same here."
    assert Hero(bar, *limits, ("+4.0 %", "+8.1 %")).key == "Pale: the range. Inside it: noise only."
    assert Hero(bar, *limits).key is None

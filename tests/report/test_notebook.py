"""Results in notebooks: a table without script or stylesheet, every name as text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import foretest as ft
from foretest.history.agreement_result import Agreement
from foretest.history.run import run_history
from foretest.report.digits import pct
from tests.report.conftest import IMAGE, SCRIPT, foretest
from tests.support import SmallLog, build_test, few_resamples_of_tests


class Cells(HTMLParser):
    """The tags of a page, and the texts of its table cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag in ("th", "td"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


SAFE = {"div", "p", "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "small", "details", "summary", "br"}


def hostile_result() -> ft.Result:
    table = SmallLog().table()
    names = {"click": IMAGE, "revenue": SCRIPT}
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    return build_test(["cis", "ncis"], metrics=(IMAGE, SCRIPT)).run(table)


def test_a_result_is_a_table_of_its_metrics() -> None:
    result = hostile_result()
    found = Cells(result._repr_html_())
    assert found.tags <= SAFE  # no script, no style, no picture, no link
    for name, metric in result.metrics.items():
        at = found.cells.index(name)
        estimate = metric.estimates["ncis"]
        assert found.cells[at + 3] == pct(estimate.rel_effect_size, sign=True)
        ends = estimate.rel_effect_size_ci_lower, estimate.rel_effect_size_ci_upper
        assert found.cells[at + 4] == " to ".join(pct(end, sign=True) for end in ends)
    assert any("cis" in cell for cell in found.cells)


def test_a_check_shows_its_health(tmp_path: Path) -> None:
    html = build_test(["ncis"]).check(SmallLog().table())._repr_html_()
    assert html.startswith("<pre>")
    assert "treatment mass kept" in html


def test_an_online_test_is_a_table_too() -> None:
    test = ft.OnlineTest(log=ft.LogColumns(rewards=["click"]))
    result = test.run(pa.table({"click": [1, 0, 0, 0] * 100}), pa.table({"click": [1, 0] * 200}))
    found = Cells(result._repr_html_())
    assert found.tags <= SAFE
    assert pct(1.0, sign=True) in found.cells


@pytest.fixture(scope="module")
def agreement(tmp_path_factory: pytest.TempPathFactory) -> Agreement:
    folder = tmp_path_factory.mktemp("history")
    foretest("simulate", "history", "--tests", "3", "--rows", "1500", "-o", str(folder))
    manifest = (folder / "manifest.toml").read_text(encoding="utf-8").replace('name = "test-002"', f"name = '{SCRIPT}'")
    (folder / "hostile.toml").write_text(manifest.replace("truth =", "# truth ="), encoding="utf-8")
    with few_resamples_of_tests():
        return run_history(folder / "hostile.toml")


def test_an_agreement_is_its_tables(agreement: Agreement) -> None:
    found = Cells(agreement._repr_html_())
    assert found.tags <= SAFE
    [table] = agreement.tables.values()
    for label in table:
        assert label in found.cells
    assert "false negatives" in found.cells


def test_the_page_of_an_agreement_counts_as_its_table_does(agreement: Agreement, tmp_path: Path) -> None:
    page = agreement.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    [table] = agreement.tables.values()
    row = table["point-ncis-adaptive"]
    right = round(3 * (row["precision"] or 0.0))
    assert f"Offline decided as online did in {right} of 3 tests" in page

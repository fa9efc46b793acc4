"""Several treatments and segments on the page: in order, drawn, and with names that do no harm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.report.charts.forest import Row, forest_chart
from foretest.report.many import decided, in_order, leading, segments_section, treatments_section
from foretest.report.result_page import result_page
from tests.report.support import HOSTILE, Drawing, assert_sound
from tests.support import SCORES, SmallLog

EVIL = "</script><img src=x onerror=alert(1)>"
LOG = SmallLog(rows=1500, units=400, seed=4)


@pytest.fixture(scope="module")
def result() -> ft.Result:
    g = np.random.default_rng(0)
    other = pa.array((LOG.control + g.normal(size=LOG.control.shape)).tolist(), pa.list_(pa.float64()))
    place = np.array(["here", EVIL, HOSTILE, "there"])[g.integers(0, 4, LOG.rows)]
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click", "revenue"], unit="user", ranking="ranking", id="id", segments=["place"]),
        control=SCORES["control"],
        treatment={"first": SCORES["treatment"], EVIL: ft.PlackettLuce(scores="other"), "same": SCORES["control"]},
        metrics={"revenue": {"role": "goal"}, "click": {"role": "guardrail", "margin": 0.2}},
        estimators=["cis", "ncis", "point-ncis-adaptive"], cap=2.0, weight_bound=3.0, n_resamples=200,
    )  # fmt: skip
    return test.run(LOG.table(other=other, place=place))


def text_of(page: str) -> str:
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))


def test_the_best_treatment_leads_the_page(result: ft.Result) -> None:
    order = in_order(result)
    uplifts = {t.name: t.metrics["revenue"].estimates["point-ncis-adaptive"].effect_size or 0.0 for t in order}
    assert [t.name for t in order] == sorted(uplifts, key=lambda name: -uplifts[name])
    lead = leading(result)
    assert next(iter(lead.metrics)) == "revenue"  # the goal
    best = order[0].metrics["revenue"].estimates["point-ncis-adaptive"]
    shown = lead.metrics["revenue"].estimates["point-ncis-adaptive"]
    assert best.adjusted is not None
    assert shown.verdict == lead.metrics["revenue"].verdict == best.adjusted.verdict_adjusted
    assert shown.rel_effect_size_ci_lower == best.adjusted.rel_simultaneous_ci_lower
    text = text_of(result_page(result)).replace("&lt;", "<").replace("&gt;", ">")
    assert result.winner is None
    assert "None passes, because revenue is not clearly better." in text
    assert "The rest of this page is about the treatment first" in text


def test_tables_and_plots_hold_the_numbers_of_the_result(result: ft.Result) -> None:
    ranked = treatments_section(result, 12)
    assert ranked is not None
    assert [panel.name for panel in ranked.panels] == ["revenue", "click"]
    assert [row[1] for row in ranked.panels[0].table.rows] == [t.name for t in in_order(result)]
    leads = [decided(t.metrics["click"]) for t in in_order(result)]
    assert ranked.panels[1].table.columns[2:5] == ["uplift", "range", "word"]
    assert [row[4] for row in ranked.panels[1].table.rows] == [estimate.word for estimate in leads]
    assert [row[7] for row in ranked.panels[1].table.rows] == [estimate.verdict for estimate in leads]
    segments = segments_section(result, 12)
    assert segments is not None
    assert [panel.name for panel in segments.panels] == ["click by place", "revenue by place"]
    rows = segments.panels[0].table.rows
    assert {row[0] for row in rows} == {"here", EVIL, HOSTILE, "there"}
    assert sum(int(row[1].replace(",", "")) for row in rows) == LOG.rows
    one = segments_section(result, 1)
    assert one is not None
    assert one.left_out == 1


def test_plots_are_sound(result: ft.Result) -> None:
    rows = [Row(segment.value, decided(segment.metrics["click"])) for segment in result.segments]
    spec = forest_chart("Uplift in clicks, by place", rows, 0.9)
    assert_sound(spec)
    words = Drawing(spec).words()
    assert {"here", "there"} <= set(words)
    assert all(segment.value in spec["description"] for segment in result.segments)


def test_a_single_question_has_neither_section() -> None:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id"), **SCORES,
        estimators=["ncis"], n_resamples=50,
    )  # fmt: skip
    alone = test.run(LOG.table())
    assert treatments_section(alone, 12) is segments_section(alone, 12) is None
    page = result_page(alone)
    assert 'id="treatments"' not in page
    assert 'id="segments"' not in page
    assert leading(alone).metrics == alone.metrics


@pytest.mark.browser
def test_in_a_browser(result: ft.Result, browser: Any, tmp_path: Path) -> None:
    from tests.report.test_browser import Page

    (tmp_path / "report.html").write_text(result.to_html(), encoding="utf-8")
    page = Page(browser, tmp_path / "report.html")
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert page.all("img") == []
    for section, panels in (("treatments", 2), ("segments", 2)):
        assert len(page.all(f"#{section} [data-panel]")) == panels
        assert len(page.visible(f"#{section} [data-panel]")) == 1
        assert len(page.visible(f"#{section} .chart svg, #{section} .chart canvas")) == 1
    names = [cell.text for cell in page.visible("#treatments tbody tr td:nth-child(2)")]
    assert names == [t.name for t in in_order(result)]
    page.size(390)
    assert page.run("return document.documentElement.scrollWidth") <= 390

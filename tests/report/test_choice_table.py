"""The choice among treatments on the page: who passes, in which colours, and what stands on top."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import foretest as ft
from foretest.report.charts.forest import Row, forest_chart
from foretest.report.choice_table import choice_table
from foretest.report.notebook import result_html
from foretest.report.result_page import Hero, _hero, result_page
from foretest.report.theme import GREEN, RED
from foretest.results.uplift_range import Range
from tests.offline.candidates import ROLES, UPLIFTS, candidates_log, candidates_test
from tests.report.test_many import text_of


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return candidates_test(metrics=ROLES).run(candidates_log())


def page_text(result: ft.Result) -> str:
    return text_of(result_page(result)).replace("\N{NO-BREAK SPACE}", " ")


def test_a_row_says_whether_a_treatment_passes(result: ft.Result) -> None:
    table = choice_table(result)
    assert table is not None
    assert [name for name, _ in table.columns] == ["click", "bounce"]
    assert table.columns[1][1].replace("\N{NO-BREAK SPACE}", " ") == "guardrail, lower is better, margin 10.0 %"
    assert [row.name for row in table.rows] == list(UPLIFTS)
    assert [row.wins for row in table.rows] == [False, True, False, False, False]
    assert table.rows[0].shortfalls == ["the guardrail bounce fails"]
    assert table.rows[2].shortfalls == []
    bounce = {row.name: row.cells[1] for row in table.rows}
    bold, harmful = bounce["bold"], bounce["harmful"]  # cis has no range of its own, so its words lean
    assert (bold.word, bold.tone, bold.guardrail) == ("leans positive", "leans negative", "fail")
    assert (harmful.word, harmful.tone) == ("leans negative", "leans positive")
    assert bold.range != bold.interval  # for the treatment alone, and for all at once
    assert choice_table(candidates_test(["bold"], metrics=ROLES).run(candidates_log())) is None


def test_the_page_begins_with_the_treatment_to_take(result: ft.Result) -> None:
    text = page_text(result)
    begin = text.index("Best that passes every guardrail: balanced. Leans positive: clicks would change by +40.0 %")
    assert begin < text.index("Ranked higher, and not taken: bold (the guardrail bounce fails).")
    assert "The rest of this page is about the treatment bold" in " ".join(text.split())
    assert "which is not the one to take" in text
    assert "Metrics (bold)" in text
    assert "Best that passes every guardrail: balanced" in result_html(result)


def test_where_none_passes_no_verdict_stands_on_top() -> None:
    strict = {**ROLES, "bounce": {**ROLES["bounce"], "margin": 0.0001}}
    found = candidates_test(["bold", "idle"], metrics=strict).run(candidates_log())
    assert found.winner is None
    page = result_page(found)
    assert 'class="big' not in page
    text = page_text(found)
    assert "no winner None of the 2 treatments passes." in text.replace("◆ ", "").replace("  ", " ")
    assert "None passes, because the guardrail bounce fails" in text
    one = page_text(candidates_test(["bold"], metrics=ROLES).run(candidates_log()))
    assert "The treatment does not pass, because the guardrail bounce fails. Leans positive: clicks would" in one


def test_charts_colour_good_and_bad_and_point_up_and_down(result: ft.Result) -> None:
    estimate = result.treatments[0].metrics["bounce"].estimates["cis"]  # 30 % more bounces
    for direction, colour in (("increase", GREEN), ("decrease", RED)):
        spec = forest_chart("title", [Row("bold", estimate, direction=direction)], 0.9)
        drawn = [v for layer in spec["layer"] for v in layer["data"]["values"] if "colour" in v]
        assert {value["colour"] for value in drawn} == {colour}
        assert {value["shape"] for value in drawn} == {"triangle-up"}
    assert 'class="chip leans negative"><i aria-hidden="true">△</i>leans positive: worse' in result_page(result)


@pytest.mark.parametrize(
    ("lower", "upper", "room"),
    [(0.395, 0.405, "narrow"), (0.3, 0.5, "narrow-on-a-phone"), (-0.4, 1.2, "")],
)
def test_a_narrow_interval_has_one_label(result: ft.Result, lower: float, upper: float, room: str) -> None:
    metric = result.treatments[1].metrics["click"]
    limits = Range("noise", None, None, lower, upper)
    estimate = replace(metric.estimates["cis"], rel_effect_size=0.4, range=limits)
    hero = _hero(replace(metric, estimates={"cis": estimate}))
    assert isinstance(hero, Hero)
    assert hero.room == room


@pytest.mark.browser
def test_in_a_browser(result: ft.Result, browser: Any, tmp_path: Path) -> None:
    """Labels of the interval do not overlap, numbers of tiles have one line, and nothing runs over a phone."""
    from tests.report.test_browser import Page

    result.to_html(tmp_path / "report.html")
    page = Page(browser, tmp_path / "report.html")
    for width in (1280, 800, 390):
        page.size(width)
        assert page.run("return document.documentElement.scrollWidth") <= width
        boxes = page.run(
            "return [...document.querySelectorAll('.big .bar > span:not(.at-zero)')].map((e) =>"
            " e.getBoundingClientRect()).filter((b) => b.width > 0).map((b) => [b.left, b.right])"
        )
        assert boxes
        boxes.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(boxes))
        assert all(left >= 0 and right <= width for left, right in boxes)
        lines = page.run(
            "return [...document.querySelectorAll('.tile .value')].map((e) => { const r = document.createRange();"
            " r.selectNodeContents(e); const [b, t] = [r, e.parentElement].map((x) => x.getBoundingClientRect());"
            " return [r.getClientRects().length, b.right <= t.right]; })"
        )
        assert lines
        assert all(count == 1 and fits for count, fits in lines)
        table = page.run(
            "const t = document.querySelector('.choice'); return [t.scrollWidth, t.parentElement.clientWidth]"
        )
        assert table[0] <= table[1] + 1

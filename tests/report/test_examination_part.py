"""The examination curve on the page: chart, pairs of slots, uplifts under other curves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import foretest as ft
from foretest.report.blocks import Table
from foretest.report.examination_part import examination_part
from foretest.report.method import methods, references
from foretest.report.result_page import result_page
from foretest.results.result import Metric
from foretest.results.slot_model import SlotModel, SlotTest
from tests.support import EXPOSURE_KEYS, SmallLog, build_test

LOG = SmallLog(rows=600, units=150, k=3, spread=0.5)
EXPOSURE = "exposure-ncis-adaptive"


@pytest.fixture(scope="module")
def fitted() -> ft.Result:
    return build_test(["point-ncis-adaptive", *EXPOSURE_KEYS]).run(LOG.table())


@pytest.fixture(scope="module")
def given() -> ft.Result:
    return build_test(EXPOSURE_KEYS, examination=(2.0, 1.2, 0.8)).run(LOG.table())


def table_of(metric: Metric) -> Table:
    part = examination_part("click", metric, 0.9)
    assert part is not None
    [table] = part.tables
    return table


def test_a_fit_shows_its_pairs(fitted: ft.Result) -> None:
    metric = fitted.metrics["click"]
    examination = metric.examination or {}
    table = table_of(metric)
    assert [row[0] for row in table.rows] == ["2 to 1", "3 to 1", "3 to 2"]
    theta = examination["theta"]
    for row, pair in zip(table.rows, examination["pairs"], strict=True):
        first, second = pair["slots"]
        by_curve = theta[second - 1] / theta[first - 1]
        assert row[1:] == [f"{pair['ratio']:.3g}", f"{by_curve:.3g}", f"{pair['effective_rewards']:,.0f}"]
    assert "at least 30" in table.note


def test_tests_of_the_curve_have_a_line_each(fitted: ft.Result) -> None:
    passed = SlotTest("pass", None, 0.4, 1200, "items of high and of low score have one curve")
    failed = SlotTest("fail", None, 0.0002, 900, "slots do not agree")
    metric = replace(fitted.metrics["click"], slot_model=SlotModel(passed, passed, failed))
    part = examination_part("click", metric, 0.9)
    assert part is not None
    assert part.tests == [
        "Is it one curve for all items? ✓ Passed: items of high and of low score have one curve; p = 0.4 (1,200"
        " rewards).",
        "And between all slots? ✗ Failed: slots do not agree; p = 0.0002 (900 rewards).",
    ]
    assert part.tests[1] in result_page(replace(fitted, metrics={"click": metric}))
    without = examination_part("click", replace(metric, slot_model=None), 0.9)
    assert without is not None
    assert without.tests == []


def test_of_many_pairs_those_with_most_rewards_are_shown(fitted: ft.Result) -> None:
    slots = 10
    pairs = [
        {"slots": [k, j], "ratio": 0.9, "effective_rewards": 1000.0 - 10 * k - j}
        for k in range(1, slots + 1)
        for j in range(k + 1, slots + 1)
    ]
    curve = {"kind": "fit", "theta": [1.0] * slots, "std_error": [0.1] * slots, "pairs": pairs}
    table = table_of(replace(fitted.metrics["click"], examination=curve))
    assert len(table.rows) == 28
    assert "17 further pairs are in result.json." in table.note
    assert table.rows[0][0] == "2 to 1"
    assert not any(row[0] == "10 to 9" for row in table.rows)


def test_a_given_curve_shows_the_uplift_under_others(given: ft.Result) -> None:
    metric = given.metrics["click"]
    table = table_of(metric)
    assert EXPOSURE in table.caption
    assert list(table.columns) == ["curve", "uplift", "range", "by slot"]
    assert [row[0] for row in table.rows] == [
        "as given", "flatter, θ^0.8", "steeper, θ^1.25", "flatter, θ·k^0.15", "steeper, θ·k^−0.15",
    ]  # fmt: skip
    assert table.rows[0][3] == "2, 1.2, 0.8"
    curves = metric.estimates[EXPOSURE].curves or []
    assert len(curves) == 4
    texts = [row[1].replace("−", "-").replace("\N{NO-BREAK SPACE}", " ") for row in table.rows[1:]]
    assert texts == [ft.formatting.percent(curve["rel_effect_size"], sign=True) for curve in curves]


def test_by_a_column_there_is_no_single_curve() -> None:
    device = pa.array([("phone", "desktop")[k % 2] for k in range(LOG.rows)])
    curves = {"column": "device", "curves": {"phone": (1.0, 0.4, 0.2), "desktop": (1.0, 0.8, 0.6)}}
    result = build_test([EXPOSURE], examination=curves).run(LOG.table(device=device))
    assert list(table_of(result.metrics["click"]).columns) == ["curve", "uplift", "range"]
    assert "by device" in result_page(result)


def test_without_an_estimator_by_exposure_there_is_no_section() -> None:
    result = build_test(["cis"]).run(LOG.table())
    assert examination_part("click", result.metrics["click"], 0.9) is None
    assert 'id="examination"' not in result_page(result)


def test_the_page_has_the_section_and_names_it(fitted: ft.Result) -> None:
    page = result_page(fitted)
    assert '<section id="examination"' in page
    assert '<a href="#examination">Slots</a>' in page
    assert "What the log says of each pair of slots (click)." in page
    assert "How likely users look at each slot" in page


def test_a_metric_without_a_curve_says_so(fitted: ft.Result) -> None:
    metric = fitted.metrics["click"]
    both = replace(fitted, metrics={"click": metric, "sale": replace(metric, examination=None)})
    assert "No estimator by exposure was run for sale." in result_page(both)


def test_estimators_by_exposure_have_formulas_and_references(fitted: ft.Result, given: ft.Result) -> None:
    def addresses(result: ft.Result) -> list[str]:
        return [link.address for link in references(result)]

    steps = {step.title: step for step in methods(fitted)}
    assert steps["pbm: by exposure"].formula == "pbm"
    assert steps[f"{EXPOSURE}: by exposure, adaptive cap"].formula == EXPOSURE
    clicks, fit = "https://doi.org/10.1145/3219819.3220028", "https://arxiv.org/abs/1812.05161"
    assert addresses(fitted).count(clicks) == addresses(fitted).count(fit) == 1
    assert fit not in addresses(given)


def test_every_exposure_estimator_is_described(given: ft.Result) -> None:
    page: Any = result_page(given)
    assert "your own estimator" not in page
    assert "weights what an item earned by how much more likely users are to look at it" in page.lower()

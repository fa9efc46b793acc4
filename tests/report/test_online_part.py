"""What the page of an online test says of its covariate and of daily looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.report.facts import online_facts
from foretest.report.method import methods, references
from foretest.report.online_part import online_sections
from foretest.report.rows import metric_rows
from foretest.results.result import Result


def arm(first: int, lift: float, shift: float = 0.0) -> pa.Table:
    g = np.random.default_rng(first)
    taste = g.gamma(1.0, 1.0, 500)
    user = np.repeat(np.arange(500), 4)
    click = (g.random(2000) < np.clip(0.2 * lift * taste[user], 0, 1)).astype(float)
    before = g.poisson(4.0 * taste) + shift
    return pa.table({"user": user + first, "before": before[user].astype(float), "click": click})


def result_of(shift: float = 0.0, **more: Any) -> Result:
    log = ft.LogColumns(rewards=["click"], unit="user")
    return ft.OnlineTest(log=log, interval="delta", **more).run(arm(1, 1.0), arm(10_000, 1.2, shift))


@pytest.fixture(scope="module")
def result() -> Result:
    return result_of(covariate="before", sequential=True)


def test_what_the_covariate_bought(result: Result) -> None:
    covariate, _ = online_sections(result)
    metric = result.metrics["click"]
    [row] = covariate.table.rows
    assert row[0] == "click"
    assert row[1] == f"{100 * metric.estimates['online'].rel_effect_size:+.1f}\N{NO-BREAK SPACE}%"
    assert row[3] == f"{100 * metric.estimates['unadjusted'].rel_effect_size:+.1f}\N{NO-BREAK SPACE}%"
    assert row[5] == f"{100 * metric.covariate['variance_removed']:.1f}\N{NO-BREAK SPACE}%"
    assert row[6] == f"{metric.covariate['units_gained']:,}\N{NO-BREAK SPACE}units"
    assert "by chance" in covariate.lead
    [cells] = metric_rows(result)
    assert cells.control_value == metric.covariate["control"]  # the value that the uplift is relative to


def test_always_valid_intervals_stand_beside_the_fixed_ones(result: Result) -> None:
    _, looks = online_sections(result)
    estimate = result.metrics["click"].estimates["online"]
    [row] = looks.table.rows
    assert row[3] == estimate.verdict
    assert row[5] == estimate.always_valid["verdict"]
    assert f"{100 * estimate.always_valid['rel_ci_upper']:+.1f}" in row[4]
    assert "raises a false alarm in 38\N{NO-BREAK SPACE}%" in looks.lead


def test_a_page_has_them_in_its_navigation_and_its_method(result: Result) -> None:
    page = result.to_html()
    for text in ('href="#covariate"', 'href="#looks"', "Adjusted for before", "Looking while the test runs"):
        assert text in page, text
    titles = [step.title for step in methods(result)]
    assert titles == ["reward per display", "sample ratio", "covariate", "interval", "interval, every look", "verdict"]
    assert any("Pre-Experiment" in link.text for link in references(result))
    assert any("confidence sequences" in link.text for link in references(result))
    assert result._repr_html_()


def test_a_plain_test_has_none_of_it() -> None:
    plain = result_of()
    assert online_sections(plain) == []
    page = plain.to_html()
    assert 'id="covariate"' not in page
    assert 'id="looks"' not in page
    assert not any("Pre-Experiment" in link.text for link in references(plain))


def test_arms_that_differ_in_the_covariate_are_an_alert() -> None:
    moved = result_of(shift=3.0, covariate="before")
    states = {fact.name: fact.state for fact in online_facts(moved)}
    assert states["variance removed"] == "alert"
    assert "by more than chance would do" in online_sections(moved)[0].lead
    usual = {fact.name: fact.state for fact in online_facts(result_of(covariate="before"))}
    assert usual["variance removed"] == "fine"
    assert "false alarm, daily looks" not in usual

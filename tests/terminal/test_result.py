"""A result as text: tables in 80 columns, and what stands below them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import foretest as ft
from foretest.terminal.result import render
from tests.results.support import UP, with_estimate
from tests.support import SmallLog, build_test


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return build_test(["cis", "point-ncis-adaptive"]).run(SmallLog(rows=200, units=80).table())


def test_the_control_is_per_display(result: ft.Result) -> None:
    [title] = [line for line in render(with_estimate(result, UP)).splitlines() if line.startswith("click:")]
    assert title == "click: control 0.02000 [0.01800, 0.02200] per display"


def test_a_reason_is_there_once_with_the_estimators_that_share_it(result: ft.Result) -> None:
    few = replace(UP, verdict="insufficient", robustness=None, sensitivity=None, reasons=["no row has a reward"])
    text = render(with_estimate(result, few, cis=few))
    assert "  cis, point-ncis-adaptive: no row has a reward" in text.splitlines()


def test_a_weight_beyond_a_float_is_a_power_of_ten(result: ft.Result) -> None:
    health = {**result.health, "max_weight": None, "max_log10_weight": 412.3}
    [line] = [line for line in render(replace(result, health=health)).splitlines() if "largest weight" in line]
    assert line.split()[2] == "10^412"


def test_the_terminal_marks_a_fragile_verdict_in_80_columns(result: ft.Result) -> None:
    def table(*estimates: Any, **others: Any) -> str:
        text = render(with_estimate(result, *estimates, **others))
        assert all(len(line) <= 80 for line in text.splitlines())
        return " ".join(text.split())

    fragile = table(UP)
    assert "positive ~" in fragile
    assert "fragile at factors from 1/1.15 to 1.3: the verdict holds unless unsupported recommendations earn" in fragile
    assert "~ fragile:" not in fragile  # the sentence has said it
    assert "~ fragile: the sensitivity band contains 0, or the log refutes what it assumes" in table(
        replace(UP, robustness="robust"), other=UP
    )
    assert "~" not in table(replace(UP, robustness="robust"))
    neutral = table(replace(UP, verdict="neutral", robustness="robust"))
    assert "robust" not in neutral


def test_an_estimated_number_of_units_is_rounded(result: ft.Result) -> None:
    log = {**result.log, "rows": 900_000, "units": 200_134}
    text = render(replace(result, log={**log, "units_approximate": True}))
    assert "900,000 displays, about 200,000 units (user)" in text
    assert "900,000 displays, 200,134 units (user)" in render(replace(result, log=log))

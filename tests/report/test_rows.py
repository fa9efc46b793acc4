"""The rows of a result's tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

import foretest as ft
from foretest.report.rows import estimator_rows, metric_rows
from tests.support import SmallLog, build_test


@pytest.fixture(scope="module")
def result() -> ft.Result:
    estimators = [ft.NCIS(cap=30), "piece-ncis", "point-ncis-adaptive"]
    return build_test(estimators, metrics=("click", "revenue")).run(SmallLog().table())


def test_absolute_bars_have_scales_of_their_own_and_relative_ones_share_theirs(result: ft.Result) -> None:
    rows = metric_rows(result)
    assert [row.name for row in rows] == ["click", "revenue"]
    assert rows[0].relative.bar is not None
    assert rows[1].relative.bar is not None
    assert rows[0].relative.bar.zero == rows[1].relative.bar.zero
    for row in rows:
        bar, e = row.absolute.bar, row.estimate
        assert bar is not None
        assert e.effect_size_ci_lower is not None
        assert e.effect_size_ci_upper is not None
        # both ends are 0 or a limit, and a twentieth of the length is left beside them
        low, high = min(0.0, e.effect_size_ci_lower), max(0.0, e.effect_size_ci_upper)
        begin = (e.effect_size_ci_lower - low + 0.05 * (high - low)) / (1.1 * (high - low))
        assert bar.begin == pytest.approx(100 * begin)


def test_an_estimator_names_the_options_that_it_was_given(result: ft.Result) -> None:
    rows = {row.label: row for row in estimator_rows(result, result.metrics["click"])}
    assert rows["ncis"].line.endswith("Here with cap = 30.")
    assert [label for label, row in rows.items() if row.leads] == ["point-ncis-adaptive"]
    unknown = replace(result, provenance={"estimators": {"ncis": {"key": "mine"}}})
    assert estimator_rows(unknown, result.metrics["click"])[0].line == "Your own estimator."

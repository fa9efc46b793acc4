"""The rows of a result's tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

import foretest as ft
from foretest.report.rows import estimator_rows, metric_rows, strata_rows
from foretest.results.result import Metric
from tests.support import SmallLog, build_test


@pytest.fixture(scope="module")
def result() -> ft.Result:
    estimators = [ft.NCIS(cap=30), "piece-ncis", "point-ncis-adaptive"]
    return build_test(estimators, metrics=("click", "revenue")).run(SmallLog().table())


def test_absolute_bars_have_scales_of_their_own_and_relative_ones_share_theirs(result: ft.Result) -> None:
    rows = metric_rows(result)
    assert [row["name"] for row in rows] == ["click", "revenue"]
    assert rows[0]["rel_bar"].zero == rows[1]["rel_bar"].zero
    for row in rows:
        bar, e = row["abs_bar"], row["estimate"]
        # both ends are 0 or a limit, and a twentieth of the length is left beside them
        low, high = min(0.0, e.effect_size_ci_lower), max(0.0, e.effect_size_ci_upper)
        begin = (e.effect_size_ci_lower - low + 0.05 * (high - low)) / (1.1 * (high - low))
        assert bar.begin == pytest.approx(100 * begin)


def test_an_estimator_tells_the_options_that_were_its_own(result: ft.Result) -> None:
    rows = {row["label"]: row for row in estimator_rows(result, result.metrics["click"])}
    assert rows["ncis"]["line"].endswith("Here with cap = 30.")
    assert [label for label, row in rows.items() if row["leads"]] == ["point-ncis-adaptive"]
    unknown = replace(result, provenance={"estimators": {"ncis": {"key": "mine"}}})
    assert estimator_rows(unknown, result.metrics["click"])[0]["line"] == "Your own estimator."


def strata_of(metric: Metric, most: int) -> list[str]:
    found = strata_rows(metric, most)
    assert found is not None
    return [row["label"] for row in found["rows"]]


def test_the_largest_strata_are_shown_in_their_own_order(result: ft.Result) -> None:
    metric = result.metrics["click"]
    strata = metric.estimates["piece-ncis"].strata or []
    assert strata_of(metric, 50) == [s["label"] for s in strata]
    largest = sorted(strata, key=lambda s: -s["share"])[:2]
    assert set(strata_of(metric, 2)) == {s["label"] for s in largest}
    found = strata_rows(metric, 2)
    assert found is not None
    assert "1 smaller strata" in found["note"]
    assert strata_rows(replace(metric, estimates={"ncis": metric.estimates["ncis"]}), 50) is None


def test_the_bias_by_stratum_is_shown_where_it_is_known(result: ft.Result) -> None:
    metric = result.metrics["click"]
    strata = metric.estimates["piece-ncis"].strata or []
    told = [{**s, "bias_contribution": b} for s, b in zip(strata, (-0.0123, 0.004, None), strict=True)]
    piece = replace(metric.estimates["piece-ncis"], strata=told)
    found = strata_rows(replace(metric, estimates={"piece-ncis": piece}), 50)
    assert found is not None
    assert found["with_bias"]
    assert [row["bias"] for row in found["rows"]] == ["−0.01230", "+0.00400", "–"]

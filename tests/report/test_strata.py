"""The table of strata: which ones, in which order, with which bias."""

from __future__ import annotations

from dataclasses import replace

import pytest

import foretest as ft
from foretest.report.strata import strata_table
from foretest.results.result import Metric
from tests.support import SmallLog, build_test


@pytest.fixture(scope="module")
def result() -> ft.Result:
    return build_test([ft.NCIS(cap=30), "piece-ncis"]).run(SmallLog().table())


def strata_of(metric: Metric, most: int) -> list[str]:
    table = strata_table(metric, most)
    assert table is not None
    return [row.label for row in table.rows]


def test_the_largest_strata_are_shown_in_their_own_order(result: ft.Result) -> None:
    metric = result.metrics["click"]
    strata = metric.estimates["piece-ncis"].strata or []
    assert strata_of(metric, 50) == [s["label"] for s in strata]
    largest = sorted(strata, key=lambda s: -s["share"])[:2]
    assert set(strata_of(metric, 2)) == {s["label"] for s in largest}
    table = strata_table(metric, 2)
    assert table is not None
    assert "1 smaller strata" in table.note
    assert strata_table(replace(metric, estimates={"ncis": metric.estimates["ncis"]}), 50) is None


def test_the_bias_by_stratum_is_shown_where_it_is_known(result: ft.Result) -> None:
    metric = result.metrics["click"]
    strata = metric.estimates["piece-ncis"].strata or []
    with_bias = [{**s, "bias_contribution": b} for s, b in zip(strata, (-0.0123, 0.004, None), strict=True)]
    piece = replace(metric.estimates["piece-ncis"], strata=with_bias)
    table = strata_table(replace(metric, estimates={"piece-ncis": piece}), 50)
    assert table is not None
    assert table.with_bias
    assert [row.bias.text for row in table.rows] == ["−0.01230", "+0.00400", "–"]

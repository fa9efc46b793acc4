"""`niips`, weights normalised slot by slot: displays of different lengths, thinned logs, saved sums, packs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from tests.support import SCORES, SmallLog, build_test

LOG = SmallLog(rows=300, units=120, seed=5)


def with_columns(test: ft.OfflineTest, **columns: Any) -> ft.OfflineTest:
    """The same test of a log with further columns."""
    settings = test.settings
    return ft.OfflineTest(
        log=replace(settings.log, **columns), **SCORES, estimators=settings.analysis.estimators,
        interval=settings.analysis.interval, strata="stratum", value="v",
    )  # fmt: skip


def lengths_differ(rows: int = 400) -> tuple[pa.Table, list[list[float]], list[list[float]]]:
    """Displays that show one, two or three of three items; the slots' weights by hand, and what they earned."""
    g = np.random.default_rng(9)
    control, treatment = g.normal(size=(2, rows, 3))
    shown = np.argsort(-(control + g.gumbel(size=control.shape)), axis=1)
    weights, rankings, earned = [], [], []
    for i in range(rows):
        k = int(g.integers(1, 4))
        ranking = shown[i, :k].tolist()
        rankings.append(ranking)
        earned.append((g.random(k) < 0.3).astype(float).tolist())
        t, p = (_marginals(scores[i]) for scores in (treatment, control))
        weights.append([t[slot, item] / p[slot, item] for slot, item in enumerate(ranking)])
    table = pa.table({
        "click": [sum(r) for r in earned], "slots": earned, "ranking": rankings, "user": np.arange(rows) // 2,
        "control_scores": control.tolist(), "treatment_scores": treatment.tolist(),
    })  # fmt: skip
    return table, weights, earned


def _marginals(scores: np.ndarray) -> np.ndarray:
    """P(item in slot) of three items, over all six rankings."""
    p = np.zeros((3, 3))
    for a in range(3):
        for b in (j for j in range(3) if j != a):
            [c] = [j for j in range(3) if j not in (a, b)]
            e = np.exp(scores)
            prob = e[a] / e.sum() * e[b] / (e[b] + e[c])
            for slot, item in enumerate((a, b, c)):
                p[slot, item] += prob
    return p


def test_a_display_that_does_not_reach_a_slot_weighs_one_there() -> None:
    table, weights, earned = lengths_differ()
    value, rows = 0.0, len(table)
    for slot in range(3):
        there = [i for i in range(rows) if len(weights[i]) > slot]
        total = sum(weights[i][slot] for i in there) + rows - len(there)
        value += sum(weights[i][slot] * earned[i][slot] for i in there) / total
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={"click": "slots"})
    test = ft.OfflineTest(log=columns, **SCORES, estimators=["niips"])
    for how in ({}, {"batch_rows": 13}):
        assert test.run(table, **how).metrics["click"].estimates["niips"].treatment == pytest.approx(value, rel=1e-8)


def test_other_estimators_keep_their_digits() -> None:
    alone = build_test(["iips", "slot-ncis-adaptive"]).run(LOG.table()).metrics["click"].estimates
    beside = build_test(["iips", "niips", "slot-ncis-adaptive"]).run(LOG.table()).metrics["click"].estimates
    for key, estimate in alone.items():
        assert estimate == beside[key]


def test_by_itself_it_does_not_run_where_rankings_have_a_price() -> None:
    result = ft.OfflineTest(log=build_test(["iips"]).settings.log, **SCORES, strata="stratum").run(LOG.table())
    assert "niips" not in result.metrics["click"].estimates
    assert not any("niips" in note for note in result.notes)


def test_it_is_not_by_segment() -> None:
    test, table = build_test(["niips", "slot-ncis-adaptive"]), LOG.table()
    result = with_columns(test, segments=("stratum",)).run(table)
    assert "niips" not in result.segments[0].metrics["click"].estimates
    assert any("niips cannot be given by segment" in note for note in result.notes)


def test_a_thinned_log_counts_each_row_as_often_as_it_stands_for() -> None:
    """Three copies of each second row, or that row once with keep = 1/3."""
    table, times = LOG.table(), np.where(np.arange(LOG.rows) % 2, 3, 1)
    copied = table.take(np.repeat(np.arange(LOG.rows), times))
    thinned = table.append_column("keep", pa.array(1.0 / times))
    test = build_test(["niips"], interval="delta")
    one = test.run(copied).metrics["click"].estimates["niips"]
    other = with_columns(test, keep="keep").run(thinned).metrics["click"].estimates["niips"]
    assert other.treatment == pytest.approx(one.treatment, rel=1e-10)
    assert other.std_error == pytest.approx(one.std_error, rel=1e-9)

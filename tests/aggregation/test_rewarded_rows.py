"""Rewarded rows wait for one another: how many are priced at once changes no number, and none of them holds a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation import fold, rewarded_rows
from foretest.aggregation.choose_estimators import choose_estimators
from foretest.aggregation.fold import Fold
from foretest.offline.prepare_and_fold import offline_reader
from foretest.sources import ArrowTable
from tests.loggers import ThreeLoggers, build
from tests.support import SCORES, SmallLog, build_test

LOG = SmallLog(rows=900, units=200, seed=3)
ESTIMATORS = ["is", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]


def at_once(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(fold, "AT_ONCE", rows)
    monkeypatch.setattr(rewarded_rows, "AT_ONCE", rows)


def same(left: Any, right: Any) -> None:
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            same(left[key], right[key])
    elif isinstance(left, list):
        for a, b in zip(left, right, strict=True):
            same(a, b)
    elif isinstance(left, float):
        assert left == pytest.approx(right, rel=1e-9, abs=1e-12)
    else:
        assert left == right


def metrics(test: ft.OfflineTest, table: Any, batch_rows: int) -> dict[str, Any]:
    result = test.run(table, batch_rows=batch_rows).to_dict()
    return {name: result[name] for name in ("metrics", "health", "segments") if name in result}


@pytest.mark.slow
@pytest.mark.parametrize("draws", ["exact", "two-sided", "midzuno-sen"])
def test_how_many_are_priced_at_once_changes_nothing(draws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    test = build_test(ESTIMATORS, metrics=("click", "revenue"), normaliser=draws, draws=16)
    whole = metrics(test, LOG.table(), 10_000)
    for rows, batch in ((1, 10_000), (7, 50), (200, 50), (10_000, 13)):
        at_once(monkeypatch, rows)
        same(metrics(test, LOG.table(), batch), whole)


def cases() -> dict[str, tuple[ft.OfflineTest, pa.Table]]:
    log, columns = ThreeLoggers(), ft.LogColumns(
        rewards=("click",), unit="user", ranking="ranking", id="id", segments=("place",)
    )  # fmt: skip
    return {
        "slots": (build_test(["cis", "slot-ncis-adaptive", "point-ncis"]), LOG.table()),
        "loggers": (build(["ncis", "point-ncis-adaptive"]), log.table()),
        "segments": (
            ft.OfflineTest(log=columns, **SCORES, estimators=["cis", "point-ncis"]),
            LOG.table(place=pa.array(["here", "there", "there"] * 300)),
        ),
    }


@pytest.mark.parametrize("case", ["slots", "loggers", "segments"])
def test_nor_by_slot_nor_of_several_loggers_nor_by_segment(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    test, table = cases()[case]
    whole = metrics(test, table, 10_000)
    for rows, batch in ((7, 50), (10_000, 50), (20, 10_000)):
        at_once(monkeypatch, rows)
        same(metrics(test, table, batch), whole)


def test_rows_that_wait_hold_no_batch_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch, 40)
    test = build_test(["point-ncis", "slot-ncis-adaptive"])
    plan = choose_estimators(test.settings)[0]
    reader, state = offline_reader(plan), Fold(plan)
    [part] = ArrowTable(LOG.table()).parts(reader.columns, 50)
    waited = 0
    for chunk in part():
        rows = reader.read(chunk)
        state.add(rows)
        assert sum(map(len, state.waiting)) < 40
        for waiting in state.waiting[-1:]:
            pairs = [
                (waiting.rows.displays[name], rows.displays[name]) for name in ("control_scores", "treatment_scores")
            ]
            for mine, batch in [*pairs, (waiting.rows.displays.ranking, rows.displays.ranking), *zip(
                waiting.rows.slots.values(), rows.slots.values(), strict=True
            )]:  # fmt: skip
                assert not np.shares_memory(mine.values, batch.values)
        waited = max(waited, len(state.waiting))
    assert waited > 1
    assert int(state.finish().positives[0]) == int((LOG.click > 0).sum())
    assert not state.waiting

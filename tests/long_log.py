"""A small log with one row per display, and the same displays with one row per item, in one table or in three."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import foretest as ft
from tests.support import SCORES, SmallLog

LONG = ft.LogColumns(rewards=["click"], unit="user", layout="long", display="view", item="sku", slot="place")
SHORT = ft.LogColumns(
    rewards=["click"], unit="user", id="view", ranking="ranking", slot_rewards={"click": "slot_click"}
)
NAMES = ("view", "sku", "place", "click", "control_scores", "treatment_scores", "user")


def short_log(rows: int = 300, seed: int = 7) -> pa.Table:
    """One row per display."""
    log = SmallLog(rows=rows, units=90, seed=seed)
    return log.table().append_column("view", pa.array([f"d{i:04d}" for i in range(rows)]))


def long_log(short: pa.Table, seed: int = 0) -> pa.Table:
    """One row per item, in any order; items have ids that sort as their positions do."""
    rows: dict[str, list[Any]] = {name: [] for name in NAMES}
    for row in short.to_pylist():
        for item, (p, t) in enumerate(zip(row["control_scores"], row["treatment_scores"], strict=True)):
            slot = row["ranking"].index(item) if item in row["ranking"] else None
            values = row["view"], item + 100, slot, None if slot is None else row["slot_click"][slot], p, t, row["user"]
            for name, value in zip(NAMES, values, strict=True):
                rows[name].append(value + 1 if name == "place" and value is not None else value)
    table = pa.table(rows)
    return table.take(pa.array(np.random.default_rng(seed).permutation(len(table))))


def three_tables(long: pa.Table) -> dict[str, pa.Table]:
    """The same as impressions, candidates and rewards; of the latter only what was clicked, some of it in two rows."""
    shown = long.filter(pa.compute.is_valid(long["place"]))
    clicks = shown.filter(pa.compute.greater(shown["click"], 0)).select(["view", "sku", "click"])
    half = clicks.set_column(2, "click", pa.compute.divide(clicks["click"], 2.0))
    return {
        "impressions": shown.select(["view", "sku", "place", "user"]),
        "candidates": long.select(["view", "sku", "control_scores", "treatment_scores"]),
        "rewards": pa.concat_tables([half, half]),
    }


def test_of(log: ft.LogColumns, **analysis: Any) -> ft.OfflineTest:
    """A test with these columns."""
    return ft.OfflineTest(log=log, **SCORES, **{"n_resamples": 50, **analysis})


def assert_same(one: ft.Result, other: ft.Result, rel: float = 1e-9) -> None:
    """Both results say the same."""
    first, second = (result.metrics["click"].estimates for result in (one, other))
    assert list(first) == list(second)
    for key in first:
        for name in ("treatment", "std_error", "effect_size_ci_lower", "effect_size_ci_upper"):
            a, b = getattr(first[key], name), getattr(second[key], name)
            assert abs(a - b) <= rel * max(abs(a), 1e-12), (key, name, a, b)
        assert first[key].verdict == second[key].verdict
    assert one.log == other.log


test_of.__test__ = False  # type: ignore[attr-defined]

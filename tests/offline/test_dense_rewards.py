"""Dense rewards: all rows are weighed and values are ratios, against plain NumPy, from every source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.weights.weight_bounds import GRID
from tests.support import SCORES, SmallLog

POINT, SLOT, CASCADE = "point-ncis-adaptive", "slot-ncis-adaptive", "cascade-ncis-adaptive"
LEVELS = (POINT, SLOT, CASCADE)
LOG = SmallLog(rows=2500, units=2500, spread=3.0, seed=12)  # a third of the rows have a click


def build(keys: tuple[str, ...] = LEVELS, segments: tuple[str, ...] = (), **analysis: Any) -> ft.OfflineTest:
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"},
        segments=list(segments),
    )  # fmt: skip
    return ft.OfflineTest(log=columns, **SCORES, estimators=list(keys), **{"n_resamples": 100, **analysis})


def ratio_of(log: SmallLog, key: str, bound: float, rows: np.ndarray | None = None) -> float:
    """Σhr/Σh; by slot h is the mean over the slots."""
    rows = np.arange(log.rows) if rows is None else rows
    if key == POINT:
        h = log.adaptive(bound)
        return float((h * log.click)[rows].sum() / h[rows].sum())
    h = log.slot_weights(key, bound)
    earned = log.shares["click"] * log.click[:, None]
    return float((h * earned)[rows].sum() / h.mean(axis=1)[rows].sum())


def test_values_are_ratios_of_all_rows() -> None:
    result = build().run(LOG.table())
    for key in LEVELS:
        e = result.metrics["click"].estimates[key]
        assert e.bound_choice is not None
        for row in e.bound_choice["bounds"]:
            assert row["value"] == pytest.approx(ratio_of(LOG, key, row["bound"]), rel=1e-9), (key, row["bound"])
        assert e.treatment == pytest.approx(ratio_of(LOG, key, e.bound_choice["bound"]), rel=1e-9)


def test_the_error_is_that_of_a_ratio() -> None:
    e = build((POINT,), interval="delta", buckets=1 << 16).run(LOG.table()).metrics["click"].estimates[POINT]
    assert e.bound_choice is not None
    h, r = LOG.adaptive(e.bound_choice["bound"]), LOG.click
    influence = h / h.mean() * (r - (h * r).sum() / h.sum()) - (r - r.mean())
    by_unit = np.bincount(LOG.unit, weights=influence)
    by_unit = by_unit[np.unique(LOG.unit)]
    expected = np.sqrt(len(by_unit) / (len(by_unit) - 1) * (by_unit**2).sum()) / LOG.rows
    assert e.std_error == pytest.approx(expected, rel=0.01)  # a few units share a bucket


def test_equal_rewards_have_no_uplift() -> None:
    table = LOG.table(click=np.ones(LOG.rows), slot_click=pa.array([[0.5, 0.5]] * LOG.rows))
    for e in build().run(table).metrics["click"].estimates.values():
        assert e.effect_size == pytest.approx(0.0, abs=1e-12)
        assert e.verdict == "neutral"


def test_rewards_on_another_level_have_the_same_absolute_uplift() -> None:
    """Adding a constant to every reward adds it to both values: the ratio forgets it, a mean of weights would not."""
    g = np.random.default_rng(5)
    minutes = 10.0 + g.normal(size=LOG.rows) + LOG.rankings[LOG.shown, 0]

    def uplift(constant: float) -> ft.Estimate:
        table = LOG.table(click=minutes + constant)
        return build((POINT,), interval="delta").run(table).metrics["click"].estimates[POINT]

    low, high = uplift(0.0), uplift(1000.0)
    assert low.bound_choice is not None
    assert high.bound_choice is not None
    assert low.bound_choice["bound"] == high.bound_choice["bound"]
    assert high.effect_size == pytest.approx(low.effect_size, rel=1e-6)
    assert high.std_error == pytest.approx(low.std_error, rel=1e-6)


def test_segments_are_ratios_too() -> None:
    result = build(segments=("stratum",)).run(LOG.table())
    whole = result.metrics["click"].estimates
    for segment in result.segments:
        rows = np.flatnonzero(LOG.stratum == int(segment.value))
        for key in LEVELS:
            choice = whole[key].bound_choice
            assert choice is not None
            expected = ratio_of(LOG, key, choice["bound"], rows)
            assert segment.metrics["click"].estimates[key].treatment == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("interval", ["bernstein", "betting"])
def test_bounds_for_means_keep_the_mean(interval: str) -> None:
    e = build((POINT,), interval=interval, r_max=1.0).run(LOG.table()).metrics["click"].estimates[POINT]
    assert e.bound_choice is not None
    h = LOG.adaptive(e.bound_choice["bound"])
    assert e.treatment == pytest.approx((h * LOG.click).mean(), rel=1e-9)


def test_a_number_keeps_the_mean() -> None:
    e = build((POINT,), weight_bound=GRID[0]).run(LOG.table()).metrics["click"].estimates[POINT]
    assert e.treatment == pytest.approx((LOG.adaptive(GRID[0]) * LOG.click).mean(), rel=1e-9)


def test_rare_rewards_keep_the_mean() -> None:
    click = np.where(np.arange(LOG.rows) % 20 == 0, LOG.click, 0.0)
    table = LOG.table(click=click, slot_click=LOG.slots("click", click))
    e = build((POINT,)).run(table).metrics["click"].estimates[POINT]
    assert e.bound_choice is not None
    assert e.treatment == pytest.approx((LOG.adaptive(e.bound_choice["bound"]) * click).mean(), rel=1e-9)


def digits(result: ft.Result) -> list[Any]:
    estimates = result.metrics["click"].estimates
    return [x for e in estimates.values() for x in (e.treatment, e.effect_size_ci_lower, e.effect_size_ci_upper)]


def test_every_source_says_the_same(tmp_path: Path) -> None:
    table, test = LOG.table(), build()
    expected = digits(test.run(table))
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=700)
    assert digits(test.run(str(tmp_path / "log.parquet"))) == pytest.approx(expected, rel=1e-12)
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=300))
    assert digits(test.run(stream)) == pytest.approx(expected, rel=1e-12)
    test.pack(table, tmp_path / "packed")
    packed = test.run(str(tmp_path / "packed"))
    assert digits(packed) == pytest.approx(expected, rel=1e-12)
    assert any("rewards are dense" in note for note in packed.notes)


def test_days_of_dense_and_of_rare_rewards_add_up_to_means(tmp_path: Path) -> None:
    """A day with few rewards has weighed its rewarded rows alone, so that all days together have no ratio."""
    test, half = build((POINT,)), LOG.rows // 2
    rare = np.where(np.arange(LOG.rows) % 20 == 0, LOG.click, 0.0)
    parts = []
    for name, click, rows in (("a", LOG.click, np.arange(half)), ("b", rare, np.arange(half, LOG.rows))):
        parts.append(str(tmp_path / f"{name}.parquet"))
        test.save_aggregates(LOG.table(rows, click=click, slot_click=LOG.slots("click", click)), parts[-1])
    e = test.run(parts).metrics["click"].estimates[POINT]
    both = np.where(np.arange(LOG.rows) < half, LOG.click, rare)
    assert e.bound_choice is not None
    assert e.treatment == pytest.approx((LOG.adaptive(e.bound_choice["bound"]) * both).mean(), rel=1e-9)


def test_rows_without_a_reward_count_in_whatever_batch_they_are() -> None:
    """Sorted by reward, the first batches have none: what is predicted is the same."""
    order = np.argsort(LOG.click, kind="stable")
    test = build()
    expected = test.run(LOG.table()).metrics["click"].estimates
    for rows in (100, 5000):
        batches = LOG.table(order).to_batches(max_chunksize=rows)
        result = test.run(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
        for key, e in expected.items():
            found = result.metrics["click"].estimates[key].bound_choice
            assert found is not None
            assert e.bound_choice is not None
            for one, other in zip(found["bounds"], e.bound_choice["bounds"], strict=True):
                assert one["predicted_std_error"] == pytest.approx(other["predicted_std_error"], rel=1e-9)


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.float32(), pa.float64(), pa.decimal128(5, 2)])
def test_rewards_of_every_type_are_seen(kind: pa.DataType) -> None:
    click = pa.array(LOG.click).cast(pa.int8()).cast(kind)
    e = build((POINT,)).run(LOG.table(click=click)).metrics["click"].estimates[POINT]
    assert e.bound_choice is not None
    assert e.treatment == pytest.approx(ratio_of(LOG, POINT, e.bound_choice["bound"]), rel=1e-9)


def test_files_may_differ_in_the_type_of_a_reward(tmp_path: Path) -> None:
    place, half = LOG.table().column_names.index("click"), LOG.rows // 2
    for name, kind, rows in (("a", pa.bool_(), slice(0, half)), ("b", pa.int64(), slice(half, None))):
        click = pa.array(LOG.click[rows]).cast(pa.int8()).cast(kind)
        part = LOG.table().slice(rows.start, len(click)).set_column(place, "click", click)
        pq.write_table(part, tmp_path / f"{name}.parquet")
    assert digits(build().run(str(tmp_path))) == pytest.approx(digits(build().run(LOG.table())), rel=1e-12)

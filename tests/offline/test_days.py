"""The uplift by day: what a log of that day alone says, and whether days differ, against plain NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import derived_bucket
from foretest.report.figures import result_figures
from tests.late_log import BEGIN, LateLog, late_test

LOGGED: dict[str, Any] = {"control": ft.Logged(prob="p"), "treatment": ft.Logged(prob="q"), "n_resamples": 50}


class DayLog:
    """Users who come on several days; on the last days the weights go with the reward, if `differs`."""

    def __init__(self, *, differs: bool, rows: int = 6000, days: int = 5, seed: int = 0) -> None:
        g = np.random.default_rng(seed)
        self.user, self.day = g.integers(0, 700, rows), g.integers(0, days, rows)
        self.click = (g.random(rows) < 0.25).astype(float)
        up = np.where(self.click > 0, 0.65 if differs else 0.5, 0.5)
        self.w = np.where(g.random(rows) < np.where(self.day >= 3, up, 0.5), 1.3, 0.7)
        self.time = BEGIN + self.day * np.timedelta64(86_400_000_000, "us") + np.arange(rows) * np.timedelta64(1, "us")

    def table(self) -> pa.Table:
        rows = len(self.user)
        return pa.table({"click": self.click, "user": self.user, "ts": self.time, "p": np.full(rows, 0.4),
                         "q": 0.4 * self.w, "day": [f"day {d}" for d in self.day]})  # fmt: skip

    def uplift_and_influence(self, rows: np.ndarray, buckets: int) -> tuple[float, np.ndarray]:
        """IS's relative uplift of some rows, Σ w r/Σ r − 1, and by bucket the influence on it."""
        bucket = derived_bucket(hash_integers(self.user[rows]), 1, buckets)
        r, wr = self.click[rows], self.click[rows] * self.w[rows]
        ratio = wr.sum() / r.sum()
        return float(ratio - 1.0), np.bincount(bucket, weights=(wr - ratio * r) / r.sum(), minlength=buckets)


def days_test(**more: Any) -> ft.OfflineTest:
    log = {"rewards": ["click"], "unit": "user", "time": "ts", **more.pop("log", {})}
    return ft.OfflineTest(log=ft.LogColumns(**log), **{**LOGGED, "estimators": ["is"], "buckets": 128, **more})


@pytest.mark.parametrize("differs", [True, False])
def test_days_and_their_test_are_those_of_numpy(differs: bool) -> None:
    log = DayLog(differs=differs)
    result = days_test(interval="delta").run(log.table())
    metric = result.to_dict()["metrics"]["click"]
    expected = [log.uplift_and_influence(np.flatnonzero(log.day == d), 128) for d in range(5)]
    assert [day["day"] for day in metric["days"]] == [f"2026-03-0{d + 1}" for d in range(5)]
    for d, (day, (uplift, influence)) in enumerate(zip(metric["days"], expected, strict=True)):
        assert day["rows"] == (log.day == d).sum()
        assert day["estimator"] == "is"
        assert day["rel_effect_size"] == pytest.approx(uplift, rel=1e-9)
        error = np.sqrt(128 / 127 * influence @ influence)
        assert day["rel_effect_size_ci_upper"] == pytest.approx(uplift + 1.6448536 * error, rel=1e-6)
    u, x = np.array([e[0] for e in expected]), np.stack([e[1] for e in expected])
    inverse, one = np.linalg.inv(128 / 127 * x @ x.T), np.ones(5)
    mean = (one @ inverse @ u) / (one @ inverse @ one)
    assert metric["heterogeneity"]["chi2"] == pytest.approx((u - mean) @ inverse @ (u - mean), rel=1e-6)
    assert (metric["heterogeneity"]["df"], metric["heterogeneity"]["days"]) == (4, 5)
    differ = [note for note in result.notes if "differs from day to day more than chance explains" in note]
    assert len(differ) == int(differs)
    assert (metric["heterogeneity"]["p_value"] < 0.01) == differs


def test_days_are_by_the_headline_and_have_a_picture() -> None:
    result = late_test(interval="delta", weight_bound=20.0).run(LateLog(rows=900).table())
    days = result.to_dict()["metrics"]["click"]["days"]
    assert len(days) == 7
    assert days[0]["estimator"] == result.metrics["click"].headline
    assert result.segments == []
    assert {"days-click", "reward-ages-click"} <= set(result_figures(result.to_dict()))


def test_the_date_comes_before_the_time_and_a_day_alone_is_no_table() -> None:
    log = DayLog(differs=False)
    result = days_test(log={"date": "day"}).run(log.table())
    assert [day["day"] for day in result.to_dict()["metrics"]["click"]["days"]] == [f"day {d}" for d in range(5)]
    one = log.table().filter(pa.array(log.day == 2))
    assert "days" not in days_test().run(one).to_dict()["metrics"]["click"]


def test_a_headline_without_sums_by_day_gives_way_with_a_note() -> None:
    log = DayLog(differs=False)
    result = days_test(estimators=["piece-ncis", "ncis"], strata="day", headline="piece-ncis").run(log.table())
    assert result.to_dict()["metrics"]["click"]["days"][0]["estimator"] == "ncis"
    assert "uplifts by day are by ncis: piece-ncis has no sums by day." in result.notes


def test_too_many_days_are_left_out_with_a_note() -> None:
    rows = 210
    shown = BEGIN + np.arange(rows) * np.timedelta64(86_400_000_000, "us")
    table = pa.table({"click": np.arange(rows) % 2, "user": np.arange(rows), "ts": shown, "p": np.full(rows, 0.4),
                      "q": np.full(rows, 0.3)})  # fmt: skip
    result = days_test(buckets=4, log={"read_at": None}).run(table)
    assert "there are more than 100 days: the uplift by day is left out." in result.notes
    assert "days" not in result.to_dict()["metrics"]["click"]


def test_every_treatment_has_its_days() -> None:
    log = DayLog(differs=True)
    table = log.table().append_column("same", pa.array(np.full(len(log.user), 0.4)))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", time="ts"), control=ft.Logged(prob="p"),
        treatment={"new": ft.Logged(prob="q"), "same": ft.Logged(prob="same")}, estimators=["is"], n_resamples=20,
        buckets=128,
    )  # fmt: skip
    document = test.run(table).to_dict()
    first, second = (treatment["metrics"]["click"] for treatment in document["treatments"])
    assert first["heterogeneity"]["p_value"] < 0.01
    assert [day["rel_effect_size"] for day in second["days"]] == [0.0] * 5
    assert second["heterogeneity"] is None  # nothing varies


def test_a_date_alone_has_days_in_a_run_and_none_in_files(tmp_path: Path) -> None:
    log = DayLog(differs=False)
    test = days_test(log={"date": "day", "time": None})
    pq.write_table(log.table(), tmp_path / "log.parquet")
    result = test.run(str(tmp_path / "log.parquet"))
    by_time = days_test().run(log.table()).to_dict()["metrics"]["click"]
    mine = result.to_dict()["metrics"]["click"]
    assert [day["day"] for day in mine["days"]] == [f"day {d}" for d in range(5)]
    assert mine["heterogeneity"] == pytest.approx(by_time["heterogeneity"])
    assert result.late_rewards is None
    test.save_aggregates(str(tmp_path / "log.parquet"), tmp_path / "log.sums")
    assert "days" not in test.run(str(tmp_path / "log.sums")).to_dict()["metrics"]["click"]
    test.pack(str(tmp_path / "log.parquet"), tmp_path / "packed")
    packed = test.run(str(tmp_path / "packed"))
    assert "days" not in packed.to_dict()["metrics"]["click"]
    assert not any("all rows were read" in note for note in packed.notes)


def test_a_date_of_any_type_is_left_alone() -> None:
    log = DayLog(differs=False)
    numbers = log.table().set_column(5, "day", pa.array(log.day / 2.0))
    assert "days" not in days_test(log={"date": "day", "time": None}).run(numbers).to_dict()["metrics"]["click"]
    with pytest.raises(ft.BadInput, match="column 'day' is double, expected a date, timestamp, string or integer"):
        days_test(log={"date": "day"}).run(numbers)

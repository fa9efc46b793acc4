"""A small log whose rewards come late, as a table and as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import foretest as ft
from tests.support import SCORES, SmallLog

BEGIN = np.datetime64("2026-03-01T00:00:00", "us")
DAY = np.timedelta64(86_400_000_000, "us")
READ_AT = "2026-03-08"


class LateLog:
    """Displays over seven days, with clicks that come after a day on average; those that come after the log was read
    are not in it."""

    def __init__(self, rows: int = 600, units: int = 120, seed: int = 3) -> None:
        self.small = SmallLog(rows=rows, units=units, seed=seed)
        rng = np.random.default_rng(seed)
        self.read_at = np.datetime64(READ_AT, "us")
        self.time = BEGIN + (rng.random(rows) * 7 * 86_400).astype("timedelta64[s]").astype("timedelta64[us]")
        self.age = (rng.exponential(86_400.0, rows)).astype("timedelta64[s]").astype("timedelta64[us]")
        self.has_reward = (self.small.click > 0) & (self.time + self.age <= self.read_at)
        self.click = np.where(self.has_reward, self.small.click, 0.0)

    def table(self, **more: Any) -> pa.Table:
        """The log."""
        table = self.small.table(**more)
        columns = {
            "click": pa.array(self.click),
            "slot_click": self.small.slots("click", self.click),
            "ts": pa.array(self.time),
            "clicked_at": pa.array(self.time + self.age, mask=~self.has_reward),
            "seconds": pa.array(self.age / np.timedelta64(1, "s"), mask=~self.has_reward),
        }
        for name, array in columns.items():
            place = table.schema.get_field_index(name)
            table = table.append_column(name, array) if place < 0 else table.set_column(place, name, array)
        return table


def late_test(log: dict[str, Any] | None = None, **analysis: Any) -> ft.OfflineTest:
    """A test of such a log."""
    columns = {
        "rewards": ["click"], "unit": "user", "ranking": "ranking", "id": "id", "time": "ts",
        "reward_time": "clicked_at", "slot_rewards": {"click": "slot_click"}, **(log or {}),
    }  # fmt: skip
    given = {name: value for name, value in columns.items() if value is not None}
    settings = {"estimators": ["ncis", "point-ncis-adaptive", "slot-ncis-adaptive"], "n_resamples": 40, **analysis}
    return ft.OfflineTest(log=ft.LogColumns(**given), **SCORES, **settings)

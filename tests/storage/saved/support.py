"""Aggregates compared bit by bit, results number by number."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import foretest as ft
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.storage.saved.files import SavedFile
from tests.support import SmallLog

SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
id = "id"

[control]
policy = "plackett-luce"
scores = "control_scores"

[treatment]
policy = "plackett-luce"
scores = "treatment_scores"

[analysis]
estimators = ["cis", "ncis", "piece-ncis", "point-ncis-adaptive"]
cap = 2.0
weight_bound = 3.0
strata = "stratum"
n_resamples = 200
"""


def read_back(path: Path) -> Aggregates:
    """The aggregates of a file, under the settings that it records."""
    file = SavedFile.open(path)
    return file.read(file.plan(file.settings()))


def assert_same_bits(a: Any, b: Any, where: str = "") -> None:
    """Two nested structures are the same to the last bit."""
    assert type(a) is type(b), where
    if isinstance(a, FoldPlan):
        return
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), where
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same_bits(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, Mapping):
        assert list(a) == list(b), where
        for key in a:
            assert_same_bits(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same_bits(x, y, f"{where}[{i}]")
    else:
        assert a == b, where


def numbers_of(result: ft.Result, *, notes: bool = False) -> dict[str, Any]:
    """A result's document, flat, without what says how it was come by."""
    document = json.loads(result.to_json())
    for key in ("settings", "provenance"):
        document.pop(key, None)
    if not notes:
        del document["notes"]
    flat: dict[str, Any] = {}

    def walk(value: Any, name: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(item, f"{name}/{key}")
        elif isinstance(value, list):
            for i, item in enumerate(value):
                walk(item, f"{name}/{i}")
        else:
            flat[name] = value

    walk(document, "")
    return flat


def assert_same_result(a: ft.Result, b: ft.Result, tolerance: float = 1e-9, leave_out: tuple[str, ...] = ()) -> None:
    """Equal words and counts, numbers equal to `tolerance` of the control's value (of themselves where larger)."""
    one, two = (
        {k: v for k, v in numbers_of(r).items() if not any(part in k for part in leave_out)} for r in (a, b)
    )  # fmt: skip
    assert one.keys() == two.keys()
    control = next(iter(a.metrics.values())).control.value if a.metrics else 1.0
    room = tolerance * (control or 1.0)
    for name, value in one.items():
        if isinstance(value, float):  # some thousands: pytest.approx would take most of the time
            assert abs(two[name] - value) <= max(tolerance * abs(value), room), (name, two[name], value)
        else:
            assert two[name] == value, name


def folded(test: ft.OfflineTest, log: Any, **options: Any) -> Aggregates:
    return test.aggregate(log, **options)[0]


def write_days(folder: Path, rows: int = 400, days: int = 4) -> tuple[SmallLog, list[str]]:
    """A log cut into files, one a day, with rows of a unit in several."""
    log = SmallLog(rows)
    table = log.table()
    edges = np.linspace(0, rows, days + 1).astype(int)
    paths = []
    for day in range(days):
        path = folder / f"day{day}.parquet"
        pq.write_table(table.slice(edges[day], edges[day + 1] - edges[day]), path)
        paths.append(str(path))
    return log, paths

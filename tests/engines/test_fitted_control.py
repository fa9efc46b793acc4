"""A fitted control in Spark: the digits of one machine."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.engines.spark_session import spark
from tests.support import SmallLog

pytestmark = pytest.mark.spark


def test_spark_gives_the_digits_of_one_machine(tmp_path: Path) -> None:
    log = SmallLog(rows=500, units=120)
    keys = ["ncis", "piece-ncis", "point-ncis-adaptive"]
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", segments=["stratum"]),
        control=ft.PlackettLuce("control_scores", "fit"), treatment=ft.PlackettLuce("treatment_scores"),
        estimators=keys, strata="stratum", n_resamples=50,
    )  # fmt: skip
    pq.write_table(log.table(), tmp_path / "log.parquet")
    frame = spark().read.parquet(str(tmp_path / "log.parquet")).repartition(3, "user")
    found, wanted = test.run(frame), test.run(log.table())
    assert found.control_fit is not None
    assert wanted.control_fit is not None
    mine, theirs = found.control_fit["control"], wanted.control_fit["control"]
    assert mine["rows"] == theirs["rows"]
    for key in ("value", "std_error"):
        assert mine[key] == pytest.approx(theirs[key], rel=1e-9)
    for key in keys:
        one, other = (result.metrics["click"].estimates[key] for result in (found, wanted))
        for field in ("effect_size", "std_error", "rel_effect_size_ci_lower"):
            assert getattr(one, field) == pytest.approx(getattr(other, field), rel=1e-8), (key, field)

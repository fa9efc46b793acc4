"""Thinned logs in Spark: the digits of one machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.engines.spark_session import spark
from tests.engines.test_spark import assert_same
from tests.loggers import NAMES, ThreeLoggers
from tests.support import SCORES, SmallLog

pytestmark = pytest.mark.spark


def test_spark_gives_the_digits_of_one_machine(tmp_path: Path) -> None:
    log = SmallLog(rows=500, units=80)
    table = log.table(keep=1.0 / np.random.default_rng(0).integers(1, 5, log.rows))
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="id", slot_rewards={"click": "slot_click"},
        segments=["stratum"], features=["v"], keep="keep",
    )  # fmt: skip
    keys = ["ncis", "dr", "piece-ncis", "point-ncis-adaptive", "slot-ncis-adaptive", "exposure-ncis-adaptive"]
    test = ft.OfflineTest(log=columns, **SCORES, estimators=keys, strata="stratum", n_resamples=50)
    pq.write_table(table, tmp_path / "log.parquet")
    frame = spark().read.parquet(str(tmp_path / "log.parquet")).repartition(3, "user")
    found, wanted = test.run(frame), test.run(table)
    assert found.log["displays"] == pytest.approx(wanted.log["displays"], rel=1e-12)
    found.log["displays"] = wanted.log["displays"]  # sums in another order
    assert_same(found, wanted)


def test_shares_of_loggers_are_those_of_one_machine(tmp_path: Path) -> None:
    log = ThreeLoggers(rows=300)
    table = log.table(keep=1.0 / (1.0 + np.random.default_rng(0).random(log.rows)))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", date="day", logger="policy",
                          keep="keep"),
        control={name: ft.PlackettLuce(scores=f"{name}_scores") for name in NAMES},
        treatment=SCORES["treatment"], estimators=["ncis"], baseline="new", n_resamples=50,
    )  # fmt: skip
    pq.write_table(table, tmp_path / "log.parquet")
    found, wanted = test.run(spark().read.parquet(str(tmp_path / "log.parquet")).repartition(2)), test.run(table)
    for name in NAMES:
        assert found.log["loggers"][name]["share"] == pytest.approx(wanted.log["loggers"][name]["share"], rel=1e-12)
    mine, theirs = (result.metrics["click"].estimates["ncis"] for result in (found, wanted))
    assert mine.effect_size == pytest.approx(theirs.effect_size, rel=1e-9)
    assert mine.std_error == pytest.approx(theirs.std_error, rel=1e-9)

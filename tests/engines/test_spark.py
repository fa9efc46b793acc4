"""Spark: the digits of one machine, whatever the partitions, and a task that fails once."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.engines import spark as engine
from foretest.results.result import Estimate
from tests.engines.spark_session import spark
from tests.loggers import ThreeLoggers, build
from tests.support import SCORES, SmallLog, build_test

pytestmark = pytest.mark.spark

LOG = SmallLog(rows=600, units=80)
ALL = ["is", "nis", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]
NUMBERS = [f.name for f in fields(Estimate) if f.type == "float | None"]


@pytest.fixture
def frame(tmp_path: Path) -> Any:
    pq.write_table(LOG.table(), tmp_path / "log.parquet")
    return spark().read.parquet(str(tmp_path / "log.parquet"))


def assert_same(found: ft.Result, wanted: ft.Result) -> None:
    assert found.log == wanted.log
    for name, metric in wanted.metrics.items():
        unit = metric.control.value
        for label, estimate in metric.estimates.items():
            other = found.metrics[name].estimates[label]
            assert other.verdict == estimate.verdict
            for number in NUMBERS:
                mine, theirs = getattr(other, number), getattr(estimate, number)
                scale = 1.0 if number.startswith(("rel_", "effective")) else unit
                assert (mine is None) == (theirs is None), (label, number)
                if theirs is not None:
                    assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-9 * scale), (label, number)


def test_states_are_merged_in_rounds(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine partitions, three states at a time: two rounds before the driver; one partition is empty."""
    monkeypatch.setattr(engine, "FAN_IN", 3)
    test = build_test(ALL, n_resamples=100)
    parts = frame.repartition(8, "user").union(frame.limit(0))
    assert_same(test.run(parts), test.run(LOG.table()))


def test_check_reads_every_row(frame: Any) -> None:
    test = build_test(["ncis"])
    found, wanted = test.check(frame.repartition(3)), test.check(LOG.table())
    assert found.log == wanted.log
    assert found.health["max_weight"] == wanted.health["max_weight"]


class FailsOnce(ft.PlackettLuce):
    """Raises in the first attempt at each task."""

    def log_prob(self, displays: Displays, rankings: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            raise RuntimeError("lost")
        return super().log_prob(displays, rankings)


def test_a_task_that_is_tried_again_changes_no_digit(frame: Any) -> None:
    settings: dict[str, Any] = {
        "log": ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id"),
        "control": SCORES["control"],
        "estimators": ["cis", "point-ncis-adaptive"],
        "n_resamples": 100,
    }
    scores = SCORES["treatment"].scores
    again = ft.OfflineTest(**settings, treatment=FailsOnce(scores)).run(frame.repartition(2))
    calm = ft.OfflineTest(**settings, treatment=FailsOnce(scores)).run(LOG.table())
    assert_same(again, calm)


def test_bad_rows_are_one_sentence(frame: Any) -> None:
    from pyspark.sql import functions

    bad = frame.coalesce(1).withColumn(
        "revenue", functions.when(functions.col("id") % 100 == 7, -2.5).otherwise(functions.col("revenue"))
    )
    rows = [i for i, key in enumerate(LOG.table()["id"].to_pylist()) if key % 100 == 7]
    with pytest.raises(ft.BadInput) as error:
        build_test(["ncis"], metrics=("click", "revenue")).run(bad)
    assert str(error.value) == (
        f"the Spark DataFrame, partition 0: column 'revenue', row {rows[0]} (the first row is 0): the reward is"
        f" negative (-2.5); {len(rows)} rows have this fault. Rewards must be 0 or more. If it may have losses,"
        " write [metrics.revenue] signed = true."
    )


def test_faults_of_all_partitions_are_counted(frame: Any) -> None:
    from pyspark.sql import functions

    bad = frame.repartition(4, "id").withColumn("click", functions.lit(float("nan")))
    with pytest.raises(ft.BadInput, match=r"partition 0: column 'click', row 0 .* 600 rows have this fault"):
        build_test(["ncis"]).run(bad)


def test_a_missing_column(frame: Any) -> None:
    with pytest.raises(ft.BadInput, match=r"the Spark DataFrame: no column 'click'. Did you mean 'clicks'\?"):
        build_test(["ncis"]).run(frame.withColumnRenamed("click", "clicks"))


def test_an_empty_frame(frame: Any) -> None:
    result = build_test(["ncis"]).run(frame.limit(0))
    assert result.log["rows"] == 0
    assert result.metrics["click"].verdict == "insufficient"


def test_batches_of_our_size() -> None:
    """Spark's small batches are joined, up to a number of rows and of bytes, and every row keeps its place."""
    rows = np.arange(300_000)
    for width, begins in ((1, [0, 140_000, 280_000]), (100, [0, 50_000, 100_000, 150_000, 200_000, 250_000])):
        batches = [
            pa.RecordBatch.from_pydict({f"a{i}": rows[begin : begin + 10_000] for i in range(width)})
            for begin in range(0, len(rows), 10_000)
        ]
        chunks = list(engine._chunks(iter(batches), "x", 1 << 40))
        assert [c.row for c in chunks] == begins
        assert [c.position - (1 << 40) for c in chunks] == begins
        assert np.array_equal(np.concatenate([c.batch["a0"].to_numpy() for c in chunks]), rows)


def test_a_logger_that_no_task_knows(tmp_path: Path) -> None:
    log = ThreeLoggers(rows=400, units=90)
    pq.write_table(log.table(), tmp_path / "log.parquet")
    frame = spark().read.parquet(str(tmp_path / "log.parquet"))
    two = {name: ft.PlackettLuce(scores=f"{name}_scores") for name in ("old", "older")}
    with pytest.raises(ft.BadInput, match=r"partition .*the logger 'new' is none of the controls"):
        build(["cis"], baseline="old", control=two).run(frame.repartition(3, "user"))

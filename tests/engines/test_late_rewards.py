"""Late rewards in Spark: the digits of one machine, and the latest time of all partitions."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.engines.spark_session import spark
from tests.engines.test_spark import assert_same
from tests.late_log import LateLog, late_test

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("window", ["36h", None])
def test_spark_gives_the_digits_of_one_machine(tmp_path: Path, window: str | None) -> None:
    table = LateLog(rows=500).table()
    pq.write_table(table, tmp_path / "log.parquet")
    frame = spark().read.parquet(str(tmp_path / "log.parquet")).repartition(3, "user")
    test = late_test(window=window)
    found, wanted = test.run(frame), test.run(table)
    assert_same(found, wanted)
    assert found.late_rewards == wanted.late_rewards
    assert wanted.late_rewards is not None
    assert found.metrics["click"].days is not None

"""One real Spark on this machine, started when the first test asks for it."""

from __future__ import annotations

import os
from functools import cache
from typing import Any


@cache
def spark() -> Any:
    """Two cores, each task tried up to three times; it ends with this process."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if (running := SparkSession.getActiveSession()) is not None:
        running.stop()  # an example of the docs may have started one that tries each task once only
    session = (
        SparkSession.builder.master("local[2,3]")
        .appName("foretest tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session

"""A Spark DataFrame as a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from foretest.errors import BadInput
from foretest.records import dataclass
from foretest.sources import BATCH_ROWS, Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SparkFrame:
    """A Spark DataFrame as a log."""

    frame: DataFrame
    repeatable = True
    rows: ClassVar[None] = None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        from pyspark.sql.pandas.types import to_arrow_schema

        return [("the Spark DataFrame", to_arrow_schema(self.frame.schema))]

    def first_rows(self, columns: Sequence[str], rows: int) -> pa.Table:
        """Some columns of as many rows, the first that Spark finds."""
        table: pa.Table = self.frame.select(*columns).limit(rows).toArrow()
        return table

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        raise BadInput(
            "a Spark DataFrame is folded where its rows are: give it to OfflineTest.run, check or aggregate."
        )

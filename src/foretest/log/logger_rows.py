"""The rows of a log that one of its loggers showed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.log.logger_columns import logger_codes
from foretest.sources import Source
from foretest.sources.some_rows import SomeRows


def rows_of_logger(source: Source, column: str, names: Sequence[str], logger: str) -> SomeRows:
    """The rows of one logger, by the column that says who showed a row; `names` are those of all loggers."""
    own = list(names).index(logger)

    def is_chosen(array: pa.Array) -> npt.NDArray[np.bool_]:
        return np.equal(logger_codes(column, array, names), own)

    return SomeRows(source, column, is_chosen)

"""The rows of a log that the baseline showed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.log.logger_columns import logger_codes
from foretest.log.opening import open_log
from foretest.policies.logging_mixture import loggers_of
from foretest.settings.settings import Settings
from foretest.sources.some_rows import SomeRows


def rows_of_baseline(log: Any, settings: Settings) -> Any:
    """The rows that the baseline showed, by the column that says who showed a row; all where one policy did."""
    column, loggers = settings.log.logger, loggers_of(settings.control)
    if column is None:
        return log
    baseline = loggers.names.index(loggers.baseline)

    def is_chosen(array: pa.Array) -> npt.NDArray[np.bool_]:
        return np.equal(logger_codes(column, array, loggers.names), baseline)

    return SomeRows(open_log(log, settings) if isinstance(log, str) else log, column, is_chosen)

"""Which logger showed each of the rows that are kept, and the baseline's part in them; no columns of one policy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Displays, Floats
from foretest.log.rows import Rows
from foretest.policies.logging_mixture import loggers_of

LOGGER, LOG_BASELINE = "logger", "log_baseline"


def columns_of_rewarded(plan: FoldPlan, rows: Rows) -> Columns:
    """The columns of rewarded rows."""
    columns = columns_of_sampled(plan, rows.displays)
    return columns and {**columns, LOG_BASELINE: rows.log_baseline}


def columns_of_sampled(plan: FoldPlan, displays: Displays) -> Columns:
    """The column of sampled displays."""
    logger = loggers_of(plan.settings.control).of_rows(displays)
    return {LOGGER: logger} if plan.loggers > 1 else {}


def logger_of(columns: Columns) -> npt.NDArray[np.int64]:
    """The number of each row's logger."""
    return np.asarray(columns.get(LOGGER, np.zeros(len(columns["unit"]), np.int64)))


def log_baseline_of(columns: Columns) -> Floats:
    """log w_p of each row."""
    return np.asarray(columns.get(LOG_BASELINE, np.zeros(len(columns["unit"]))))

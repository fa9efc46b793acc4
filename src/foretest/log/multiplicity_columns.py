"""How many displays each row stands for, by what the log says of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from foretest.displays.batch import Floats
from foretest.log.keep_column import multiples
from foretest.settings.log_columns import LogColumns


def displays_per_row(log: LogColumns, batch: pa.RecordBatch) -> Floats:
    """1 of each row, or where the log was thinned 1/keep."""
    return np.ones(batch.num_rows) if log.keep is None else multiples(log.keep, batch[log.keep])

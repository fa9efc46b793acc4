"""How many displays each row stands for: the product of what the columns of [log] say of it, 1 where there are none."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from foretest.displays.batch import Floats
from foretest.log.keep_column import displays_of_kept
from foretest.settings.log_columns import LogColumns, multiplicities_of

#: how many displays a row stands for by each column, with its name for a fault; by role
READERS: dict[str, Callable[[str, pa.Array], Floats]] = {"keep": displays_of_kept}


def multiplicities(log: LogColumns, batch: pa.RecordBatch) -> list[Floats]:
    """What each of the columns says of the rows."""
    return [READERS[role](column, batch[column]) for role, column in multiplicities_of(log).items()]


def displays_per_row(log: LogColumns, batch: pa.RecordBatch) -> Floats:
    """How many displays each row stands for."""
    return np.asarray(math.prod(multiplicities(log, batch), start=np.ones(batch.num_rows)))

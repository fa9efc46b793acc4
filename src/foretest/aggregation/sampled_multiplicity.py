"""How many displays each of the sampled rows stands for: a column of the sample, unless every row stands for itself."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.thinning import MULTIPLE
from foretest.displays.batch import Floats
from foretest.log.rows import Rows


def multiplicity_column(plan: FoldPlan, rows: Rows, chosen: np.ndarray) -> Columns:
    """The column of some rows; files keep no column of ones."""
    return {MULTIPLE: rows.displays_per_row[chosen]} if plan.is_thinned else {}


def standing_for(sample: Columns) -> Floats:
    """How many displays each sampled row stands for."""
    return np.asarray(sample.get(MULTIPLE, np.ones(len(next(iter(sample.values()))))))

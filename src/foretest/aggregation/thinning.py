"""What sums of a thinned log need beside those of any log: the rows themselves, where sums count displays.

Row i was kept with probability keep_i and stands for m_i = 1/keep_i displays: every sum has m_i times what it adds.
Rules that count rows, and the reader, want to know how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.scaled_sums import add_padded
from foretest.displays.batch import Floats
from foretest.kernels.random import derive
from foretest.log.rows import Rows
from foretest.records import dataclass

MULTIPLE = "multiple"  # the column of the sampled displays with m
_SALT = 11  # rows are accepted by a hash of their own


@dataclass
class Thinning:
    """Counts of the rows of a thinned log."""

    rows: Floats  # by cell
    positives: Floats  # Σ m of rows with a reward, by metric
    squares: Floats  # Σ m², then Σ m² r by metric
    keep: Floats  # rows with a reward and Σ keep of these, rows without and Σ keep of these
    max_log_weight: float = -np.inf  # of m·w
    strata: dict[str, Floats] = field(default_factory=dict)  # rows by stratum × cell

    @classmethod
    def empty(cls, cells: int, metrics: int, tables: Sequence[str] = ()) -> Thinning:
        """The counts of no rows."""
        strata = {table: np.zeros(0) for table in tables}
        return cls(np.zeros(cells), np.zeros(metrics), np.zeros(1 + metrics), np.zeros(4), strata=strata)

    def add(self, rows: Rows, cell: npt.NDArray[np.int64], log_w: Floats | None = None) -> None:
        """Count the rows of a batch."""
        m = rows.multiple
        assert m is not None
        self.rows += np.bincount(cell, minlength=len(self.rows))
        self.positives += m @ (rows.rewards != 0.0)
        self.squares += np.append(m @ m, m @ rows.rewards)
        has_reward = (rows.rewards != 0.0).any(axis=1)
        for at, which in ((0, has_reward), (2, ~has_reward)):
            self.keep[at : at + 2] += np.count_nonzero(which), (1.0 / m[which]).sum()
        if log_w is not None:
            self.max_log_weight = max(self.max_log_weight, float((np.log(m) + log_w).max()))

    def add_stratum(self, table: str, place: npt.NDArray[np.int64], places: int) -> None:
        """Count the rows of a batch by stratum × cell."""
        counts = np.bincount(place, minlength=places).astype(np.float64)
        self.strata[table] = add_padded(self.strata[table], counts)

    @classmethod
    def total(cls, parts: Sequence[Thinning]) -> Thinning:
        """The counts of all parts, whose strata have the same codes."""
        first = parts[0]
        total = cls.empty(len(first.rows), len(first.positives), list(first.strata))
        for part in parts:
            total.rows += part.rows
            total.positives += part.positives
            total.squares += part.squares
            total.keep += part.keep
            total.max_log_weight = max(total.max_log_weight, part.max_log_weight)
            for table, counts in part.strata.items():
                total.strata[table] = add_padded(total.strata[table], counts)
        return total


def evenly_thinned(columns: Columns) -> Columns:
    """The sampled displays of a thinned log of which each stands for equally many: row i is accepted with probability
    min keep/keep_i, by a hash of its unit and key.

    They are a log that was thinned at one rate, whatever rates depended on, rewards included: what may not be weighted
    (tests that compare what was shown with draws) and what is a mean over displays alike are right on them.
    """
    if MULTIPLE not in columns:
        return columns
    m = columns[MULTIPLE]
    # the unit's hash may be the key, and what is accepted may share no bits with the choice of the sample
    uniform = derive(derive(columns["unit"], _SALT) ^ columns["key"], _SALT).astype(np.float64) / 2.0**64
    accepted = np.flatnonzero(uniform * m.max(initial=1.0) < m)
    return {name: column[accepted] for name, column in columns.items()}

"""What sums of a thinned log need beside those of any log: the rows themselves, where sums count displays.

Row i was kept with probability keep_i and stands for m_i = 1/keep_i displays: every sum has m_i times what it adds.
Rules that count rows, and the reader, want to know how many there are.
"""

from __future__ import annotations

import numpy as np

from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.ledger import Ints, Ledger, Places
from foretest.aggregation.quantities import (
    KEEP,
    LARGEST_LOG_SHARE,
    POSITIVE_DISPLAYS,
    ROWS,
    SQUARES,
    SQUARES_REWARDS,
    STRATUM_ROWS,
)
from foretest.displays.batch import Floats
from foretest.kernels.random import derive
from foretest.log.rows import Rows

MULTIPLE = "multiple"  # the column of the sampled displays with m, of a thinned log
_SALT = 11  # rows are accepted by a hash of their own


def open_thinning(ledger: Ledger, metrics: int) -> None:
    """The sums of no rows of a thinned log."""
    plain = ledger.plain
    plain.array(ROWS, ledger.cells)
    plain.array(SQUARES, 1)
    plain.array(KEEP, 4)
    plain.put(LARGEST_LOG_SHARE, -np.inf)
    for m in range(metrics):
        plain.array(POSITIVE_DISPLAYS, 1, m)
        plain.array(SQUARES_REWARDS, 1, m)
    for table in ledger.strata:
        plain.array(STRATUM_ROWS, 0, owner=table)


def add_thinning(
    ledger: Ledger, rows: Rows, at: Places, by_stratum: dict[str, Places], log_w: Floats | None = None
) -> None:
    """Count the rows of a batch."""
    m, plain, has_reward = rows.displays_per_row, ledger.plain, (rows.rewards != 0.0).any(axis=1)
    plain.add(ROWS, 1.0, at)
    plain.put(SQUARES, m @ m)
    for metric, r in enumerate(rows.rewards.T):
        plain.put(POSITIVE_DISPLAYS, m @ (r != 0.0), metric)
        plain.put(SQUARES_REWARDS, m @ r, metric)
    plain.put(KEEP, [number for some in (has_reward, ~has_reward) for number in (some.sum(), (1.0 / m[some]).sum())])
    if log_w is not None:
        plain.put(LARGEST_LOG_SHARE, (np.log(m) + log_w).max())
    for table, places in by_stratum.items():
        plain.add(STRATUM_ROWS, 1.0, places, owner=table)


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
    accepted: Ints = np.flatnonzero(uniform * m.max(initial=1.0) < m)
    return {name: column[accepted] for name, column in columns.items()}

"""What sums of a thinned log need beside those of any log: the rows themselves, where sums count displays.

Row i was kept with probability keep_i and stands for m_i = 1/keep_i displays: every sum has m_i times what it adds.
Rules that count rows, and the reader, want to know how many there are.
"""

from __future__ import annotations

import numpy as np

from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.ledger import Ints, Ledger, Places
from foretest.aggregation.quantities import (
    DISPLAYS,
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
from foretest.settings.log_columns import LogColumns, multiplicities_of

MULTIPLE = "multiple"  # the column of the sampled displays with m, of a thinned log
_SALT = 11  # rows are accepted by a hash of their own


def open_rows(ledger: Ledger, log: LogColumns, metrics: int = 0) -> None:
    """The sums of no rows that are kept only of a log whose rows stand for several displays."""
    if not multiplicities_of(log):
        return
    plain = ledger.plain
    plain.open(ROWS, np.zeros(0))
    plain.open(SQUARES, np.zeros(0))
    if ledger.groups is not None:
        return
    plain.open(KEEP, np.zeros(4))
    plain.open(LARGEST_LOG_SHARE, -np.inf)
    for m in range(metrics):
        plain.open(POSITIVE_DISPLAYS, 0.0, m)
        plain.open(SQUARES_REWARDS, 0.0, m)
    for table in ledger.strata:
        plain.open(STRATUM_ROWS, np.zeros(0), owner=table)


def are_displays(ledger: Ledger) -> bool:
    """Is every display of a log one row of it?"""
    return not ledger.plain.has(ROWS)


def size_of(ledger: Ledger) -> dict[str, float]:
    """How many displays the rows of a log stand for, as a document has it: only where they are not as many."""
    return {} if are_displays(ledger) else {"displays": ledger.plain.total(DISPLAYS)}


def multiplicity_column(ledger: Ledger, rows: Rows, chosen: Ints) -> Columns:
    """How many displays some rows stand for; files keep no column of ones."""
    return {} if are_displays(ledger) else {MULTIPLE: rows.displays_per_row[chosen]}


def standing_for(sample: Columns) -> Floats:
    """How many displays each sampled row stands for."""
    return np.asarray(sample.get(MULTIPLE, np.ones(len(next(iter(sample.values()))))))


def add_rows(
    ledger: Ledger, rows: Rows, at: Places, by_stratum: dict[str, Places], log_w: Floats | None = None
) -> None:
    """Count the rows of a batch, where their number is not that of displays."""
    if are_displays(ledger):
        return
    m, plain, has_reward = rows.displays_per_row, ledger.plain, (rows.rewards != 0.0).any(axis=1)
    plain.add(ROWS, 1.0, at)
    plain.put(SQUARES, m @ m)
    for metric, r in enumerate(rows.rewards.T):
        plain.put(POSITIVE_DISPLAYS, m[r != 0.0].sum(), metric)
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
    if not columns:
        return columns
    m = standing_for(columns)
    # the unit's hash may be the key, and what is accepted may share no bits with the choice of the sample
    uniform = derive(derive(columns["unit"], _SALT) ^ columns["key"], _SALT).astype(np.float64) / 2.0**64
    accepted: Ints = np.flatnonzero(uniform * m.max(initial=1.0) < m)
    if len(accepted) == len(m):
        return columns
    return {name: column[accepted] for name, column in columns.items()}

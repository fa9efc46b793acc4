"""Displays with few rankings to check a policy on: made up for policies that read scores, or rows of a user's table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.log.column_values import any_column
from foretest.log.shown_rankings import items_reached
from foretest.policies.adapter import whose_columns
from foretest.policies.all_rankings import ranking_counts
from foretest.policies.base import Policy, logged_column

MOST_RANKINGS = 5_040  # of one display: all orders of 7 items
SHAPES = ((1, 1), (2, 1), (2, 2), (3, 2), (4, 1), (4, 4), (5, 2), (6, 3), (7, 2))  # (M, K) of the made-up displays
MOST_ROWS = 12  # of a table


def made_up_displays(policy: Policy, seed: int) -> Displays:
    """Two displays of each shape, and three with equal, close and distant scores, for every column of the policy."""
    g = np.random.default_rng(seed)
    shapes = [*SHAPES, *SHAPES, (4, 2), (4, 2), (5, 3)]
    columns: dict[str, Any] = {}
    for name in _needed(policy):
        if name in policy.ranking_columns:
            columns[name] = Ragged.of([g.permutation(m).astype(np.int32) for m, _ in shapes])
            continue
        lists = [g.normal(size=m) for m, _ in shapes]
        lists[-3:] = [np.zeros(4), 1e-9 * g.normal(size=4), np.array([25.0, 0.0, -25.0, 1.0, 24.0])]
        columns[name] = Ragged.of(lists)
    if not columns:
        raise BadInput(f"the columns {whose_columns(policy)} are unknown: give check_policy rows of the log.")
    return _displays(columns, np.array([m for m, _ in shapes]), np.array([k for _, k in shapes]))


def rows_as_displays(policy: Policy, table: Any, slots: int | None) -> Displays:
    """Rows of a table with the policy's columns; each with as many slots as are given, else once with 1 and with 2."""
    table = table if isinstance(table, pa.Table) else pa.table(table)
    missing = [name for name in _needed(policy) if name not in table.column_names]
    if missing:
        raise BadInput(f"the table has no column '{missing[0]}', which is one {whose_columns(policy)}.")
    columns = {name: any_column(name, table[name].combine_chunks()) for name in _needed(policy)}
    rankings = {name: columns[name] for name in policy.ranking_columns}
    columns |= {name: Ragged(c.values.astype(np.int32), c.starts, c.lengths) for name, c in rankings.items()}
    eligible = _eligible(policy, columns)
    longest = np.minimum.reduce([eligible, *(c.lengths for c in rankings.values())])
    parts = []
    for k in (1, 2) if slots is None else (slots,):
        displays = _displays(columns, eligible, np.full(len(eligible), k))
        few = (longest >= k) & (ranking_counts(displays) <= MOST_RANKINGS)
        parts.append(displays.take(np.flatnonzero(few)[:MOST_ROWS]))
    parts = [part for part in parts if len(part)]
    if not parts:
        raise BadInput(
            f"no row has at most {MOST_RANKINGS:,} rankings, all of which are priced: give rows with fewer items, or"
            " fewer slots."
        )
    return Displays.concatenate(parts)


def _eligible(policy: Policy, columns: dict[str, Any]) -> npt.NDArray[np.int64]:
    """The number of eligible items of each row: the length of its lists, of rankings alone the items that they name."""
    rankings = policy.ranking_columns
    for name in (*policy.score_columns, *columns):
        if name not in rankings and isinstance(columns.get(name), Ragged):
            return np.asarray(columns[name].lengths, np.int64)
    if not rankings:
        raise BadInput(f"no column {whose_columns(policy)} is a list with one number per eligible item.")
    return items_reached({name: columns[name] for name in rankings})


def _needed(policy: Policy) -> list[str]:
    """The columns of the policy but the logged probability, which only prices the ranking that was shown."""
    logged = logged_column(policy)
    return [name for name in policy.columns if logged is None or name != logged.name]


def _displays(columns: dict[str, Any], eligible: Any, slots: Any) -> Displays:
    slots = np.minimum(slots, np.maximum(eligible, 1))
    ranking = Ragged.of([np.arange(k, dtype=np.int32) for k in slots])
    return Displays(columns, ranking, np.asarray(eligible, np.int64), np.arange(len(eligible), dtype=np.uint64))

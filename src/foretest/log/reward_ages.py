"""When displays were shown and when their rewards came: what a window leaves out, and how old rewards were.

A reward counts that came at most a window after its display; a display counts that was at least a window old when the
log was read. Both limits are inclusive, in whole microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.days import coded_days, is_day
from foretest.displays.durations import instant_text
from foretest.displays.ragged import Ragged, plain
from foretest.displays.reward_times import ages_as_given, ages_by_time, refuse_untimed
from foretest.displays.times import Instants, Ints, instants
from foretest.errors import RowFault
from foretest.log.rows import RewardAges, Rows
from foretest.settings.late_rewards import read_at_of, reward_columns, window_of
from foretest.settings.log_columns import LogColumns
from foretest.settings.settings import Settings
from foretest.sources import Chunk


@contextmanager
def rows_of_whole(chunk: Chunk) -> Iterator[None]:
    """Faults inside the block, of rows of a chunk from which some were left out, are of the rows of the whole chunk."""
    try:
        yield
    except RowFault as fault:
        if chunk.places is not None:
            fault.rows = chunk.places[fault.rows]
        raise


def display_times(log: LogColumns, batch: pa.RecordBatch) -> Ints:
    """When each display was shown; a null, or a time after the log was read, is a fault."""
    assert log.time is not None
    times, read_at = instants(log.time, batch[log.time]), read_at_of(log)
    if not times.is_there.all():
        rows = np.flatnonzero(~times.is_there)
        raise RowFault("time-null", log.time, rows, "the time of the display is null",
                       "Every row needs one: fill it, or leave the row out.")  # fmt: skip
    if read_at is not None and times.values.max(initial=read_at) > read_at:
        rows = np.flatnonzero(times.values > read_at)
        at = instant_text(int(times.values[rows[0]]))
        raise RowFault("time-after-read", log.time, rows, f"the display is of {at}, after read_at = {log.read_at}",
                       "[log] read_at is when the log was read: no display is later. Set it later, or leave the row"
                       " out.")  # fmt: skip
    return times.values


def old_enough(batch: pa.RecordBatch, settings: Settings) -> npt.NDArray[np.bool_] | None:
    """Which displays were no younger than the window when the log was read: rewards of others may still come. None
    where there is no window."""
    window, read_at = window_of(settings), read_at_of(settings.log)
    if window is None or read_at is None:
        return None
    return np.asarray(display_times(settings.log, batch) <= read_at - window)


def with_ages(rows: Rows, chunk: Chunk, settings: Settings) -> Rows:
    """The rows without rewards that came too late; without a window, with the ages of displays and rewards."""
    log, window, batch = settings.log, window_of(settings), chunk.batch
    by_metric = reward_columns(log)
    if not by_metric:
        return rows
    shown = display_times(log, batch)
    columns = {name: _ages(log, name, batch, shown) for name in dict.fromkeys(by_metric.values())}
    for m, metric in enumerate(log.rewards):
        refuse_untimed(metric, by_metric[metric], rows.rewards[:, m], columns[by_metric[metric]])
    reward = np.stack([columns[by_metric[metric]].values for metric in log.rewards], axis=1)
    read_at, rewarded = read_at_of(log), rows.rewards != 0.0
    if window is None:
        age = None if read_at is None else read_at - shown
        return rows if age is None else replace(rows, ages=RewardAges(reward, age, 0, np.zeros(0), rewarded))
    late = (reward > window) & rewarded
    ages = RewardAges(reward, None, chunk.left_out, late.sum(axis=0).astype(np.float64), rewarded)
    return replace(_without(rows, late), ages=ages)


def _without(rows: Rows, late: npt.NDArray[np.bool_]) -> Rows:
    """The rows with a reward of 0 where it came too late, in all slots."""
    if not late.any():
        return rows
    slots = {
        m: Ragged.packed(np.where(np.repeat(late[:, m], lists.lengths), 0.0, lists.flat()), lists.lengths)
        for m, lists in rows.slots.items()
    }
    return rows.with_rewards(np.where(late, 0.0, rows.rewards), slots)


def _ages(log: LogColumns, name: str, batch: pa.RecordBatch, shown: Ints) -> Instants:
    """How long after its display each reward of a column came."""
    return ages_as_given(name, batch[name]) if log.reward_time is None else ages_by_time(name, batch[name], shown)


def days_of_displays(log: LogColumns, batch: pa.RecordBatch) -> pa.DictionaryArray | None:
    """The day of each display as text: of [log] date, null where it is, else the day in UTC of [log] time. None where
    nothing says it."""
    if log.date is not None:
        return coded_days(plain(batch[log.date])) if is_day(batch[log.date].type) else None
    if log.time is None:
        return None
    return coded_days(pa.array(instants(log.time, batch[log.time]).values).cast(pa.timestamp("us")))

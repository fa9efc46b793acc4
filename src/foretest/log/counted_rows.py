"""Which rows of a log count: none that a treatment was trained on, and none whose rewards may still come."""

from __future__ import annotations

from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import filled, to_arrow, to_numpy
from foretest.displays.ragged import takeable
from foretest.errors import RowFault
from foretest.log.reward_ages import days_of_displays, old_enough
from foretest.settings.log_columns import LogColumns
from foretest.settings.settings import Settings
from foretest.sources import Chunk

_Mask = npt.NDArray[np.bool_]


def counted_rows(chunk: Chunk, settings: Settings) -> Chunk:
    """The chunk without displays up to the day that a treatment was trained until, and without those younger than the
    window when the log was read."""
    if chunk.places is not None:
        return chunk
    is_new = None if settings.trained_until is None else is_after(settings.trained_until, settings.log, chunk.batch)
    is_old = old_enough(chunk.batch, settings)
    if is_new is None and is_old is None:
        return chunk
    counts = np.ones(chunk.batch.num_rows, np.bool_)
    for mask in (is_new, is_old):
        counts &= True if mask is None else mask
    trained = 0 if is_new is None else int(np.count_nonzero(~is_new))
    places, batch = np.flatnonzero(counts), chunk.batch
    if len(places) < len(counts):
        arrays = [takeable(column) for column in batch.columns]
        batch = pa.RecordBatch.from_arrays(arrays, batch.schema.names).filter(to_arrow(counts))
    return chunk._replace(
        batch=batch, places=places, trained=trained, left_out=len(counts) - len(places) - trained
    )  # fmt: skip


def is_after(until: str, log: LogColumns, batch: pa.RecordBatch) -> _Mask:
    """Which displays are of a later day; a row without a day is a fault."""
    column = log.date or log.time
    assert column is not None
    days = days_of_displays(log, batch)
    assert days is not None  # a column of another type is refused before
    labels, last = days.dictionary.to_pylist(), date.fromisoformat(until)
    codes = to_numpy(filled(days.indices, len(labels)))
    later = np.array([_is_later(label, last) for label in [*labels, None]])[codes]
    unknown = np.flatnonzero(later < 0)
    if len(unknown):
        label = [*labels, None][codes[unknown[0]]]
        what = "the day is null" if label is None else f"the day {label!r} is no date as 2024-03-03"
        raise RowFault(
            "day-unknown", column, unknown, what,
            f"Rows up to trained_until = {until} are left out, and nobody knows whether this is one: fill it, or leave"
            " the row out.",
        )  # fmt: skip
    return np.asarray(later == 1)


def _is_later(label: str | None, last: date) -> int:
    """1 if it is, 0 if it is not, −1 where that is not known."""
    try:
        return int(date.fromisoformat(label or "") > last)
    except ValueError:
        return -1

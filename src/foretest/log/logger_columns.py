"""Which logger showed each row, and on which day, as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import to_numpy
from foretest.displays.days import days_of_rows
from foretest.displays.keys import hash_keys
from foretest.displays.ragged import plain
from foretest.errors import RowFault, nearest
from foretest.log.column_values import label_codes
from foretest.policies.logging_mixture import ALL, DAY, LOGGER, Shares
from foretest.settings.log_columns import LogColumns


def logger_columns(batch: pa.RecordBatch, log: LogColumns, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """The columns that `LoggingMixture` reads of a display: its logger's number among `names`, its day's hash. None
    where no column says who showed a row."""
    if log.logger is None:
        return {}
    if log.date is None:
        day = np.full(batch.num_rows, hash_day(ALL))
    else:
        day = hash_keys(log.date, days_of_rows(log.date, batch[log.date]))
    return {LOGGER: logger_codes(log.logger, batch[log.logger], names), DAY: day}


def logger_codes(column: str, array: pa.Array, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The place of each row's logger among `names`; a name that is not there is a fault of the row."""
    array = plain(array)
    if array.null_count:
        rows = np.flatnonzero(to_numpy(array.is_null()))
        raise RowFault("null", column, rows, "the value is null, so that nobody knows which policy showed the row",
                       "Every row needs the name of a [[control]] table: fill it, or leave the row out.")  # fmt: skip
    codes = label_codes(array, names)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        label = str(array[int(unknown[0])].as_py())
        raise RowFault(
            "logger-unknown", column, unknown, f"the logger '{label}' is none of the controls ({', '.join(names)})",
            f"Add a [[control]] table named '{label}', or leave its rows out.{nearest(label, names)}",
        )  # fmt: skip
    return codes


def hash_day(day: str) -> np.uint64:
    """What a day is known by.

    >>> hex(hash_day("2024-05-01"))
    '0xf4dc96b714de569c'
    """
    return np.uint64(hash_keys("day", pa.array([day]))[0])


def shares_of(rows: Mapping[tuple[str, int], float], loggers: int) -> Shares:
    """Shares from rows by (day, logger).

    >>> shares_of({("mon", 0): 3, ("mon", 1): 1, ("tue", 0): 1}, 2).to_dict()
    {'mon': [3, 1], 'tue': [1, 0]}
    """
    names = sorted({day for day, _ in rows})
    hashes = np.array([hash_day(day) for day in names], np.uint64)
    places = {day: at for at, day in enumerate(names)}
    whole = all(float(count).is_integer() for count in rows.values())  # displays that rows stand for need not be
    table = np.zeros((len(names), loggers), np.int64 if whole else np.float64)
    for (day, code), count in rows.items():
        table[places[day], code] = count
    order = np.argsort(hashes)
    return Shares(hashes[order], tuple(names[i] for i in order), table[order])

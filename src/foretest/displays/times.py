"""Columns of times, in whole microseconds since 1970 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import filled, to_numpy
from foretest.displays.ragged import is_text, plain
from foretest.errors import RowFault

Ints = npt.NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # seconds since 1970 in which Python writes years 1 to 9999
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Instants(NamedTuple):
    """A column of times in microseconds since 1970 in UTC; 0 where there is none."""

    values: Ints
    is_there: npt.NDArray[np.bool_]


def is_time(kind: pa.DataType) -> bool:
    """Can a column of this type have times: timestamps, or text that is read as ISO 8601?"""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_timestamp(kind)) or is_text(kind)


def instants(name: str, array: pa.Array) -> Instants:
    """The times of a column, to the microsecond; without a time zone they are in UTC.

    >>> instants("ts", pa.array(["1970-01-01T00:00:01", None, "1970-01-01T01:00:01.5+01:00"])).values.tolist()
    [1000000, 0, 1500000]
    """
    array = plain(array)
    is_there = to_numpy(array.is_valid())
    if not pa.types.is_timestamp(array.type):
        array = _parsed(name, array.cast(pa.string()))
    stored = np.asarray(to_numpy(filled(array.cast(pa.int64()), 0)))
    seconds = stored // _PER_SECOND[array.type.unit]
    wrong = np.flatnonzero((seconds < _FIRST) | (seconds > _LAST))
    if len(wrong):
        raise RowFault("time-range", name, wrong, "the time is not within the years 1 to 9999",
                       "Check the unit of the times: no time is written as null.")  # fmt: skip
    values = filled(array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.int64()), 0)
    return Instants(np.asarray(values), is_there)


def _parsed(name: str, texts: pa.Array) -> pa.Array:
    """Text as timestamps: at once where all rows are written alike, else one by one."""
    for zone in (None, "UTC"):
        try:
            return texts.cast(pa.timestamp("us", zone))
        except pa.ArrowInvalid:
            continue
    values: list[int | None] = []
    wrong = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else _microseconds(datetime.fromisoformat(text)))
        except ValueError:
            values.append(None)
            wrong.append(row)
    if wrong:
        raise RowFault("time-unreadable", name, np.array(wrong), f"{texts[wrong[0]].as_py()!r} is no time",
                       "Times are timestamps, or text as in 2026-03-08T14:30:00.")  # fmt: skip
    return pa.array(values, pa.int64()).cast(pa.timestamp("us", "UTC"))


def _microseconds(moment: datetime) -> int:
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (known - _EPOCH) // timedelta(microseconds=1)

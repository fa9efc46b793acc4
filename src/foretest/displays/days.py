"""The day of each row, from a date column of any type."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime

import pyarrow as pa

from foretest.displays.arrow_functions import cast, dictionary_encode, replace_in_text
from foretest.displays.keys import refuse_nulls
from foretest.displays.ragged import is_text, plain
from foretest.errors import BadInput


def is_day(kind: pa.DataType) -> bool:
    """Can a column of this type give the day of a row?"""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_text(kind) or any(
        test(kind) for test in (pa.types.is_date, pa.types.is_timestamp, pa.types.is_integer)
    )  # fmt: skip


def days_of_rows(name: str, array: pa.Array) -> pa.DictionaryArray:
    """The day of each row as text: for times the day in UTC, else the value as it is. A day may have several codes."""
    array = plain(array)
    refuse_nulls(name, array)
    return coded_days(array)


def coded_days(array: pa.Array) -> pa.DictionaryArray:
    """The day of each row of a plain array as text; null where the row has none."""
    if pa.types.is_timestamp(array.type):  # the stored number is in UTC, also with a time zone
        array = cast(array, pa.timestamp(array.type.unit))
    if pa.types.is_temporal(array.type):
        array = cast(array, pa.date32(), safe=False)
    coded = dictionary_encode(array)
    text = cast(coded.dictionary, pa.string())
    days = replace_in_text(text, r"^(\d{4}-\d{2}-\d{2})[T ].*$", r"\1")
    return pa.DictionaryArray.from_arrays(coded.indices, days)


def written_day(name: str, value: object) -> str:
    """A day that was given as a date or as text, as text.

    >>> written_day("trained_until", date(2024, 3, 3)), written_day("trained_until", "20240303")
    ('2024-03-03', '2024-03-03')
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and _is_iso(value):
        return date.fromisoformat(value).isoformat()
    raise BadInput(f"{name} = {value!r}: expected a day, as in {name} = 2024-03-03.")


def first_and_last(labels: Iterable[str]) -> list[str]:
    """The first and the last of the labels that are days; empty where none is.

    >>> first_and_last(["2026-03-02", "a day", "2026-03-01"])
    ['2026-03-01', '2026-03-02']
    """
    days = sorted({label for label in labels if _is_iso(label)})
    return [days[0], days[-1]] if days else []


def _is_iso(label: str) -> bool:
    try:
        return bool(date.fromisoformat(label))
    except ValueError:
        return False

"""Context features as columns of numbers: text as indicators of its frequent values, gaps as a feature of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.kept_rows import Column, Columns
from foretest.displays.arrow_functions import cast, dictionary_encode, take
from foretest.displays.arrow_numbers import filled, to_arrow, to_numpy
from foretest.displays.batch import Displays, Floats
from foretest.displays.column_types import is_text_key
from foretest.displays.keys import hash_keys
from foretest.displays.ragged import Ragged, is_text, plain, split_lists, takeable
from foretest.log.column_values import features_of
from foretest.log.reward_ages import days_of_displays
from foretest.settings.log_columns import LogColumns

MOST_VALUES = 10  # of a text feature, the most frequent
FEWEST_ROWS = 100  # with a value, or with a gap
NUMBER, TEXT = "number", "text"  # kinds of kept columns, each of a feature
DAY = "day"  # the column of a row's day
MOST_DAYS = 100
ITEMS, HASHED_ITEMS = "items", "hashed items"  # ids of candidates: integers, or the hashes of texts
NUMBER_IDS, TEXT_IDS = "number ids", "text ids"  # of displays, else of units: what a finding names first
FIRST_IDS = 3  # that it names
_BYTES = 24  # of a text that are kept
_ID_BYTES = 40  # of an id: a UUID has 36
_MISSING = b"\xff" * _BYTES  # no UTF-8 text
_OUTLIERS = 0.01  # numbers are clipped to their quantiles at this level and its complement


class Feature(NamedTuple):
    """A function of the context: one number per display."""

    name: str
    values: Floats


def sampled_context(
    context: pa.RecordBatch, rows: npt.NDArray[np.int64], displays: Displays, log: LogColumns
) -> tuple[Columns, Displays]:
    """The features and ids of sampled rows of a batch as plain arrays, and their displays with the ids of
    candidates."""
    features = [name for name in log.contexts if name in context.schema.names]
    sampled = {name: take(takeable(context[name]), to_arrow(rows)) for name in features}
    columns = _plain_columns(features_of(pa.RecordBatch.from_pydict(sampled), tuple(features)))
    when = log.date or log.time
    if when in context.schema.names:
        days = days_of_displays(log, pa.RecordBatch.from_pydict({when: take(takeable(context[when]), to_arrow(rows))}))
        if days is not None:
            columns[DAY] = _packed(cast(days, pa.string()))
    names = log.id or log.unit
    if names in context.schema.names:
        columns |= _ids(plain(take(takeable(context[names]), to_arrow(rows))))
    if log.candidates is None or log.candidates not in context.schema.names:
        return columns, displays
    name, ids = _item_ids(log.candidates, context[log.candidates], rows)
    return columns, replace(displays, columns={**displays.columns, ids_column(name): ids})


def _ids(array: pa.Array) -> Columns:
    """The ids of rows: integers as they are, of texts the first 40 bytes."""
    if not is_text_key(array.type):
        return {NUMBER_IDS: np.array(to_numpy(array))}
    text = cast(array, pa.large_string())
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    table = np.zeros((len(text), _ID_BYTES), np.uint8)
    if data:
        letters, lengths = np.frombuffer(data, np.uint8), np.minimum(np.diff(ends), _ID_BYTES)
        for letter in range(int(lengths.max(initial=0))):
            table[:, letter] = letters[np.minimum(ends[:-1] + letter, len(letters) - 1)] * (letter < lengths)
    return {TEXT_IDS: table.view(np.uint64)}


def first_ids(columns: Columns, rows: npt.NDArray[np.int64], log: LogColumns) -> str:
    """The ids of the first of some sampled rows, or their units where rows have none, as a clause; empty where neither
    is known."""
    some = rows[:FIRST_IDS]
    if NUMBER_IDS in columns:
        names = [str(number) for number in columns[NUMBER_IDS][some].tolist()]
    elif TEXT_IDS in columns:
        names = [_quoted(row.tobytes()) for row in columns[TEXT_IDS][some]]
    else:
        return ""
    return f"first ids {', '.join(names)}" if log.id else f"first of '{log.unit}': {', '.join(dict.fromkeys(names))}"


def _quoted(data: bytes) -> str:
    """A text as JSON, with a mark where it was cut."""
    text = data.rstrip(b"\0").decode(errors="ignore")
    return json.dumps(f"{text}…" if data[-1] else text, ensure_ascii=False)


def ids_column(name: str) -> str:
    """The column of a display that has the ids of candidates: a name that no column of a log has."""
    return f"foretest: {name}"


def _item_ids(name: str, array: pa.Array, rows: npt.NDArray[np.int64]) -> tuple[str, Ragged]:
    """The ids of the candidates of some rows, and whether they are ITEMS or HASHED_ITEMS."""
    values, starts, lengths = split_lists(array)
    wanted = Ragged.packed(np.empty(0), lengths[rows])  # their lists one after the other
    places = np.repeat(starts[rows] - wanted.starts, wanted.lengths) + np.arange(int(wanted.lengths.sum()))
    values = takeable(values).take(to_arrow(places))
    if is_text_key(values.type):
        return HASHED_ITEMS, Ragged(hash_keys(name, values).view(np.int64), wanted.starts, wanted.lengths)
    ids = to_numpy(plain(values))
    ids = ids.view(np.int64) if ids.dtype == np.uint64 else ids.astype(np.int64)
    return ITEMS, Ragged(ids, wanted.starts, wanted.lengths)


def _plain_columns(features: pa.RecordBatch) -> Columns:
    """Features (float64 or large_string) as plain arrays: numbers as they are, the first 24 bytes of text."""
    columns: Columns = {}
    for name in features.schema.names:
        array = features[name]
        if is_text(array.type):
            columns[TEXT, name] = _packed(array)
        else:
            columns[NUMBER, name] = np.asarray(to_numpy(array), np.float64)
    return columns


def _packed(array: pa.Array) -> npt.NDArray[np.uint64]:
    """The first 24 bytes of each text as three integers; texts that share them are one value."""
    coded = dictionary_encode(array)
    words = [_MISSING if t is None else t.encode()[:_BYTES].ljust(_BYTES, b"\0") for t in coded.dictionary.to_pylist()]
    table = np.frombuffer(b"".join([*words, _MISSING]), np.uint64).reshape(-1, _BYTES // 8)
    codes = to_numpy(filled(coded.indices, len(words)))
    return np.asarray(table[codes])


def _unpacked(data: bytes) -> str:
    return "missing" if data == _MISSING else repr(data.rstrip(b"\0").decode(errors="ignore"))


def is_context(name: Column) -> bool:
    """Is it the name of a column with a feature of the context?"""
    return isinstance(name, tuple) and name[0] in (NUMBER, TEXT)


def features_that_vary(columns: Mapping[Column, Any]) -> list[Feature]:
    """The features that vary: numbers within their outer percentiles, indicators of gaps and of frequent texts."""
    features: list[Feature] = []
    for name, column in columns.items():
        if is_context(name):
            kind, feature = str(name[0]), str(name[1])
            features += _numbers(feature, column) if kind == NUMBER else _texts(feature, column, MOST_VALUES)
        elif name == DAY:
            features += _texts(DAY, column, MOST_DAYS)
    return [f for f in features if f.values.std() > 1e-12 * (1.0 + np.abs(f.values).max())]


def _numbers(name: str, column: Floats) -> list[Feature]:
    """A number within its outer percentiles, gaps filled by its mean, and an indicator of gaps where there are many."""
    known = np.isfinite(column)
    if known.sum() < FEWEST_ROWS:
        return []
    low, high = np.quantile(column[known], [_OUTLIERS, 1.0 - _OUTLIERS])
    # both percentiles of a rare flag are the same number, to which clipping would flatten it
    clipped = np.clip(column, low, high) if low < high else column
    features = [Feature(name, np.where(known, clipped, clipped[known].mean()))]
    if len(column) - int(known.sum()) >= FEWEST_ROWS:
        features.append(Feature(f"{name} missing", (~known).astype(np.float64)))
    return features


def texts_of(column: npt.NDArray[np.uint64]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The different values of a text, and which of them each row has."""
    codes, values = _coded(column)
    return [data.rstrip(b"\0").decode(errors="ignore") for data in values], codes.astype(np.int64)


def _coded(column: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[Any], list[bytes]]:
    buffer = pa.py_buffer(np.ascontiguousarray(column))
    coded = dictionary_encode(pa.Array.from_buffers(pa.binary(_BYTES), len(column), [None, buffer]))
    return to_numpy(coded.indices), coded.dictionary.to_pylist()


def _texts(name: str, column: npt.NDArray[np.uint64], most: int) -> list[Feature]:
    """Indicators of the `most` frequent values of a text."""
    codes, values = _coded(column)
    counts = np.bincount(codes)
    frequent = [v for v in np.argsort(-counts, kind="stable")[:most].tolist() if counts[v] >= FEWEST_ROWS]
    return [Feature(f"{name} = {_unpacked(values[v])}", (codes == v).astype(np.float64)) for v in frequent]

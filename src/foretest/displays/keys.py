"""Units, ids and days as one hash: XXH64 of a key's value, whatever its type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from foretest.displays.arrow_numbers import to_numpy
from foretest.displays.batch import Hashes
from foretest.displays.ragged import plain
from foretest.errors import RowFault
from foretest.kernels.hashing import hash_integers, hash_strings


def refuse_nulls(name: str, array: pa.Array) -> None:
    """Refuse rows whose value is null."""
    if array.null_count:
        rows = np.flatnonzero(to_numpy(array.is_null()))
        raise RowFault("null", name, rows, "the value is null", "Every row needs one: fill it, or leave the row out.")


def hash_keys(name: str, array: pa.Array) -> Hashes:
    """XXH64 of each key: integers as int64, strings as UTF-8."""
    refuse_nulls(name, array)
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        return hash_keys(name, plain(array))
    if pa.types.is_dictionary(array.type):
        return np.asarray(hash_keys(name, array.dictionary)[to_numpy(array.indices)])
    if pa.types.is_integer(array.type):
        return hash_integers(to_numpy(array))
    text = array.cast(pa.large_string())
    _, offsets, data = text.buffers()
    begin = text.offset
    ends = np.frombuffer(offsets, np.int64)[begin : begin + len(text) + 1]
    return hash_strings(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), ends)  # type: ignore[no-any-return]

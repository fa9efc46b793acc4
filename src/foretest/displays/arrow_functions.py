"""Arrow's functions on arrays, without `pyarrow.compute`.

Importing that writes the documentation of 300 functions, which takes a fourteenth of a small test; methods of arrays
such as `cast` and `take` import it too.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

try:
    from pyarrow._compute import (
        CastOptions,
        DictionaryEncodeOptions,
        ReplaceSubstringOptions,
        TakeOptions,
        call_function,
    )
except ImportError:  # a version that keeps them elsewhere: the public place has them too
    from pyarrow.compute import (
        CastOptions,
        DictionaryEncodeOptions,
        ReplaceSubstringOptions,
        TakeOptions,
        call_function,
    )


def cast(array: pa.Array, kind: pa.DataType, *, safe: bool = True) -> pa.Array:
    """The array as another type; unsafe: what does not fit is cut.

    >>> cast(pa.array([True, False]), pa.float64()).to_pylist()
    [1.0, 0.0]
    """
    return call_function("cast", [array], CastOptions.safe(kind) if safe else CastOptions.unsafe(kind))


def dictionary_encode(array: pa.Array) -> Any:
    """The array as codes of its different values.

    >>> dictionary_encode(pa.array(["b", "a", "b"])).indices.to_pylist()
    [0, 1, 0]
    """
    return call_function("dictionary_encode", [array], DictionaryEncodeOptions("mask"))


def take(array: pa.Array, rows: pa.Array) -> pa.Array:
    """The array's values at some places.

    >>> take(pa.array([5, 6, 7]), pa.array([2, 0])).to_pylist()
    [7, 5]
    """
    return call_function("take", [array, rows], TakeOptions(boundscheck=True))


def replace_in_text(array: pa.Array, pattern: str, replacement: str) -> pa.Array:
    """Texts in which what matches a regular expression is replaced.

    >>> replace_in_text(pa.array(["2026-03-01 12:00"]), " .*", "").to_pylist()
    ['2026-03-01']
    """
    return call_function("replace_substring_regex", [array], ReplaceSubstringOptions(pattern, replacement))

"""Numbers between Arrow and NumPy, without a copy.

PyArrow's own conversions import pandas where it is installed, which takes as long as a small test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: numbers that NumPy calls otherwise than Arrow; PyArrow's own table of types needs pandas before PyArrow 26
_NUMPY = {"halffloat": "float16", "float": "float32", "double": "float64"}


def to_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """The values of an Arrow array; of numbers without nulls the same memory, which may not be written to.

    >>> to_numpy(pa.array([1.5, 2.5])[1:]).tolist(), to_numpy(pa.array([True, False, True])[1:]).tolist()
    ([2.5], [False, True])
    """
    kind, n = array.type, len(array)
    if array.null_count == 0 and n:
        data = array.buffers()[1]
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            size = np.dtype(_NUMPY.get(str(kind), str(kind)))
            return np.frombuffer(data, size, n, array.offset * size.itemsize)
        if pa.types.is_boolean(kind):
            bits = np.frombuffer(data, np.uint8, (array.offset + n + 7) // 8)
            return np.unpackbits(bits, count=array.offset + n, bitorder="little")[array.offset :].view(np.bool_)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def filled(array: pa.Array, value: Any) -> pa.Array:
    """An array with a value in place of null."""
    return array.fill_null(value) if array.null_count else array


def to_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """An Arrow array of numbers or of yes and no; numbers keep their memory.

    >>> to_arrow(np.array([3, 1])).to_pylist(), to_arrow(np.array([True, False])).to_pylist()
    ([3, 1], [True, False])
    """
    flat = np.ascontiguousarray(values)
    if flat.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(flat), [None, pa.py_buffer(np.packbits(flat, bitorder="little"))])
    return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), len(flat), [None, pa.py_buffer(flat)])

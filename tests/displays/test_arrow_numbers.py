"""Numbers between Arrow and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from foretest.displays.arrow_numbers import to_numpy

KINDS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


class _WithoutPandas:
    """An Arrow type in older versions of PyArrow, whose table of NumPy's types needs pandas."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __str__(self) -> str:
        return str(self.kind)

    def __getattr__(self, name: str) -> Any:
        if name == "to_pandas_dtype":
            raise ModuleNotFoundError("No module named 'pandas'")
        return getattr(self.kind, name)


class _Array:
    def __init__(self, array: Any) -> None:
        self.array, self.type = array, _WithoutPandas(array.type)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __len__(self) -> int:
        return len(self.array)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_number_without_pandas(kind: str) -> None:
    values = np.array([1, 2, 3], kind)
    shared = to_numpy(_Array(pa.array(values)[1:]))
    assert shared.dtype == values.dtype
    assert shared.tolist() == [2, 3]

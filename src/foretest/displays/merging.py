"""What several readers of one log have counted, made one: each field says how it is merged, no class adds itself up.

    @dataclass
    class Times:
        rows: int = 0
        latest: int | None = field(default=None, metadata=by(largest))

Numbers and arrays are added, from the first to the last, where nothing else is declared; a shorter array ends in zeros.
Mappings are merged key by key, dataclasses and named tuples field by field, and a class that can do no more than add up
all of its like by itself has a class method `total`. A field that is None anywhere is None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
#: of the values of one field, in the order of the parts; `max` and `any` are rules too
Rule = Callable[[Sequence[Any]], Any]

_RULE = "merge"


def by(rule: Rule) -> dict[str, Rule]:
    """The metadata of a field that is merged by a rule of its own."""
    return {_RULE: rule}


def merged(parts: Sequence[T]) -> T:
    """All parts as one; they stay as they are.

    >>> merged([{"a": 1, "b": np.array([1.0])}, {"a": 2, "b": np.array([2.0, 3.0])}])
    {'a': 3, 'b': array([3., 3.])}
    """
    return cast(T, _merged(parts))


def _merged(parts: Sequence[Any]) -> Any:
    example, kind = parts[0], type(parts[0])
    if len(parts) == 1:
        return example
    if any(part is None for part in parts):
        return None
    if isinstance(vars(kind).get("total"), classmethod):
        return kind.total(parts)
    if dataclasses.is_dataclass(kind):
        return kind(**{f.name: _merged_field(f, parts) for f in dataclasses.fields(kind) if f.init})
    if isinstance(example, tuple) and hasattr(kind, "_fields"):
        return kind(*map(_merged, zip(*parts, strict=True)))
    if isinstance(example, Mapping):
        return _by_key(parts)
    if isinstance(example, np.ndarray) and example.dtype.kind in "iuf":
        return _sum_of_arrays(parts)
    if isinstance(example, int | float | np.integer | np.floating) and not isinstance(example, bool):
        return sum(parts[1:], example)
    raise TypeError(f"nothing says how values of {kind.__name__} are merged: declare a rule")


def first(values: Sequence[T]) -> T:
    """The rule of what is the same in all parts."""
    return values[0]


def largest(values: Iterable[Any]) -> Any:
    """The largest of the values that are there, or None."""
    return max((value for value in values if value is not None), default=None)


def smallest(values: Iterable[Any]) -> Any:
    """The smallest of the values that are there, or None."""
    return min((value for value in values if value is not None), default=None)


def joined(values: Iterable[Iterable[T]]) -> list[T]:
    """The items of all lists, in their order."""
    return [item for items in values for item in items]


def _merged_field(field: dataclasses.Field[Any], parts: Sequence[Any]) -> Any:
    rule = field.metadata.get(_RULE, _merged)
    return rule([getattr(part, field.name) for part in parts])


def _by_key(parts: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: _merged([part[key] for part in parts if key in part]) for key in keys}


def _sum_of_arrays(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Σ arrays; each is taken to end in zeros, along every axis."""
    shape = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))
    if arrays[0].shape == shape:
        total = arrays[0].astype(np.result_type(*arrays))
    else:
        total = np.zeros(shape, np.result_type(*arrays))
        total[tuple(map(slice, arrays[0].shape))] = arrays[0]
    for array in arrays[1:]:
        total[tuple(map(slice, array.shape))] += array
    return total

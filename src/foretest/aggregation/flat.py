"""Aggregates as a table of named arrays: one walk for every dataclass, dict, list and array in them.

A table has one row per array (its name is the path to it) and one, named "", whose text is the tree that has them as
leaves. Nothing here knows a field by name, so a field that is added to `Aggregates` needs no line here; nothing that
is read is ever run or unpickled: classes come from the annotations of `Aggregates`, never from the file.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.aggregation.aggregates import OPTIONAL, Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import KeptRows
from foretest.aggregation.quantities import Quantity, quantity_of
from foretest.weights.weightings import Weighting

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("dtype", pa.string()),  # in memory
        ("stored", pa.string()),  # in `data`: a narrower type where that loses nothing
        ("shape", pa.list_(pa.int64())),
        ("data", pa.large_binary()),
    ]
)
_TREE = ""

Array = npt.NDArray[Any]


class Flat(NamedTuple):
    """The tree of a nested structure, and its arrays by name."""

    tree: Any
    arrays: dict[str, Array]


def flatten(aggregates: Aggregates) -> Flat:
    """Take aggregates apart; of their plan only the place in the tree is kept."""
    arrays: dict[str, Array] = {}
    return Flat(_node(aggregates, "", arrays), arrays)


def _node(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """The tree of a value, whose arrays are added to `arrays` under names that begin with `name`."""
    if isinstance(value, np.ndarray):
        while name in arrays:  # two keys that read alike
            name += "'"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, FoldPlan):
        return {"plan": True}
    if isinstance(value, KeptRows):
        value.columns()  # in order, as one part: what a reader may take the head of
    if type(value) in _classes().values():
        given = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        optional = {f.name for f in dataclasses.fields(value) if f.metadata == OPTIONAL and given[f.name] is None}
        fields = {key: _node(item, f"{name}/{key}", arrays) for key, item in given.items() if key not in optional}
        return {"class": type(value).__name__, "fields": fields}
    if isinstance(value, Mapping):
        return {"map": [[_plain(key), _node(item, f"{name}/{_word(key)}", arrays)] for key, item in value.items()]}
    if isinstance(value, list):
        return {"list": [_node(item, f"{name}/{i}", arrays) for i, item in enumerate(value)]}
    plain = _plain(value)
    if isinstance(plain, dict) and "object" in plain and not isinstance(value, Weighting):
        raise TypeError(f"{name} is {plain['object']}, which is neither an array nor a number")
    return plain


def restore(flat: Flat, plan: FoldPlan) -> Aggregates:
    """Put aggregates together again, under a plan whose weightings are theirs."""
    weightings = {repr(weighting): weighting for weighting in (*plan.weightings, *plan.point_weightings)}

    def build(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        [(kind, content), *_] = node.items()
        if kind == "array":
            return flat.arrays[content]
        if kind == "plan":
            return plan
        if kind == "class":
            return _classes()[content](**{name: build(item) for name, item in node["fields"].items()})
        if kind == "map":
            return {build(key): build(item) for key, item in content}
        if kind == "list":
            return [build(item) for item in content]
        if kind == "tuple":
            return tuple(build(item) for item in content)
        if kind == "quantity":
            return quantity_of(content)
        return float(content) if kind == "float" else weightings[content]

    aggregates = build(flat.tree)
    if not isinstance(aggregates, Aggregates):
        raise TypeError(f"a {type(aggregates).__name__} where aggregates were expected")
    return aggregates.under(plan)


def to_batch(aggregates: Aggregates) -> pa.RecordBatch:
    """Aggregates as one Arrow record batch, so that a task can send its sums as rows."""
    flat = flatten(aggregates)
    return batch_of([tree_row(flat.tree), *(array_row(name, array) for name, array in flat.arrays.items())])


def from_batch(batch: pa.RecordBatch, plan: FoldPlan) -> Aggregates:
    """The aggregates that `to_batch` made a batch of, folded under the same plan."""
    return restore(from_batches([batch]), plan)


Row = dict[str, Any]


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    """Rows of a table as one batch."""
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def tree_row(tree: Any) -> Row:
    """The row of the tree."""
    text = json.dumps(tree, allow_nan=False).encode()
    return {"name": _TREE, "dtype": "json", "stored": "json", "shape": [], "data": text}


def array_row(name: str, array: Array) -> Row:
    """The row of an array, or of a piece of it along its first axis: pieces of one name follow each other."""
    narrow = _narrow(array)
    dtype, stored = (a.dtype.newbyteorder("<").str for a in (array, narrow))
    data = narrow.astype(stored, copy=False).tobytes()
    return {"name": name, "dtype": dtype, "stored": stored, "shape": list(array.shape), "data": data}


def from_batches(batches: Iterable[pa.RecordBatch]) -> Flat:
    """The tree and the arrays of a table, pieces joined."""
    tree: Any = None
    pieces: dict[str, list[Array]] = {}
    for row in _rows(batches):
        if row.name == _TREE:
            tree = json.loads(bytes(row.data))
        else:
            array = np.frombuffer(row.data, _numeric(row.stored)).reshape(row.shape)
            pieces.setdefault(row.name, []).append(array.astype(_numeric(row.dtype)))
    arrays = {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in pieces.items()}
    return Flat(tree, arrays)


class _StoredRow(NamedTuple):
    name: str
    dtype: str
    stored: str
    shape: list[int]
    data: pa.Buffer


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[_StoredRow]:
    for batch in batches:
        names, dtypes, stored, shapes = (batch[name].to_pylist() for name in ("name", "dtype", "stored", "shape"))
        for i, data in enumerate(batch["data"]):
            yield _StoredRow(names[i], dtypes[i], stored[i], shapes[i], data.as_buffer())


def _numeric(name: str) -> np.dtype[Any]:
    """The type of that name; only numbers and truth values are read."""
    dtype = np.dtype(name)
    if dtype.kind not in "biuf":
        raise TypeError(f"an array of {dtype}")
    return dtype


_NARROW: tuple[Any, ...] = (np.uint8, np.uint16, np.uint32, np.int8, np.int16, np.int32, np.float32)


def _narrow(array: Array) -> Array:
    """The numbers in the first narrower type that has each of them exactly, to the sign of a zero."""
    if array.dtype.kind not in "iuf" or not array.size:
        return array
    low, high = array.min(), array.max()
    whole = array.dtype.kind != "f" or bool((array == np.trunc(array)).all())
    for dtype in _NARROW:
        if np.dtype(dtype).itemsize >= array.dtype.itemsize:
            continue
        if np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            if not (whole and limits.min <= low and high <= limits.max):
                continue
        elif array.dtype.kind != "f":
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = array.astype(dtype)
            if narrow.astype(array.dtype).tobytes() == array.tobytes():
                return narrow
    return array


def _plain(value: Any) -> Any:
    """A key or a scalar as JSON; an object by its repr, to be looked up among the weightings of a plan."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, Quantity):
        return {"quantity": value.name}
    if isinstance(value, tuple):
        return {"tuple": [_plain(item) for item in value]}
    return {"object": repr(value)}


def _word(key: Any) -> str:
    """A key in the name of an array."""
    if isinstance(key, Quantity):
        return key.name
    return ",".join(_word(item) for item in key) if isinstance(key, tuple) else str(key)


@cache
def _classes() -> dict[str, type[Any]]:
    """`Aggregates` and the dataclasses that its annotations reach, by name."""
    classes: dict[str, type[Any]] = {}

    def visit(kind: Any) -> None:
        ours = isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind is not FoldPlan
        if ours and kind.__name__ not in classes:
            classes[kind.__name__] = kind
            for hint in get_type_hints(kind).values():
                visit(hint)
        for argument in get_args(kind):
            visit(argument)

    visit(Aggregates)
    return classes

"""Aggregates as a table of named arrays: one walk for every dataclass, dict, list and array in them.

A table has a row for each array (its name is the path to it) and one, named "", whose text is the tree that holds them
together. Nothing here knows a field by name, so a field that is added to `Aggregates` needs no line here; nothing that
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

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import KeptRows

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
    """Take aggregates apart; of their plan only the place is kept."""
    arrays: dict[str, Array] = {}

    def walk(value: Any, name: str) -> Any:
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
            return {
                "class": type(value).__name__,
                "fields": {f.name: walk(getattr(value, f.name), f"{name}/{f.name}") for f in dataclasses.fields(value)},
            }
        if isinstance(value, Mapping):
            return {"map": [[_plain(key), walk(item, f"{name}/{_word(key)}")] for key, item in value.items()]}
        if isinstance(value, list):
            return {"list": [walk(item, f"{name}/{i}") for i, item in enumerate(value)]}
        plain = _plain(value)
        if isinstance(plain, dict) and "object" in plain:
            raise TypeError(f"{name} holds {plain['object']}, which is neither array nor number")
        return plain

    return Flat(walk(aggregates, ""), arrays)


def restore(flat: Flat, plan: FoldPlan) -> Aggregates:
    """Put aggregates together again, under a plan whose weightings are theirs."""
    known = {repr(weighting): weighting for weighting in (*plan.weightings, *plan.point_weightings)}

    def build(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        [kind, *_] = node
        if kind == "array":
            return flat.arrays[node["array"]]
        if kind == "plan":
            return plan
        if kind == "class":
            return _classes()[node["class"]](**{name: build(item) for name, item in node["fields"].items()})
        if kind == "map":
            return {build(key): build(item) for key, item in node["map"]}
        if kind == "list":
            return [build(item) for item in node["list"]]
        if kind == "tuple":
            return tuple(build(item) for item in node["tuple"])
        if kind == "float":
            return float(node["float"])
        return known[node["object"]]

    answer = build(flat.tree)
    if not isinstance(answer, Aggregates):
        raise TypeError(f"a {type(answer).__name__} where aggregates were expected")
    return answer.under(plan)


def to_batch(aggregates: Aggregates) -> pa.RecordBatch:
    """Aggregates as one Arrow record batch, for a task to send its sums as rows."""
    flat = flatten(aggregates)
    return batch_of([tree_row(flat.tree), *(array_row(name, array) for name, array in flat.arrays.items())])


def from_batch(batch: pa.RecordBatch, plan: FoldPlan) -> Aggregates:
    """The aggregates of such a batch, folded under the same plan."""
    return restore(from_batches([batch]), plan)


Row = dict[str, Any]


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def tree_row(tree: Any) -> Row:
    text = json.dumps(tree, allow_nan=False).encode()
    return {"name": _TREE, "dtype": "json", "stored": "json", "shape": [], "data": text}


def array_row(name: str, array: Array) -> Row:
    """One array, or a piece of it along its first axis: pieces of one name follow each other."""
    narrow = _narrow(array)
    dtype, stored = (a.dtype.newbyteorder("<").str for a in (array, narrow))
    data = narrow.astype(stored, copy=False).tobytes()
    return {"name": name, "dtype": dtype, "stored": stored, "shape": list(array.shape), "data": data}


def from_batches(batches: Iterable[pa.RecordBatch]) -> Flat:
    """The tree and the arrays of a table, pieces joined."""
    tree: Any = None
    pieces: dict[str, list[Array]] = {}
    for name, dtype, stored, shape, data in _rows(batches):
        if name == _TREE:
            tree = json.loads(bytes(data))
        else:
            array = np.frombuffer(data, _numeric(stored)).reshape(shape)
            pieces.setdefault(name, []).append(array.astype(_numeric(dtype)))
    return Flat(tree, {name: held[0] if len(held) == 1 else np.concatenate(held) for name, held in pieces.items()})


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, str, str, list[int], pa.Buffer]]:
    for batch in batches:
        names, dtypes, stored, shapes = (batch[name].to_pylist() for name in ("name", "dtype", "stored", "shape"))
        for i, data in enumerate(batch["data"]):
            yield names[i], dtypes[i], stored[i], shapes[i], data.as_buffer()


def _numeric(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.kind not in "biuf":
        raise TypeError(f"an array of {dtype}")
    return dtype


_NARROW: tuple[Any, ...] = (np.uint8, np.uint16, np.uint32, np.int8, np.int16, np.int32, np.float32)


def _narrow(array: Array) -> Array:
    """The same numbers in the first narrower type that holds each of them exactly, to the sign of a zero."""
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
    """A key or a scalar as JSON says it; an object is named, to be found again among those of a plan."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, tuple):
        return {"tuple": [_plain(item) for item in value]}
    return {"object": repr(value)}


def _word(key: Any) -> str:
    return ",".join(_word(item) for item in key) if isinstance(key, tuple) else str(key)


@cache
def _classes() -> dict[str, type[Any]]:
    """`Aggregates` and the dataclasses that its annotations reach, by name."""
    found: dict[str, type[Any]] = {}

    def visit(kind: Any) -> None:
        ours = isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind is not FoldPlan
        if ours and kind.__name__ not in found:
            found[kind.__name__] = kind
            for hint in get_type_hints(kind).values():
                visit(hint)
        for argument in get_args(kind):
            visit(argument)

    visit(Aggregates)
    return found

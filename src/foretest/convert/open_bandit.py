"""The Open Bandit Dataset: one CSV file per behaviour policy and campaign, one row per recommended item and position.

Each row is a display of one item. Its position is a context, not a slot of a ranking: the rows do not say which three
belong together. The policy's probabilities are known of the shown item alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from foretest.background import in_background
from foretest.convert.written import write_converted
from foretest.errors import BadInput, nearest
from foretest.sources.base import refuse_repeated, short
from foretest.stores import Location
from foretest.stores.faults import store_fault

_NEEDED = ("item_id", "position", "click", "propensity_score")
_AFFINITY, _FEATURE = "user-item_affinity_", "user_feature_"


def convert_open_bandit(path: Location, folder: Location, *, replace: bool = False) -> int:
    """Write log.parquet and settings.toml from a CSV file, or from the folder of a policy and campaign; the number of
    displays."""
    source = _csv_file(path)
    names = _column_names(source)
    numbered = [name for name in names if re.fullmatch(rf"{_AFFINITY}\d{{1,9}}", name, re.ASCII)]
    affinity = sorted(numbered, key=lambda name: int(name.removeprefix(_AFFINITY)))
    if not affinity:
        raise BadInput(f"{source}: there is no column '{_AFFINITY}0': the treatment needs a score for each item.")
    features = [name for name in names if name.startswith(_FEATURE)]
    schema = pa.schema([
        ("display_id", pa.int64()), ("ranking", pa.list_(pa.int32())), ("click", pa.float64()),
        ("position", pa.string()), ("propensity", pa.float64()), ("affinity", pa.list_(pa.float32())),
        *((name, pa.string()) for name in features),
    ])  # fmt: skip
    tables = {
        "log": {"rewards": ["click"], "id": "display_id", "ranking": "ranking", "segments": ["position"],
                "features": ["position", *features]},
        "control": {"policy": "logged", "prob": "propensity"},
        "treatment": {"policy": "plackett-luce", "scores": "affinity"},
    }  # fmt: skip
    comment = (
        f"{source.name} of the Open Bandit Dataset: a row per recommended item and position, by foretest convert.\n"
        "The control is the policy that collected it, as logged. Replace the treatment, which draws items by the\n"
        "logged affinities of the user, by your own policy."
    )
    read = _batches(source, schema, affinity, features)
    return in_background(lambda: write_converted(folder, read, schema, tables, comment, replace=replace))


def _column_names(source: Location) -> list[str]:
    """The names of the columns of a file that has all that are needed, each once."""
    try:
        with _opened(source) as file:
            schema = pacsv.open_csv(file).schema
            names = list(schema.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{source}: cannot be read as CSV ({short(error)}).") from None
    for name in names:
        refuse_repeated(str(source), schema, name)
    missing = next((name for name in _NEEDED if name not in names), None)
    if missing is not None:
        raise BadInput(
            f"{source}: there is no column '{missing}'.{nearest(missing, names)} A file of the Open Bandit Dataset has"
            f" {', '.join(_NEEDED)}."
        )
    return names


def _csv_file(path: Location) -> Location:
    """The CSV file with the log: the path itself, or the one in its folder that is not the context of items."""
    if not path.is_dir():
        if not path.exists():
            raise BadInput(f"{path}: no such file or folder.")
        return path
    inside: list[Location] = sorted(path.iterdir(), key=str)
    files = [file for file in inside if file.suffix == ".csv" and file.name != "item_context.csv"]
    if len(files) != 1:
        what = "no CSV file" if not files else f"{len(files)} CSV files"
        raise BadInput(f"{path}: {what} in the folder: name the file of one campaign, as in random/men/men.csv.")
    return files[0]


def _batches(
    source: Location, schema: pa.Schema, affinity: list[str], features: list[str]
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """The rows in batches; a value of another type is refused with its message."""
    types = {"item_id": pa.int32(), "position": pa.string(), "click": pa.float64(), "propensity_score": pa.float64()}
    types |= dict.fromkeys(affinity, pa.float32()) | dict.fromkeys(features, pa.string())
    options = pacsv.ConvertOptions(column_types=types, include_columns=list(types))
    at = 0
    try:
        for batch in _read(source, options):
            n = batch.num_rows
            scores = np.stack([batch[name].to_numpy(zero_copy_only=False) for name in affinity], axis=1).ravel()
            columns = [
                pa.array(range(at, at + n)), _lists(batch["item_id"], n), batch["click"], batch["position"],
                batch["propensity_score"], _lists(pa.array(scores, pa.float32()), n), *(batch[f] for f in features),
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            at += n
    except pa.ArrowException as error:
        raise BadInput(f"{source}: {_named(short(error), source)}.") from None


def _read(source: Location, options: pacsv.ConvertOptions) -> Iterator[pa.RecordBatch]:
    with _opened(source) as file:
        yield from pacsv.open_csv(file, convert_options=options)


@contextmanager
def _opened(source: Location) -> Iterator[Any]:
    """What Arrow reads CSV from; what goes wrong in a store is one sentence."""
    if isinstance(source, Path):
        yield source
        return
    with source.open() as file:
        try:
            yield file
        except OSError as error:
            raise store_fault(source, error) from None


def _named(message: str, source: Location) -> str:
    """Arrow's message with the name of the column, and the row counted as elsewhere, from 0 after the names."""
    found = re.match(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", message)
    if found is None:
        return message
    with _opened(source) as file:
        column = pacsv.open_csv(file).schema.names[int(found[1])]
    row = "" if found[2] is None else f", row {int(found[2]) - 2} (the first row is 0)"
    return f"column '{column}'{row}: {found[3]}"


def _lists(values: pa.Array, rows: int) -> pa.Array:
    """Lists of one length."""
    width = len(values) // rows if rows else 0
    return pa.ListArray.from_arrays(pa.array(range(0, len(values) + 1, max(width, 1)), pa.int32()), values)

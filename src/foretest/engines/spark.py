"""Many machines: each Spark task folds the rows of its partition into one small state, and Spark adds the states up.

Nothing but sums travels. A state is one row of bytes; states are merged in groups of `FAN_IN` by further tasks until
few are left, so that the driver never holds more than `FAN_IN` of them. A task that is run again after a lost executor
gives the same state, since draws and buckets follow from the rows alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.flat import from_batch, to_batch
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.value_model import smallest_rows
from foretest.engines.local import State, find_fault
from foretest.errors import BadInput, RowFault
from foretest.log.reader import Reader
from foretest.sources import BATCH_ROWS, Chunk
from foretest.sources.spark_frames import SparkFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FAN_IN = 16
_POSITION_BITS = 40  # of a row within its partition, where neither unit nor id tells rows apart
_STATE = "state binary, fault string"

Sums = TypeVar("Sums")
Summary = Callable[[Iterator[Chunk]], pa.RecordBatch | None]
Merge = Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch]


def read(paths: Sequence[str], sql: str | None) -> DataFrame:
    """Parquet files or a query, by the session that is running (spark-submit configures it) or a new one here."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise BadInput('--engine spark needs PySpark: pip install "foretest[spark]".') from None
    session = SparkSession.builder.appName("foretest").getOrCreate()
    try:
        return session.read.parquet(*paths) if sql is None else session.sql(sql)
    except PySparkException as error:
        raise BadInput(f"Spark cannot read {', '.join(paths) or 'the query'}: {str(error).splitlines()[0]}") from None


def aggregate(source: SparkFrame, reader: Reader, plan: FoldPlan, kind: type[Fold] = Fold) -> Aggregates:
    """Fold a DataFrame into the sums of an offline test."""

    def merged(states: Sequence[pa.RecordBatch]) -> Aggregates:
        return Aggregates.total([from_batch(state, plan) for state in states])

    found = fold_in_tasks(source, reader, lambda: kind(plan), to_batch, merged, plan=plan)
    return kind(plan).finish() if found is None else found


def fold_in_tasks(
    source: SparkFrame,
    reader: Reader,
    start: Callable[[], State[Sums]],
    packed: Callable[[Sums], pa.RecordBatch],
    merged: Callable[[Sequence[pa.RecordBatch]], Sums],
    *,
    plan: FoldPlan | None = None,
) -> Sums | None:
    """Fold a DataFrame, each task's rows into a state of its own, which travels `packed`; None where there is no row.

    With a `plan`, faults of the policies are looked for too.
    """

    def fold(chunks: Iterator[Chunk]) -> pa.RecordBatch | None:
        state = start()
        for chunk in chunks:
            try:
                state.add(reader.read(chunk))
            except RowFault as met:
                raise _Fault(met, chunk, find_fault(chain([chunk], chunks), reader, plan)) from None
        return packed(state.finish())

    found = _summarise(source.frame, reader.columns, fold, lambda states: packed(merged(states)))
    return None if found is None else merged([found])


def value_model_rows(source: SparkFrame, reader: Reader) -> Iterator[tuple[pa.RecordBatch, Any, Any]]:
    """What a value model is fitted on: features, rewards and units of the rows with the smallest unit hashes."""
    names = reader.settings.log.rewards

    def packed(found: tuple[pa.Table, Any, Any]) -> pa.RecordBatch:
        features, rewards, unit = found
        columns = {f"x:{name}": features[name] for name in features.column_names}
        columns |= {f"r:{m}": pa.array(rewards[:, m]) for m in range(rewards.shape[1])}
        [batch] = pa.table({**columns, "unit": pa.array(unit)}).combine_chunks().to_batches() or [None]
        return batch

    def unpacked(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Any, Any]:
        rewards = np.column_stack([batch[f"r:{m}"].to_numpy() for m in range(len(names))])
        features = {name[2:]: batch[name] for name in batch.schema.names if name.startswith("x:")}
        return pa.RecordBatch.from_pydict(features), rewards, batch["unit"].to_numpy()

    def narrow(chunks: Iterator[Chunk]) -> pa.RecordBatch | None:
        def rows() -> Iterator[tuple[Any, Any, Any]]:
            for chunk in chunks:
                try:
                    read = reader.read(chunk)
                except RowFault as met:
                    raise _Fault(met, chunk, find_fault(chain([chunk], chunks), reader, None)) from None
                yield read.features, read.rewards, read.unit

        return packed(smallest_rows(rows()))

    found = _summarise(source.frame, reader.columns, narrow, lambda parts: packed(smallest_rows(map(unpacked, parts))))
    if found is not None:
        yield unpacked(found)


class _Fault(Exception):
    """Bad rows met by a task, on their way to the driver as plain data."""

    def __init__(self, met: RowFault, chunk: Chunk, found: tuple[RowFault, tuple[str, int], int] | None) -> None:
        # a policy that faults at random may not do so again
        fault, (source, row), count = found or (met, (chunk.source, chunk.row), 1)
        said = {"kind": fault.kind, "column": fault.column, "what": fault.what, "remedy": fault.remedy}
        super().__init__(json.dumps({**said, "source": source, "row": row, "count": count}))


def _summarise(frame: DataFrame, columns: Sequence[str], summary: Summary, merge: Merge) -> pa.RecordBatch | None:
    """One state of all rows: a state a partition, merged by Spark; None where there is no row."""
    _use_this_python(frame)

    def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        chunks = _chunks(batches, f"the Spark DataFrame, partition {number}", number << _POSITION_BITS)
        first = next(chunks, None)
        if first is None:
            return
        try:
            state, fault = summary(chain([first], chunks)), None
        except _Fault as met:
            state, fault = None, str(met)
        except BadInput as met:
            state, fault = None, json.dumps({"sentence": str(met)})
        yield _row(state, fault)

    def of_states(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        states, faults = _read_states(batches)
        for fault in faults:
            yield _row(None, fault)
        if states and not faults:
            yield _row(merge(states), None)

    states = frame.select(*(f"`{name.replace('`', '``')}`" for name in columns)).mapInArrow(of_partition, _STATE)
    left = _partitions(frame)
    while left > FAN_IN:
        left = ceil(left / FAN_IN)
        states = states.repartition(left).mapInArrow(of_states, _STATE)
    found, faults = _read_states(states.toArrow().to_batches())
    if faults:
        raise BadInput(_sentence(faults))
    return merge(found) if found else None


def _chunks(batches: Iterable[pa.RecordBatch], source: str, position: int) -> Iterator[Chunk]:
    """The rows of a partition in batches of our size: Spark's are small, and each costs its overhead."""
    held: list[pa.RecordBatch] = []
    at = 0
    for batch in batches:
        held.append(batch)
        if sum(b.num_rows for b in held) >= BATCH_ROWS:
            yield Chunk(pa.concat_batches(held), source, at, position + at)
            at += sum(b.num_rows for b in held)
            held = []
    if any(b.num_rows for b in held):
        yield Chunk(pa.concat_batches(held), source, at, position + at)


def _row(state: pa.RecordBatch | None, fault: str | None) -> pa.RecordBatch:
    data = None
    if state is not None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, state.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(state)
        data = sink.getvalue().to_pybytes()
    return pa.RecordBatch.from_pydict({"state": pa.array([data], pa.binary()), "fault": pa.array([fault], pa.string())})


def _read_states(batches: Iterable[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], list[str]]:
    states, faults = [], []
    for batch in batches:
        faults += [fault for fault in batch["fault"].to_pylist() if fault is not None]
        for state in batch["state"]:
            if state.is_valid:
                with pa.ipc.open_stream(state.as_buffer()) as reader:
                    [read] = reader
                states.append(read)
    return states, faults


def _sentence(faults: list[str]) -> str:
    """The first fault by partition and row, and how many rows share it."""
    said = [json.loads(fault) for fault in faults]
    for document in said:
        if "sentence" in document:
            return str(document["sentence"])
    first = min(said, key=lambda d: (int(d["source"].rsplit(" ", 1)[1]), d["row"]))
    same = [d for d in said if (d["kind"], d["column"]) == (first["kind"], first["column"])]
    fault = RowFault(first["kind"], first["column"], np.zeros(0, np.int64), first["what"], first["remedy"])
    return fault.sentence(first["source"], first["row"], sum(d["count"] for d in same))


def _partitions(frame: DataFrame) -> int:
    try:
        return int(frame.rdd.getNumPartitions())
    except Exception:  # Spark Connect has no RDDs: ask the data
        from pyspark.sql import functions

        return int(frame.select(functions.spark_partition_id().alias("p")).distinct().count())


def _use_this_python(frame: DataFrame) -> None:
    """On one machine the tasks run in the driver's own Python, which has our packages; a cluster has its settings."""
    context = getattr(frame.sparkSession, "_sc", None)
    if context is not None and context.master.startswith("local"):
        context.pythonExec = sys.executable

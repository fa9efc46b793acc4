"""Many machines: each Spark task folds the rows of its partition into one small state, and Spark merges the states.

Only sums are sent. A state is one row of bytes; states are merged in groups of `FAN_IN` by further tasks until few are
left, so that the driver never has more than `FAN_IN` of them. A task that is run again after an executor was lost gives
the same state, since draws and buckets depend on the rows alone.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.flat import from_batch, to_batch
from foretest.aggregation.fold import Fold
from foretest.aggregation.fold_plan import FoldPlan
from foretest.displays.merging import merged
from foretest.engines.local import FirstFault, RowReader, State, find_fault
from foretest.errors import BadInput, RowFault
from foretest.log.reader import Reader
from foretest.sources import BATCH_BYTES, BATCH_ROWS, Chunk
from foretest.sources.lake_tables import refuse_lake_tables
from foretest.sources.spark_frames import SparkFrame
from foretest.stores import is_address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FAN_IN = 16
_POSITION_BITS = 40  # of a row within its partition: its number is its key where the log has neither unit nor id
_FROM_PYTHON = "Read the table itself with Spark, and give the DataFrame from Python."
_STATE = "state binary, fault string"

Sums = TypeVar("Sums")
Summary = Callable[[Iterator[Chunk]], pa.RecordBatch]
Merge = Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch]


def read(paths: Sequence[str], sql: str | None) -> DataFrame:
    """Parquet files or a query, read by the running session (spark-submit configures it) or by a new one."""
    refuse_lake_tables((Path(path) for path in paths if not is_address(path)), _FROM_PYTHON)
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
    """Fold a DataFrame into the sums of an offline test; plans and models are not sent."""
    by_name = Packing(to_batch, lambda state: from_batch(state, plan))
    return fold_in_tasks(source, reader, lambda: kind(plan), plan=plan, packing=by_name)


class Packing(NamedTuple, Generic[Sums]):
    """How what a task has folded travels to the next task: as an Arrow batch."""

    packed: Callable[[Sums], pa.RecordBatch]
    unpacked: Callable[[pa.RecordBatch], Sums]


def _pickled(sums: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"sums": pa.array([pickle.dumps(sums)], pa.large_binary())})


def _unpickled(batch: pa.RecordBatch) -> Any:
    """What another task of the same job sent."""
    return pickle.loads(batch["sums"][0].as_buffer())


PICKLED: Packing[Any] = Packing(_pickled, _unpickled)


def fold_in_tasks(
    source: SparkFrame,
    reader: RowReader,
    start: Callable[[], State[Sums]],
    *,
    plan: FoldPlan | None = None,
    packing: Packing[Sums] = PICKLED,
) -> Sums:
    """Fold a DataFrame: each task folds its rows into a state, and sends its sums.

    With a `plan`, faults of the policies are looked for too.
    """
    packed, unpacked = packing

    def fold(chunks: Iterator[Chunk]) -> pa.RecordBatch:
        state = start()
        for chunk in chunks:
            try:
                state.add(reader.read(chunk))
            except RowFault as fault:
                raise _Fault.of(fault, chunk, find_fault(chain([chunk], chunks), reader, plan)) from None
        return packed(state.finish())

    def merge(states: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        return packed(merged([unpacked(state) for state in states]))

    state = _summarise(source.frame, reader.columns, fold, merge)
    return start().finish() if state is None else unpacked(state)


class _Fault(Exception):
    """A fault of rows that a task met, sent to the driver as JSON."""

    @classmethod
    def of(cls, met: RowFault, chunk: Chunk, first: FirstFault | None) -> _Fault:
        """The first fault of the task's rows; the one that was met if a policy faults at random, and not again."""
        fault, source, row, count, _ = first or FirstFault(met, chunk.source, chunk.row, 1)
        document = {"kind": fault.kind, "column": fault.column, "what": fault.what, "remedy": fault.remedy}
        return cls(json.dumps({**document, "source": source, "row": row, "count": count}))


def _summarise(frame: DataFrame, columns: Sequence[str], summary: Summary, merge: Merge) -> pa.RecordBatch | None:
    """One state of all rows: one per partition, merged by Spark; None where there is no row."""
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
        except _Fault as error:
            state, fault = None, str(error)
        except BadInput as error:
            state, fault = None, json.dumps({"sentence": str(error)})
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
    merged, faults = _read_states(states.toArrow().to_batches())
    if faults:
        raise BadInput(_sentence(faults))
    return merge(merged) if merged else None


def _chunks(batches: Iterable[pa.RecordBatch], source: str, position: int) -> Iterator[Chunk]:
    """The rows of a partition in batches of our size: Spark's are small, and every batch has an overhead."""
    waiting: list[pa.RecordBatch] = []
    at = rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            yield Chunk(pa.concat_batches(waiting), source, at, position + at)
            at += rows
            waiting, rows, size = [], 0, 0
    if rows:
        yield Chunk(pa.concat_batches(waiting), source, at, position + at)


def _row(state: pa.RecordBatch | None, fault: str | None) -> pa.RecordBatch:
    """What a task sends: a state as bytes, or a fault."""
    data = None
    if state is not None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, state.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(state)
        data = sink.getvalue().to_pybytes()
    return pa.RecordBatch.from_pydict({"state": pa.array([data], pa.binary()), "fault": pa.array([fault], pa.string())})


def _read_states(batches: Iterable[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], list[str]]:
    """The states and the faults that tasks sent."""
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
    documents = [json.loads(fault) for fault in faults]
    for document in documents:
        if "sentence" in document:
            return str(document["sentence"])
    first = min(documents, key=lambda d: (int(d["source"].rsplit(" ", 1)[1]), d["row"]))
    same = [d for d in documents if (d["kind"], d["column"]) == (first["kind"], first["column"])]
    fault = RowFault(first["kind"], first["column"], np.zeros(0, np.int64), first["what"], first["remedy"])
    return fault.sentence(first["source"], first["row"], sum(d["count"] for d in same))


def _partitions(frame: DataFrame) -> int:
    try:
        return int(frame.rdd.getNumPartitions())
    except Exception:  # Spark Connect has no RDDs: count in the data
        from pyspark.sql import functions

        return int(frame.select(functions.spark_partition_id().alias("p")).distinct().count())


def _use_this_python(frame: DataFrame) -> None:
    """On one machine tasks run in the driver's own Python, which has our packages; a cluster has its own settings."""
    context = getattr(frame.sparkSession, "_sc", None)
    if context is not None and context.master.startswith("local"):
        context.pythonExec = sys.executable

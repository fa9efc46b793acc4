"""Logs in memory, or from another library as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from foretest.errors import BadInput
from foretest.records import dataclass
from foretest.sources.base import BATCH_ROWS, Chunk, Part, chunks, short
from foretest.sources.texts import refuse_broken_texts

_TABLE = "the table"
_PART_ROWS = 8 * BATCH_ROWS  # rows of a part of a table in memory: enough to keep a thread busy


@dataclass(frozen=True)
class ArrowTable:
    """A table in memory; a part is a run of rows."""

    table: pa.Table
    repeatable = True

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [(_TABLE, self.table.schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        table = self.table.select(list(columns))

        def part(begin: int) -> Part:
            def read() -> Iterator[Chunk]:
                at = begin
                for batch in table.slice(begin, _PART_ROWS).to_batches(max_chunksize=batch_rows):
                    refuse_broken_texts(_TABLE, at, batch)
                    yield Chunk(batch, _TABLE, at, at)
                    at += batch.num_rows

            return read

        return [part(begin) for begin in range(0, max(1, self.rows), _PART_ROWS)]


@dataclass(frozen=True)
class ArrowStream:
    """A stream of batches, which can be read once."""

    reader: pa.RecordBatchReader
    repeatable = False
    rows: ClassVar[None] = None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [("the stream", self.reader.schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        return [lambda: chunks("the stream", self.reader, columns, batch_rows)]


@dataclass(frozen=True)
class ArrowDataset:
    """A pyarrow dataset, read in order, with few batches read ahead."""

    dataset: Any
    repeatable = True
    rows: ClassVar[None] = None

    @property
    def _options(self) -> Any:
        """For Parquet, options that keep no whole row group in memory."""
        from pyarrow.dataset import ParquetFileFormat, ParquetFragmentScanOptions

        is_parquet = isinstance(getattr(self.dataset, "format", None), ParquetFileFormat)
        return ParquetFragmentScanOptions(pre_buffer=False) if is_parquet else None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [("the dataset", self.dataset.schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        def read() -> Iterator[Chunk]:
            try:
                scanner = self.dataset.scanner(
                    columns=list(columns), batch_size=batch_rows, batch_readahead=2, fragment_readahead=1,
                    fragment_scan_options=self._options,
                )  # fmt: skip
                yield from chunks("the dataset", scanner.to_batches(), columns, batch_rows)
            except (pa.ArrowException, OSError) as error:
                raise BadInput(f"the dataset cannot be read: {short(error)}.") from None

        return [read]


@dataclass(frozen=True)
class LazyPolars:
    """A Polars LazyFrame: its query runs for the needed columns, and its batches are read as they come."""

    frame: Any
    repeatable = True
    rows: ClassVar[None] = None

    @cached_property
    def _schema(self) -> pa.Schema:
        try:
            return pa.table(self.frame.limit(0).collect()).schema
        except Exception as error:  # Polars's errors have many classes
            raise BadInput(f"the LazyFrame cannot be read: {short(error)}.") from None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [("the LazyFrame", self._schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        def batches() -> Iterator[pa.RecordBatch]:
            frame = self.frame.select(list(columns))
            try:
                # Polars before 1.34 cannot collect in batches
                frames = frame.collect_batches(chunk_size=batch_rows) if hasattr(frame, "collect_batches") else [
                    frame.collect()
                ]  # fmt: skip
                for piece in frames:
                    yield from pa.table(piece).to_batches()
            except Exception as error:
                raise BadInput(f"the LazyFrame cannot be read: {short(error)}.") from None

        return [lambda: chunks("the LazyFrame", batches(), columns, batch_rows)]


@dataclass(frozen=True)
class PandasFrame:
    """A pandas DataFrame; columns are converted batch by batch, and only the needed ones."""

    frame: Any
    repeatable = True

    @property
    def rows(self) -> int:
        return len(self.frame)

    @cached_property
    def _columns(self) -> list[tuple[str, Any, pa.DataType | str]]:
        """Of each column and named level of the index: name, content, and type or why it has none."""
        index = self.frame.index
        levels = [(name, index.get_level_values(name).to_series()) for name in index.names if name is not None]
        own = [pair for pair in levels if pair[0] not in self.frame.columns]
        return [(str(name), series, _type_of(series)) for name, series in [*own, *self.frame.items()]]

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [(_TABLE, pa.schema([(name, _or_null(kind)) for name, _, kind in self._columns]))]

    def remark(self, name: str, column: str) -> str:
        kind = next(kind for own, _, kind in self._columns if own == column)
        return f" (objects that Arrow has no one type for: {kind})" if isinstance(kind, str) else ""

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        contents = {name: (series, _or_null(kind)) for name, series, kind in self._columns}

        def part(start: int) -> Part:
            def read() -> Iterator[Chunk]:
                stop = min(start + _PART_ROWS, self.rows)
                for begin in range(start, stop, batch_rows):
                    end = min(begin + batch_rows, stop)
                    series = [(contents[name][0].iloc[begin:end], contents[name][1]) for name in columns]
                    batch = pa.RecordBatch.from_arrays([_convert(*pair) for pair in series], names=list(columns))
                    yield Chunk(batch, _TABLE, begin, begin)

            return read

        return [part(begin) for begin in range(0, max(1, self.rows), _PART_ROWS)]


def _type_of(series: Any) -> pa.DataType | str:
    """The Arrow type of a column: that of its dtype, or for objects the one that holds all; else why there is none."""
    try:
        if series.dtype == object:
            return pa.infer_type(series.to_numpy(), from_pandas=True)
        return _chunk(pa.Array.from_pandas(series.iloc[:0])).type
    except (pa.ArrowException, TypeError, ValueError) as error:
        return short(error)


def _or_null(kind: pa.DataType | str) -> pa.DataType:
    return pa.null() if isinstance(kind, str) else kind


def _convert(series: Any, kind: pa.DataType) -> pa.Array:
    try:
        return _chunk(pa.Array.from_pandas(series, type=kind if series.dtype == object else None))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadInput(f"{_TABLE}: column '{series.name}' cannot be read ({short(error)}).") from None


def _chunk(array: Any) -> pa.Array:
    """The column as one array: pandas has columns that are stored as Arrow in chunks."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

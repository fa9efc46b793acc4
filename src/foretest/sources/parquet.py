"""Parquet: every row group is a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from foretest.background import side_by_side
from foretest.errors import BadInput
from foretest.formatting import plural
from foretest.records import dataclass
from foretest.sources.base import BATCH_BYTES, decode_names, short
from foretest.sources.files import LogFiles, Piece
from foretest.sources.paths import file_ends, refuse_missing
from foretest.sources.same_file import opened, opened_with_mark
from foretest.sources.texts import refuse_broken_texts
from foretest.stores import Location, RemotePath
from foretest.stores.faults import is_store_fault, store_fault

_MAGIC = b"PAR1"  # both ends of a file
_BUFFER = 1 << 16  # bytes of a column read at a time, which stay in the cache until they are decoded
_REMOTE_BUFFER = 1 << 22  # a request takes longer than a disk: more bytes at a time
MOST_VALUES = 10**7  # of a list, as a mean over a row group: a display of as many takes gigabytes
_AT_ONCE = 1 << 24  # bytes of a row group in a store that are read at once
_REQUESTS = 16  # files of a store that are opened at a time


class ParquetFiles(LogFiles["ParquetFile"]):
    """Parquet files in order. All are opened first, so that a damaged one is refused before any row is read."""

    def __init__(self, paths: Sequence[Location]) -> None:
        super().__init__(paths)
        _ = self.files

    def _open(self) -> list[ParquetFile]:
        if all(isinstance(path, Path) for path in self.paths):
            return [open_parquet_file(path) for path in self.paths]
        return side_by_side([partial(open_parquet_file, path) for path in self.paths], threads=_REQUESTS)


@dataclass(frozen=True)
class ParquetFile:
    """A file whose metadata has been read."""

    path: Location
    schema: pa.Schema
    metadata: pq.FileMetaData
    mark: str  # to see whether it is still the same

    @property
    def rows(self) -> int:
        return int(self.metadata.num_rows)

    def _options(self, group: int, columns: list[str]) -> dict[str, Any]:
        """How a row group is read. With pre_buffer all of it is in memory, without a buffer_size whole columns of it.
        In a store a small one is read at once, since every request takes its time. The metadata of a file with
        thousands of row groups take longer to read than one of them."""
        if isinstance(self.path, Path):
            return {"metadata": self.metadata, "pre_buffer": False, "buffer_size": _BUFFER}
        of_group = self.metadata.row_group(group)
        chunks = [of_group.column(place) for place in range(of_group.num_columns)]
        needed = sum(c.total_compressed_size for c in chunks if c.path_in_schema.partition(".")[0] in columns)
        return {"metadata": self.metadata, "pre_buffer": needed <= _AT_ONCE, "buffer_size": _REMOTE_BUFFER}

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        pieces, row = [], 0
        lists = self._lists(columns)
        for group in range(self.metadata.num_row_groups):
            of_group = self.metadata.row_group(group)
            for leaf in lists:
                self._refuse_endless(group, of_group.column(leaf), of_group.num_rows)
            rows, size = of_group.num_rows, max(1, of_group.total_byte_size)
            most = min(batch_rows, max(256, rows * BATCH_BYTES // size))
            batches = max(1, ceil(rows / most))  # of the same size: a small one at the end would save no memory
            pieces.append(self._row_group(group, row, rows, columns, ceil(rows / batches) or 1))
            row += rows
        return pieces

    def _lists(self, columns: list[str]) -> list[int]:
        """The numbers of those columns of the file that hold the values of these lists."""
        leaves = [self.metadata.schema.column(leaf) for leaf in range(self.metadata.num_columns)]
        needed = set(columns)
        return [n for n, leaf in enumerate(leaves)
                if leaf.max_repetition_level and leaf.path.partition(".")[0] in needed]  # fmt: skip

    def _refuse_endless(self, group: int, chunk: pq.ColumnChunkMetaData, rows: int) -> None:
        """Refuse lists that cannot be in memory: some kilobytes of one value many times may be gigabytes of it."""
        if chunk.num_values > MOST_VALUES * max(1, rows):
            raise BadInput(
                f"{self.path}: column '{chunk.path_in_schema.partition('.')[0]}', row group {group} (the first is 0):"
                f" {chunk.num_values:,} values in {plural(rows, 'display')}, where a display has at most"
                f" {MOST_VALUES:,}. Is the file damaged? Write it again, or leave it out."
            )

    def _row_group(self, group: int, row: int, rows: int, columns: list[str], batch_rows: int) -> Piece:
        def read() -> Iterator[pa.RecordBatch]:
            try:
                with open_parquet(self.path, self.mark, **self._options(group, columns)) as file:
                    at = row
                    for batch in file.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False):
                        refuse_broken_texts(str(self.path), at, batch)
                        at += batch.num_rows
                        yield batch
                        del batch  # so that the next one takes its memory
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise _unreadable(self.path, error) from None

        return Piece(row, read)


def refuse_unwritable(name: str, schema: pa.Schema) -> None:
    """Refuse a table that is to be written and has a column of a type that Parquet does not have."""
    for column in schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([column])).close()
        except pa.ArrowException:
            raise BadInput(
                f"{name}: column '{column.name}' is {column.type}, which Parquet does not have. Convert it, or leave it"
                " out."
            ) from None


@contextmanager
def open_parquet(path: Location, mark: str | None = None, **options: Any) -> Iterator[pq.ParquetFile]:
    """A Parquet file, local or remote; with a mark, if it is and stays the file with this mark."""
    with opened(path, mark) as source, pq.ParquetFile(source, **options) as file:
        yield file


def open_parquet_file(path: Location) -> ParquetFile:
    """A file whose metadata are read; one that cannot be read is refused."""
    try:
        if isinstance(path, Path):
            refuse_missing(path)  # to open a pipe would block for ever
        with opened_with_mark(path) as (source, mark), pq.ParquetFile(source) as file:
            decode_names(file.schema_arrow)
            return ParquetFile(path, file.schema_arrow, file.metadata, mark)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Location, error: Exception) -> BadInput:
    if isinstance(path, RemotePath) and is_store_fault(error):
        return store_fault(path, error)
    if isinstance(error, PermissionError):
        return BadInput(f"{path}: permission denied.")
    try:
        begin, end, size = file_ends(path, len(_MAGIC))
    except BadInput as refusal:
        return refusal
    if size == 0:
        return BadInput(f"{path}: the file is empty (0 bytes), not a Parquet file. Write it again, or leave it out.")
    if begin != _MAGIC:
        return BadInput(f"{path}: not a Parquet file. Convert it to Parquet, or leave it out.")
    if end != _MAGIC:
        return BadInput(
            f"{path}: a truncated Parquet file, whose end is missing after {size:,} bytes. Write it again, or leave it"
            " out."
        )
    return BadInput(f"{path}: a damaged Parquet file ({short(error)}). Write it again, or leave it out.")

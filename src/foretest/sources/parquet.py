"""Parquet: every row group is a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from foretest.errors import BadInput
from foretest.sources.base import decode_names, short
from foretest.sources.files import LogFiles, Piece, changed
from foretest.sources.paths import file_ends, refuse_missing

_MAGIC = b"PAR1"  # both ends of a file
_BUFFER = 1 << 18  # bytes of a column read at a time, which stay in the cache until they are decoded
_MOST_BYTES = 1 << 26  # of a batch: rows with a thousand candidates come in smaller ones


class ParquetFiles(LogFiles["ParquetFile"]):
    """Parquet files in order. All are opened first, so that a damaged one is refused before any row is read."""

    def __init__(self, paths: list[Path]) -> None:
        super().__init__(paths)
        _ = self.files

    def _open(self) -> list[ParquetFile]:
        return [_open_parquet(path) for path in self.paths]


@dataclass(frozen=True)
class ParquetFile:
    """A file whose metadata has been read."""

    path: Path
    schema: pa.Schema
    metadata: pq.FileMetaData

    @property
    def rows(self) -> int:
        return int(self.metadata.num_rows)

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        pieces, row = [], 0
        for group in range(self.metadata.num_row_groups):
            of_group = self.metadata.row_group(group)
            rows, size = of_group.num_rows, max(1, of_group.total_byte_size)
            fit = max(256, rows * _MOST_BYTES // size)
            pieces.append(self._row_group(group, row, rows, columns, min(batch_rows, fit)))
            row += rows
        return pieces

    def _row_group(self, group: int, row: int, rows: int, columns: list[str], batch_rows: int) -> Piece:
        def read() -> Iterator[pa.RecordBatch]:
            try:
                # with pre_buffer whole row groups would be in memory, without a buffer_size whole columns of them
                with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
                    now = file.metadata
                    if now.num_row_groups != self.metadata.num_row_groups or now.row_group(group).num_rows != rows:
                        raise changed(self.path)
                    yield from file.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise _unreadable(self.path, error) from None

        return Piece(row, read)


def _open_parquet(path: Path) -> ParquetFile:
    refuse_missing(path)  # to open a pipe would block for ever
    try:
        with pq.ParquetFile(path) as file:
            decode_names(file.schema_arrow)
            return ParquetFile(path, file.schema_arrow, file.metadata)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> BadInput:
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

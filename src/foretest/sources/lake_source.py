"""What logs in tables of Delta Lake and Iceberg share: data files that are read in batches, with the needed columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Protocol

import pyarrow as pa

from foretest.background import side_by_side
from foretest.errors import BadInput
from foretest.records import dataclass
from foretest.sources.base import BATCH_ROWS, Chunk, Part
from foretest.sources.files import Piece
from foretest.sources.lake_tables import LakeTable
from foretest.sources.parquet import ParquetFile, open_parquet_file
from foretest.stores import Location

_REQUESTS = 16  # data files that are opened at a time


class DataFile(Protocol):
    """A data file of a table at one version."""

    @property
    def path(self) -> Location: ...

    @property
    def rows(self) -> int:
        """As many as it has, also deleted ones: where the rows of the next file begin."""
        ...

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        """The pieces in order; batches have these columns, with the types of the table."""
        ...


class LakeLog(ABC):
    """A table at one version, which stays the same in all passes. Its files are in the order of their names."""

    repeatable = True

    def __init__(self, table: LakeTable) -> None:
        self.table = table

    @property
    @abstractmethod
    def version(self) -> int:
        """The version that is read: of Delta Lake its number, of Iceberg the snapshot."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema: ...

    @abstractmethod
    def _data_files(self) -> Sequence[DataFile]: ...

    @cached_property
    def data_files(self) -> list[DataFile]:
        return sorted(self._data_files(), key=lambda file: str(file.path))

    @property
    def paths(self) -> list[Location]:
        return [file.path for file in self.data_files]

    @property
    def rows(self) -> int | None:
        return sum(file.rows for file in self.data_files)

    def facts(self) -> dict[str, str | int]:
        """The kind of the table and the version that was read, for a result's provenance."""
        return {"kind": self.table.kind, "version": self.version}

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [(self.table.name, self.schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        parts: list[Part] = []
        position = 0
        for file in self.data_files:
            # without one of its columns, a batch would not know how many rows it has
            for piece in file.pieces(list(columns) or self.schema.names[:1], batch_rows):
                parts.append(_part(str(file.path), piece, position, list(columns)))
            position += file.rows
        return parts

    def opened(self, paths: Sequence[Location]) -> list[ParquetFile]:
        """Data files whose footers have been read, some at a time."""
        return side_by_side([partial(self._opened, path) for path in paths], threads=_REQUESTS)

    def _opened(self, path: Location) -> ParquetFile:
        try:
            return open_parquet_file(path)
        except BadInput:
            if path.exists():
                raise
            raise BadInput(
                f"{path}: no such file, which version {self.version} of the {self.table.kind} table {self.table.folder}"
                " needs. Was the table moved, or cleaned of old versions? Give a newer version, or leave #version= out."
            ) from None


def _part(name: str, piece: Piece, position: int, columns: list[str]) -> Part:
    def chunks() -> Iterator[Chunk]:
        at = piece.row
        for batch in piece.read():
            yield Chunk(batch.select(columns), name, at, position + at)
            at += batch.num_rows

    return chunks


@dataclass(frozen=True)
class ParquetOfTable:
    """A Parquet file of a table: columns that it lacks are constant, types are those of the table."""

    file: ParquetFile
    schema: pa.Schema  # of the table
    constants: dict[str, pa.Scalar]  # of its partition; a column that is neither here nor in the file is null

    @property
    def path(self) -> Location:
        return self.file.path

    @property
    def rows(self) -> int:
        return self.file.rows

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        own = [name for name in columns if name in self.file.schema.names]
        pieces = self.file.pieces(own or self.file.schema.names[:1], batch_rows)
        return [Piece(piece.row, partial(self._read, piece, columns)) for piece in pieces]

    def _read(self, piece: Piece, columns: list[str]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([self.schema.field(name) for name in columns])
        for batch in piece.read():
            yield pa.RecordBatch.from_arrays([self._column(batch, field) for field in schema], schema=schema)

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        if field.name not in batch.schema.names:
            value = self.constants.get(field.name, pa.scalar(None, field.type))
            return pa.repeat(value.cast(field.type), batch.num_rows)
        values = batch[field.name]
        try:
            return values if values.type == field.type else values.cast(field.type)
        except pa.ArrowException:
            raise BadInput(
                f"{self.path}: column '{field.name}' is {values.type}, and {field.type} in the table, which not all of"
                " its values fit. Write the table again."
            ) from None


def no_version(table: LakeTable, known: str) -> BadInput:
    """The sentence for a version that a table does not have; `known` says which it has."""
    return BadInput(f"{table.folder}: the {table.kind} table has no version {table.version}. {known}")

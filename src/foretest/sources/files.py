"""A log in files: a row has a number within its file and a position in the whole log; folders' names give columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from foretest.background import in_background
from foretest.sources.base import BATCH_ROWS, ROW_NUMBER, Chunk, Part, pack_of
from foretest.sources.paths import partitions
from foretest.stores import Location


class Piece(NamedTuple):
    """Rows of a file that are read together."""

    row: int  # the first, within the file
    read: Callable[[], Iterator[pa.RecordBatch]]


class LogFile(Protocol):
    """One file of a log."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rows(self) -> int: ...

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        """The pieces in order; batches have at least these columns, and at most `batch_rows` rows."""
        ...


File = TypeVar("File", bound=LogFile)


class LogFiles(ABC, Generic[File]):
    """Files of one kind, in order."""

    repeatable = True

    def __init__(self, paths: Sequence[Location]) -> None:
        self.paths = list(paths)
        self.names = [str(path) for path in paths]  # in messages
        self.partitions = partitions(paths)

    @abstractmethod
    def _open(self) -> list[File]:
        """Open every file for its schema; where its kind allows, without reading a row."""
        ...

    @cached_property
    def files(self) -> list[File]:
        return in_background(self._open)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [
            (name, _with_types(_with_partitions(file.schema, constants), self.types_of_nulls))
            for name, file, constants in zip(self.names, self.files, self.partitions, strict=True)
        ]

    @cached_property
    def types_of_nulls(self) -> dict[str, pa.DataType]:
        """The types that columns have in other files, of those without any value in some file, and so without one."""
        fields = [(of_file.name, of_file.type) for file in self.files for of_file in file.schema]
        without = {name for name, kind in fields if pa.types.is_null(kind)}
        known = [(name, kind) for name, kind in fields if name in without and not pa.types.is_null(kind)]
        return dict(reversed(known))  # as in the first file that has one

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        parts: list[Part] = []
        position = 0
        packs: dict[tuple[Location, str], int] = {}  # where each packed log begins
        for path, name, file, of_folders in zip(self.paths, self.names, self.files, self.partitions, strict=True):
            pack = pack_of(file.schema)
            begin = position if pack is None else packs.setdefault((path.parent, pack), position)
            wanted = list(columns) if pack is None else list(dict.fromkeys([*columns, ROW_NUMBER]))
            own = [column for column in wanted if column in file.schema.names]
            # without one of its columns, a batch would not know how many rows it has
            for row, read in file.pieces(own or file.schema.names[:1], batch_rows):
                constants = {key: of_folders[key] for key in wanted if key not in own and key in of_folders}
                typed = partial(_typed, read, self.types_of_nulls) if self.types_of_nulls else read
                parts.append(_part(typed, name, row, begin, wanted, constants, numbered=pack is not None))
            if path is not self.paths[-1]:
                position += file.rows
        return parts


def _with_partitions(schema: pa.Schema, constants: dict[str, pa.Scalar]) -> pa.Schema:
    """A file's schema with the columns that its folders give; a column of the file itself takes precedence."""
    for key, value in constants.items():
        if key not in schema.names:
            schema = schema.append(pa.field(key, value.type))
    return schema


def _with_types(schema: pa.Schema, types: dict[str, pa.DataType]) -> pa.Schema:
    """A schema in which columns without a type have that of other files."""
    for place, of_file in enumerate(schema):
        if of_file.name in types and pa.types.is_null(of_file.type):
            schema = schema.set(place, of_file.with_type(types[of_file.name]))
    return schema


def _typed(read: Callable[[], Iterator[pa.RecordBatch]], types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Batches in which columns without a type have that of other files."""
    for batch in read():
        schema = _with_types(batch.schema, types)
        yield batch if schema is batch.schema else batch.cast(schema)


def _part(
    read: Callable[[], Iterator[pa.RecordBatch]],
    name: str,
    row: int,
    position: int,
    columns: list[str],
    constants: dict[str, pa.Scalar],
    numbered: bool,
) -> Part:
    """The part that reads one piece of a file; `numbered` rows have their position in a column of a packed log."""

    def chunks() -> Iterator[Chunk]:
        at = row
        for batch in read():
            for key, value in constants.items():
                batch = batch.append_column(pa.field(key, value.type), pa.repeat(value, batch.num_rows))
            present = [key for key in columns if key in batch.schema.names]  # files may differ in columns
            yield Chunk(batch.select(present), name, at, position if numbered else position + at)
            at += batch.num_rows
            del batch  # so that the next one takes its memory

    return chunks

"""What every source of a log offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import to_numpy
from foretest.errors import BadInput
from foretest.sources.texts import refuse_broken_texts

BATCH_ROWS = 1 << 17
BATCH_BYTES = 1 << 25  # rows with a thousand candidates come in smaller batches

ROW_NUMBER = "foretest_row"  # the column of a packed log with the positions of its rows
PACKED = b"foretest.packed"  # in the metadata of the files of a packed log
FOLDED = b"foretest.folded"  # in the metadata of displays that were folded from long rows
AGGREGATES = b"foretest.aggregates"  # in the metadata of saved aggregates


class Chunk(NamedTuple):
    """A batch of rows and its place in the log."""

    batch: pa.RecordBatch
    source: str
    row: int  # of its first row, within the source
    position: int  # of its first row, within the whole log; in a packed log, of the log's first row
    places: npt.NDArray[np.int64] | None = None  # of its rows, where some were left out: those that are there
    left_out: int = 0  # how many were left out, as they are younger than the window
    trained: int = 0  # how many were left out, as a treatment was trained on them

    def positions(self) -> npt.NDArray[np.int64]:
        """The position of each row in the whole log."""
        if ROW_NUMBER in self.batch.schema.names:
            return self.position + to_numpy(self.batch[ROW_NUMBER])
        if self.places is not None:
            return self.position + self.places
        return np.arange(self.position, self.position + self.batch.num_rows, dtype=np.int64)


Part = Callable[[], Iterator[Chunk]]


class Source(Protocol):
    """A log that can be read."""

    #: can it be read more than once?
    repeatable: bool

    @property
    def rows(self) -> int | None:
        """The number of rows, where it is known beforehand."""
        ...

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """The name and schema of each file."""
        ...

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        """Parts that may be read in any order or in parallel; only these columns are read."""
        ...


@runtime_checkable
class Remarks(Protocol):
    """A source that can explain why a column has its type."""

    def remark(self, name: str, column: str) -> str:
        """What a message about the type of a file's column should add; may be empty."""
        ...


def pack_of(schema: pa.Schema) -> str | None:
    """The name of the packed log that a file belongs to; None for any other file."""
    name = (schema.metadata or {}).get(PACKED)
    return None if name is None else name.decode(errors="replace")  # a damaged name is that of no other file


def chunks(name: str, batches: Iterable[pa.RecordBatch], columns: Sequence[str], batch_rows: int) -> Iterator[Chunk]:
    """The batches of a source that is read from beginning to end, none larger than `batch_rows`."""
    at = 0
    for whole in batches:
        batch = whole.select(list(columns))
        refuse_broken_texts(name, at, batch)
        for begin in range(0, batch.num_rows, batch_rows):
            piece = batch.slice(begin, batch_rows)
            yield Chunk(piece, name, at, at)
            at += piece.num_rows


def refuse_repeated(name: str, schema: pa.Schema, column: str) -> None:
    """Refuse a file that has two columns of one name."""
    count = schema.names.count(column)
    if count > 1:
        raise BadInput(f"{name}: column '{column}' is there {count} times. Rename all but one.")


def short(error: Exception) -> str:
    """The first line of another library's error."""
    if isinstance(error, UnicodeDecodeError):
        return "the name of a column is not text in UTF-8"
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


def decode_names(schema: pa.Schema) -> None:
    """Decode every name, also those of inner fields: a UnicodeDecodeError comes here, not wherever it is first used."""
    for name, kind in zip(schema.names, schema.types, strict=True):
        _ = name, str(kind)

"""What every source of a log offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

BATCH_ROWS = 1 << 16


class Chunk(NamedTuple):
    """A batch of rows and where it stands."""

    batch: pa.RecordBatch
    source: str
    row: int  # of its first row, within the source
    position: int  # of its first row, within the whole log


Part = Callable[[], Iterator[Chunk]]


class Source(Protocol):
    """A log that can be read."""

    #: can it be read more than once?
    repeatable: bool

    @property
    def rows(self) -> int | None:
        """Rows in all, where known beforehand."""
        ...

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """The name and schema of each file."""
        ...

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        """Pieces that may be read in any order or at once; only these columns are read."""
        ...


@runtime_checkable
class Remarks(Protocol):
    """A source that can say why a column has the type it has."""

    def remark(self, name: str, column: str) -> str:
        """What a message about the type of a file's column should add; empty where there is nothing to say."""
        ...


def chunks(name: str, batches: Iterable[pa.RecordBatch], columns: Sequence[str], batch_rows: int) -> Iterator[Chunk]:
    """The batches of a source that is read from end to end, none larger than asked."""
    at = 0
    for whole in batches:
        batch = whole.select(list(columns))
        for begin in range(0, batch.num_rows, batch_rows):
            piece = batch.slice(begin, batch_rows)
            yield Chunk(piece, name, at, at)
            at += piece.num_rows


def short(error: Exception) -> str:
    """The first line of another library's error."""
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__

"""Arrow IPC: Feather (version 2) files, whose batches are parts, and streams that were saved to a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

import pyarrow as pa

from foretest.errors import BadInput
from foretest.records import dataclass
from foretest.sources.base import decode_names, short
from foretest.sources.files import LogFiles, Piece
from foretest.sources.paths import file_ends
from foretest.sources.same_file import opened, opened_with_mark
from foretest.stores import Location, RemotePath
from foretest.stores.faults import is_store_fault, store_fault
from foretest.stores.remote import changed

_FILE = b"ARROW1"  # both ends of a file with random access
_FEATHER_1 = b"FEA1"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # the last bytes of a stream


class ArrowFiles(LogFiles["ArrowFile"]):
    """Arrow files in order."""

    def _open(self) -> list[ArrowFile]:
        return [_open_arrow(path) for path in self.paths]


@dataclass(frozen=True)
class ArrowFile:
    """A file of record batches. It is not mapped into memory: if it shrank meanwhile, the process would crash."""

    path: Location
    schema: pa.Schema
    stream: bool
    mark: str  # to see whether it is still the same

    @cached_property
    def batch_rows(self) -> list[int]:
        """Rows of each batch. A file's directory does not have them, so the smallest column is read."""
        narrow = _narrowest(self.schema)
        return [batch.num_rows for batch in self._batches(None, narrow)]

    @property
    def rows(self) -> int:
        return sum(self.batch_rows)

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        if self.stream:
            return [Piece(0, lambda: self._sliced(None, columns, batch_rows))]
        starts = accumulate(self.batch_rows, initial=0)
        return [self._batch(number, start, columns, batch_rows)
                for number, start in zip(range(len(self.batch_rows)), starts, strict=False)]  # fmt: skip

    def _batch(self, number: int, row: int, columns: list[str], batch_rows: int) -> Piece:
        return Piece(row, lambda: self._sliced(number, columns, batch_rows))

    def _sliced(self, number: int | None, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in self._batches(number, columns):
            rows += batch.num_rows
            for begin in range(0, batch.num_rows, batch_rows):
                yield batch.slice(begin, batch_rows)
        if number is not None and rows != self.batch_rows[number]:
            raise changed(self.path)

    def _batches(self, number: int | None, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """All batches, or the one with a number, with these columns and no others."""
        options = pa.ipc.IpcReadOptions(included_fields=[self.schema.get_field_index(name) for name in columns])
        try:
            with opened(self.path, self.mark) as file:
                if self.stream:
                    yield from map(_whole, pa.ipc.open_stream(file, options=options))
                    return
                reader = pa.ipc.open_file(file, options=options)
                numbers = range(reader.num_record_batches) if number is None else [number]
                if number is not None and number >= reader.num_record_batches:
                    raise changed(self.path)
                for one in numbers:
                    yield _whole(reader.get_batch(one))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(self.path, error) from None


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, if its offsets are within its values: reading on in a damaged one would crash the process."""
    batch.validate(full=True)
    return batch


def _narrowest(schema: pa.Schema) -> list[str]:
    """The column that is quickest to read."""

    def width(field: pa.Field) -> int:
        return int(field.type.bit_width) if pa.types.is_primitive(field.type) else 1 << 16

    return [field.name for field in sorted(schema, key=width)[:1]]


def _open_arrow(path: Location) -> ArrowFile:
    begin, end, size = file_ends(path, len(_END))
    if size == 0:
        raise BadInput(f"{path}: the file is empty (0 bytes), not an Arrow file. Write it again, or leave it out.")
    if begin.startswith(_FEATHER_1):
        raise BadInput(f"{path}: a Feather file of version 1. Write it as version 2, or as Parquet.")
    stream = not begin.startswith(_FILE)
    try:
        with opened_with_mark(path) as (file, mark):
            schema = (pa.ipc.open_stream(file) if stream else pa.ipc.open_file(file)).schema
            decode_names(schema)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None
    if stream and end != _END:  # a stream that was cut between two batches can be read without an error
        raise _truncated(path, size)
    return ArrowFile(path, schema, stream, mark)


def _unreadable(path: Location, error: Exception) -> BadInput:
    if isinstance(path, RemotePath) and is_store_fault(error):
        return store_fault(path, error)
    try:
        begin, end, size = file_ends(path, len(_END))
    except BadInput as refusal:
        return refusal
    stream = begin.startswith(_END[:4])
    if not stream and not begin.startswith(_FILE):
        return BadInput(f"{path}: not an Arrow file. Convert it, or leave it out.")
    if not (end == _END if stream else end.endswith(_FILE)):
        return _truncated(path, size)
    return BadInput(f"{path}: a damaged Arrow file ({short(error)}). Write it again, or leave it out.")


def _truncated(path: Location, size: int) -> BadInput:
    return BadInput(
        f"{path}: a truncated Arrow file, whose end is missing after {size:,} bytes. Write it again, or leave it out."
    )

"""Where a log comes from: files or Arrow data, as parts that can be read side by side."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from foretest.errors import BadInput, nearest_file

BATCH_ROWS = 1 << 16


ROW_NUMBER = "foretest_row"  # the column of a packed log that says where its rows stood
PACKED = b"foretest.packed"  # in the metadata of its files
AGGREGATES = b"foretest.aggregates"  # in that of saved aggregates


class Chunk(NamedTuple):
    """A batch of rows and where it stands."""

    batch: pa.RecordBatch
    source: str
    row: int  # of its first row, within the source
    position: int  # of its first row, within the whole log; in a packed log, of the log's first row

    def positions(self) -> npt.NDArray[np.int64]:
        """Where each row stands within the whole log."""
        if ROW_NUMBER in self.batch.schema.names:
            return self.position + np.asarray(self.batch[ROW_NUMBER])
        return np.arange(self.position, self.position + self.batch.num_rows, dtype=np.int64)


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


def open_source(log: Any) -> Source:
    """A log from what a user has: a path, glob or folder of Parquet, a list of these, or anything that speaks Arrow."""
    if isinstance(log, str | Path):
        return _whole(ParquetFiles(_expand(log)))
    if isinstance(log, list | tuple) and log and all(isinstance(item, str | Path) for item in log):
        return _whole(ParquetFiles(_once([path for item in log for path in _expand(item)])))
    if is_spark_frame(log):  # it speaks Arrow too, but would come to this machine
        from foretest.engines.spark import SparkFrame

        return SparkFrame(log)
    if isinstance(log, pa.Table):
        return ArrowTable(log)
    if isinstance(log, pa.RecordBatch):
        return ArrowTable(pa.Table.from_batches([log]))
    if hasattr(log, "collect") and hasattr(log, "lazy"):  # a Polars LazyFrame has no Arrow stream of its own
        log = log.collect()
    if isinstance(log, pa.RecordBatchReader):
        return ArrowStream(log)
    if hasattr(log, "__arrow_c_stream__"):
        try:
            if hasattr(log, "__len__"):
                return ArrowTable(pa.table(log))
            return ArrowStream(pa.RecordBatchReader.from_stream(log))
        except pa.ArrowException as error:  # a pandas column of mixed types, for one
            raise BadInput(f"the {type(log).__name__} cannot be read as an Arrow table ({_short(error)}).") from None
    if isinstance(log, list | tuple) and not log:
        raise BadInput("the list of logs is empty: expected at least one path.")
    raise BadInput(
        f"a log of type {type(log).__name__} cannot be read: expected a path, a list of paths, or an Arrow, pandas or"
        " Polars table."
    )


def is_spark_frame(log: Any) -> bool:
    """Is it a DataFrame of Spark's, classic or Connect? pyspark itself is not imported."""
    return type(log).__module__.startswith("pyspark.") and hasattr(log, "mapInArrow")


def _expand(item: str | Path) -> list[Path]:
    if "://" in str(item):
        raise BadInput(f"{item}: only local files are read. Copy it here, or give an Arrow stream of it from Python.")
    path = Path(item).expanduser()
    if path.is_dir():
        found = sorted(p for p in path.rglob("*.parquet") if p.is_file() and _is_data(p))
        if not found:
            raise BadInput(f"{path}: the folder holds no .parquet file, nor do its subfolders.")
        return found
    if path.exists():
        return [path]
    if glob.has_magic(str(path)):
        matches = sorted(Path(p) for p in glob.glob(str(path), recursive=True))
        found = [file for p in matches if _is_data(p) for file in (_expand(p) if p.is_dir() else [p])]
        if not found:
            raise BadInput(f"{item}: no file matches this pattern.")
        return found
    raise BadInput(f"{path}: no such file or folder.{nearest_file(path)}")


def _is_data(path: Path) -> bool:
    """Writers leave marks such as _SUCCESS beside the data."""
    return not path.name.startswith(("_", "."))


def _once(paths: list[Path]) -> list[Path]:
    """The same paths; a file that is there twice would count twice."""
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise BadInput(f"{path}: this file is named twice, so its rows would count twice. Leave one out.")
        seen.add(path.resolve())
    return paths


def pack_of(schema: pa.Schema) -> str | None:
    """The name of the packed log that a file is half of; None of any other file."""
    name = (schema.metadata or {}).get(PACKED)
    return None if name is None else name.decode()


def _whole(files: ParquetFiles) -> ParquetFiles:
    """The same files; half of a packed log would be taken for all of it."""
    packs = [(path.parent, pack_of(schema)) for path, (schema, _) in zip(files.paths, files._files, strict=True)]
    for path, pack in zip(files.paths, packs, strict=True):
        if pack[1] is not None and packs.count(pack) != 2:
            raise BadInput(f"{path}: one of the two files of a packed log. Give its folder, {path.parent}.")
    return files


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files in order; a part is a run of row groups of about a million rows at the most."""

    paths: list[Path]
    repeatable = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "_metadata", [_open_parquet(path) for path in self.paths])

    @property
    def rows(self) -> int:
        return sum(metadata.num_rows for _, metadata in self._files)

    @property
    def _files(self) -> list[tuple[pa.Schema, pq.FileMetaData]]:
        return self._metadata  # type: ignore[attr-defined, no-any-return]

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [(str(path), schema) for path, (schema, _) in zip(self.paths, self._files, strict=True)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        parts: list[Part] = []
        position = 0
        packs: dict[tuple[Path, str], int] = {}
        for path, (schema, metadata) in zip(self.paths, self._files, strict=True):
            row = 0
            pack = pack_of(schema)
            begin = None if pack is None else packs.setdefault((path.parent, pack), position)
            wanted = list(columns) if begin is None else list(dict.fromkeys([*columns, ROW_NUMBER]))
            for group in range(metadata.num_row_groups):
                at = position + row if begin is None else begin
                parts.append(_row_group(path, group, row, at, wanted, batch_rows))
                row += metadata.row_group(group).num_rows
            position += row
        return parts


def _open_parquet(path: Path) -> tuple[pa.Schema, pq.FileMetaData]:
    try:
        with pq.ParquetFile(path) as file:
            return file.schema_arrow, file.metadata
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def _row_group(path: Path, group: int, row: int, position: int, columns: list[str], batch_rows: int) -> Part:
    def read() -> Iterator[Chunk]:
        at = 0
        try:
            # pre_buffer would hold whole row groups in memory
            with pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False):
                    numbered = ROW_NUMBER in columns
                    yield Chunk(batch, str(path), row + at, position if numbered else position + at)
                    at += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from None

    return read


def _unreadable(path: Path, error: Exception) -> BadInput:
    if isinstance(error, FileNotFoundError):
        return BadInput(f"{path}: no such file or folder.")
    if isinstance(error, PermissionError):
        return BadInput(f"{path}: permission denied.")
    try:
        with path.open("rb") as file:
            begin = file.read(4)
            file.seek(0, 2)
            size = file.tell()
            file.seek(max(0, size - 4))
            end = file.read(4)
    except OSError as trouble:
        return BadInput(f"{path}: cannot be read ({trouble.strerror or trouble}).")
    if size == 0:
        return BadInput(f"{path}: the file is empty (0 bytes), not a Parquet file. Write it again, or leave it out.")
    if begin != _MAGIC:
        return BadInput(f"{path}: not a Parquet file. Convert it to Parquet, or leave it out.")
    if end != _MAGIC:
        return BadInput(
            f"{path}: a truncated Parquet file, whose end is missing after {size:,} bytes. Write it again, or leave it"
            " out."
        )
    return BadInput(f"{path}: a damaged Parquet file ({_short(error)}). Write it again, or leave it out.")


_MAGIC = b"PAR1"  # both ends of a Parquet file


def _short(error: Exception) -> str:
    """The first line of an error of Arrow's."""
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


@dataclass(frozen=True)
class ArrowTable:
    """A table in memory."""

    table: pa.Table
    repeatable = True

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [("the table", self.table.schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        table = self.table.select(list(columns))

        def read() -> Iterator[Chunk]:
            at = 0
            for batch in table.to_batches(max_chunksize=batch_rows):
                yield Chunk(batch, "the table", at, at)
                at += batch.num_rows

        return [read]


@dataclass(frozen=True)
class ArrowStream:
    """A stream of batches that passes once."""

    reader: pa.RecordBatchReader
    repeatable = False
    rows: ClassVar[None] = None

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        return [("the stream", self.reader.schema)]

    def parts(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> list[Part]:
        def read() -> Iterator[Chunk]:
            at = 0
            for whole in self.reader:
                batch = whole.select(list(columns))
                for begin in range(0, batch.num_rows, batch_rows):
                    piece = batch.slice(begin, batch_rows)
                    yield Chunk(piece, "the stream", at, at)
                    at += piece.num_rows

        return [read]


def spool(source: Source, columns: Sequence[str], folder: str) -> Source:
    """A one-shot stream as a temporary Parquet file, for those who must read it twice."""
    path = Path(folder) / "stream.parquet"
    [(_, schema)] = source.schemas()
    names = list(dict.fromkeys(columns))
    with pq.ParquetWriter(path, pa.schema([schema.field(name) for name in names])) as writer:
        for part in source.parts(names):
            for chunk in part():
                writer.write_batch(chunk.batch.select(names))
    return ParquetFiles([path])

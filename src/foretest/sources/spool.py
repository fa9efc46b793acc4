"""A stream that can be read once, written to a file so that it can be read twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from foretest.errors import BadInput
from foretest.sources.base import Source
from foretest.sources.parquet import ParquetFiles


class Spooled(ParquetFiles):
    """A stream in a temporary file. Messages name what the user gave, not the file."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__([path])
        self.names = [name]


def spool(source: Source, columns: Sequence[str], folder: str) -> Spooled:
    """A stream, with these columns, as a Parquet file in the folder."""
    path = Path(folder) / "stream.parquet"
    [(name, schema)] = source.schemas()
    names = list(dict.fromkeys(columns))
    parts = source.parts(names)
    try:
        with pq.ParquetWriter(path, pa.schema([schema.field(name) for name in names], schema.metadata)) as writer:
            for part in parts:
                for chunk in part():
                    writer.write_batch(chunk.batch.select(names))
    except OSError as error:
        raise BadInput(
            f"{path}: the log can be read only once, and could not be saved to be read again ({_reason(error)}). Set"
            " TMPDIR to a folder with more room, or give the log as a file."
        ) from None
    return Spooled(path, name)


def _reason(error: OSError) -> str:
    """The reason the system gives, which Arrow's message has at its end."""
    return str(error).splitlines()[0].rpartition("[errno ")[2].partition("] ")[2] or error.strerror or str(error)

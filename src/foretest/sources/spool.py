"""A one-shot stream, kept for those who must read it twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from foretest.errors import BadInput
from foretest.sources.base import Source
from foretest.sources.parquet import ParquetFiles


def spool(source: Source, columns: Sequence[str], folder: str) -> Source:
    """A one-shot stream as a temporary Parquet file."""
    path = Path(folder) / "stream.parquet"
    [(_, schema)] = source.schemas()
    names = list(dict.fromkeys(columns))
    try:
        with pq.ParquetWriter(path, pa.schema([schema.field(name) for name in names])) as writer:
            for part in source.parts(names):
                for chunk in part():
                    writer.write_batch(chunk.batch.select(names))
    except OSError as error:
        raise BadInput(
            f"{path}: the log passes once and could not be kept for a second reading ({_reason(error)}). Set TMPDIR to"
            " a folder with more room, or give the log as a file."
        ) from None
    return ParquetFiles([path])


def _reason(error: OSError) -> str:
    """Arrow tells the system's words after its own."""
    return str(error).splitlines()[0].rpartition("[errno ")[2].partition("] ")[2] or error.strerror or str(error)

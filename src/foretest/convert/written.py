"""A converted log on disk: log.parquet and settings.toml in a folder, each whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from foretest.convert.settings_text import settings_text
from foretest.sources.parquet import refuse_unwritable
from foretest.storage.ownership import marked_schema, marked_toml, own_files
from foretest.stores import Location

LOG, SETTINGS = "log.parquet", "settings.toml"


def write_converted(
    folder: Location,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    tables: Mapping[str, Any],
    comment: str,
    *,
    replace: bool = False,
) -> int:
    """Write the displays and the settings that go with them; the number of displays."""
    refuse_unwritable(f"{folder / LOG}", schema)
    rows = 0
    with own_files([folder / LOG, folder / SETTINGS], replace=replace) as (log, settings):
        with pq.ParquetWriter(log, marked_schema(schema), compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        settings.write_text(marked_toml(settings_text(tables, comment)), encoding="utf-8")
    return rows

"""Where a log comes from: files, tables, queries and streams, as parts that can be read in parallel."""

from foretest.sources.arrow_files import ArrowFiles
from foretest.sources.base import (
    AGGREGATES,
    BATCH_BYTES,
    BATCH_ROWS,
    FOLDED,
    PACKED,
    ROW_NUMBER,
    Chunk,
    Part,
    Remarks,
    Source,
    pack_of,
)
from foretest.sources.csv_files import CsvFiles
from foretest.sources.files import LogFiles
from foretest.sources.json_files import JsonFiles
from foretest.sources.lake_source import LakeLog
from foretest.sources.opening import open_source
from foretest.sources.parquet import ParquetFiles
from foretest.sources.queries import Relation, Sql, SqlQuery
from foretest.sources.spool import spool
from foretest.sources.tables import ArrowDataset, ArrowStream, ArrowTable, LazyPolars, PandasFrame

__all__ = [
    "AGGREGATES",
    "BATCH_BYTES",
    "BATCH_ROWS",
    "FOLDED",
    "PACKED",
    "ROW_NUMBER",
    "ArrowDataset",
    "ArrowFiles",
    "ArrowStream",
    "ArrowTable",
    "Chunk",
    "CsvFiles",
    "JsonFiles",
    "LakeLog",
    "LazyPolars",
    "LogFiles",
    "PandasFrame",
    "ParquetFiles",
    "Part",
    "Relation",
    "Remarks",
    "Source",
    "Sql",
    "SqlQuery",
    "open_source",
    "pack_of",
    "spool",
]

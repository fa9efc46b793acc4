"""A log from whatever a user gives: paths, SQL, dataframes, Arrow data."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from foretest.errors import BadInput
from foretest.sources.arrow_files import ArrowFiles
from foretest.sources.base import Source, decode_names, pack_of, short
from foretest.sources.csv_files import CsvFiles
from foretest.sources.file_kinds import ARROW, CSV, JSON, PARQUET
from foretest.sources.json_files import JsonFiles
from foretest.sources.lake_tables import DELTA, LakeTable, lake_table
from foretest.sources.parquet import ParquetFiles
from foretest.sources.paths import find_files
from foretest.sources.queries import Relation, Sql, SqlQuery
from foretest.sources.some_rows import SomeRows
from foretest.sources.spool import Spooled
from foretest.sources.tables import ArrowDataset, ArrowStream, ArrowTable, LazyPolars, PandasFrame
from foretest.stores import Location, listed_location

_FILES: dict[str, Callable[[list[Location]], Source]] = {
    PARQUET: ParquetFiles,
    ARROW: ArrowFiles,
    CSV: CsvFiles,
    JSON: JsonFiles,
}


def open_source(log: Any) -> Source:
    """A log from a path, glob or folder (or a list of these), SQL, a DuckDB relation, a dataframe, or Arrow data."""
    if isinstance(log, Spooled | SomeRows):
        return log
    if isinstance(log, str | Location):
        return _open_files([log])
    if isinstance(log, list | tuple) and log and all(isinstance(item, str | Location) for item in log):
        return _open_files(log)
    if isinstance(log, list | tuple) and not log:
        raise BadInput("the list of logs is empty: expected at least one path.")
    if isinstance(log, Sql):
        return SqlQuery(log.query)
    if is_spark_frame(log):  # it can be read as Arrow too, but all its rows would be sent to this machine
        from foretest.sources.spark_frames import SparkFrame

        return SparkFrame(log)
    # an object can only be of a library that is loaded
    if _is_a(log, "duckdb", "DuckDBPyRelation"):
        return Relation(log)
    if _is_a(log, "pandas", "DataFrame"):
        return PandasFrame(log)
    if _is_a(log, "polars", "LazyFrame"):
        return LazyPolars(log)
    if _is_a(log, "pyarrow.dataset", "Dataset"):
        return _with_decodable_names(ArrowDataset(log))
    return _with_decodable_names(_open_arrow(log))


def is_spark_frame(log: Any) -> bool:
    """Is it a DataFrame of Spark, classic or Connect? pyspark is not imported to find out."""
    return type(log).__module__.startswith("pyspark.") and hasattr(log, "mapInArrow")


def _open_files(items: Any) -> Source:
    tables = [table for item in items if (table := lake_table(item)) is not None]
    if tables:
        return _open_table(tables[0], alone=len(items) == 1)
    kind, paths = find_files(items)
    source = _FILES[kind](paths)
    if kind == PARQUET:
        _refuse_halves(source)
    return source


def _open_table(table: LakeTable, *, alone: bool) -> Source:
    """A table of Delta Lake or Iceberg at one version; it is a log by itself."""
    if not alone:
        raise BadInput(f"{table.name}: a table of {table.kind} is a log by itself. Give it alone, without other logs.")
    if table.kind == DELTA:
        from foretest.sources.delta import DeltaLog

        return DeltaLog(table)
    from foretest.sources.iceberg import IcebergLog

    return IcebergLog(table)


def _refuse_halves(source: Source) -> None:
    """Refuse one file of a packed log: it would be taken for the whole log."""
    packs = [(listed_location(name), pack_of(schema)) for name, schema in source.schemas()]
    named = [(path.parent, pack) for path, pack in packs]
    for path, pack in packs:
        if pack is not None and named.count((path.parent, pack)) != 2:
            raise BadInput(f"{path}: one of the two files of a packed log. Give its folder, {path.parent}.")


def _with_decodable_names(source: Source) -> Source:
    """The source, if all names of its columns are text."""
    for name, schema in source.schemas():
        try:
            decode_names(schema)
        except UnicodeDecodeError as error:
            raise BadInput(f"{name}: {short(error)}. Rename it.") from None
    return source


def _open_arrow(log: Any) -> Source:
    if isinstance(log, pa.Table):
        return ArrowTable(log)
    if isinstance(log, pa.RecordBatch):
        return ArrowTable(pa.Table.from_batches([log]))
    if isinstance(log, pa.RecordBatchReader):
        return ArrowStream(log)
    if hasattr(log, "__arrow_c_stream__"):
        try:
            if hasattr(log, "__len__"):
                return ArrowTable(pa.table(log))
            return ArrowStream(pa.RecordBatchReader.from_stream(log))
        except pa.ArrowException as error:
            raise BadInput(f"the {type(log).__name__} cannot be read as an Arrow table ({short(error)}).") from None
    raise BadInput(
        f"a log of type {type(log).__name__} cannot be read: expected a path, a list of paths, SQL (foretest.Sql), a"
        " DuckDB relation, or an Arrow, pandas, Polars or Spark table."
    )


def _is_a(log: Any, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(log, kind)

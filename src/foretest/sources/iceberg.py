"""Logs in tables of Iceberg, through the library pyiceberg and without a catalog: from the metadata in their folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa

from foretest.background import in_background
from foretest.errors import BadInput
from foretest.records import dataclass
from foretest.sources.base import short
from foretest.sources.files import Piece
from foretest.sources.lake_source import DataFile, LakeLog, ParquetOfTable, no_version
from foretest.sources.lake_tables import METADATA, LakeTable, is_metadata_name, without_extra
from foretest.stores import Location, RemotePath, is_address, listed_location
from foretest.stores.faults import is_store_fault, store_fault
from foretest.stores.file_systems import CONNECT_SECONDS, REQUEST_SECONDS, endpoint, s3_region

_NUMBER = re.compile(r"v?(\d+)[-.]")  # 00003-….metadata.json, v3.metadata.json
_SHOWN = 5  # snapshots in a message


class IcebergLog(LakeLog):
    """An Iceberg table at one snapshot."""

    def __init__(self, table: LakeTable) -> None:
        super().__init__(table)
        self._iceberg = in_background(lambda: _open(table))
        self._snapshot = _snapshot(table, self._iceberg)
        _ = self.data_files  # a table that cannot be read is refused before any row is

    @property
    def version(self) -> int:
        return int(self._snapshot.snapshot_id)

    @cached_property
    def _schema(self) -> Any:
        """The schema of the snapshot, in the library's own form."""
        return self._iceberg.scan(snapshot_id=self.version).projection()

    @cached_property
    def schema(self) -> pa.Schema:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return schema_to_pyarrow(self._schema, include_field_ids=False)

    @property
    def rows(self) -> int | None:
        return None if any(task.delete_files for task in self._tasks) else super().rows

    @cached_property
    def _tasks(self) -> list[Any]:
        def plan() -> list[Any]:
            return list(self._iceberg.scan(snapshot_id=self.version).plan_files())

        try:
            return in_background(plan)
        except Exception as error:  # the library's errors have many classes
            raise _unreadable(self.table, error) from None

    def _data_files(self) -> list[DataFile]:
        """Files as they were written, or those that the library must read."""
        plain = [task for task in self._tasks if not task.delete_files and _is_parquet(task)]
        opened = dict(zip(map(id, plain), self.opened([_place(task.file.file_path) for task in plain]), strict=True))
        files: list[DataFile] = []
        for task in self._tasks:
            file = opened.get(id(task))
            if file is not None and self._is_as_written(file.schema):
                files.append(ParquetOfTable(file, self.schema, {}))
            else:
                files.append(_ReadByLibrary(self.table, self._iceberg, self._schema, task))
        return files

    def _is_as_written(self, written: pa.Schema) -> bool:
        """Has the file all columns by the names, numbers and types that they have in the snapshot's schema?"""
        from pyiceberg.io.pyarrow import pyarrow_to_schema

        try:
            own = {field.name: (field.field_id, field.field_type) for field in pyarrow_to_schema(written).fields}
        except Exception:  # a file without the numbers of its columns
            return False
        return all(own.get(field.name) == (field.field_id, field.field_type) for field in self._schema.fields)


@dataclass(frozen=True)
class _ReadByLibrary:
    """A data file with deleted rows, or of another schema: the library holds its needed columns in memory."""

    table: LakeTable
    iceberg: Any
    schema: Any
    task: Any

    @property
    def path(self) -> Location:
        return _place(self.task.file.file_path)

    @property
    def rows(self) -> int:
        return int(self.task.file.record_count)

    def pieces(self, columns: list[str], batch_rows: int) -> list[Piece]:
        return [Piece(0, partial(self._read, columns, batch_rows))]

    def _read(self, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        scan = ArrowScan(self.iceberg.metadata, self.iceberg.io, self.schema.select(*columns), AlwaysTrue())
        try:
            for batch in scan.to_record_batches([self.task]):
                for begin in range(0, batch.num_rows, batch_rows):
                    yield batch.select(columns).slice(begin, batch_rows)
        except Exception as error:  # the library's errors have many classes
            raise _unreadable(self.table, error) from None


def _is_parquet(task: Any) -> bool:
    return str(getattr(task.file.file_format, "value", task.file.file_format)).upper() == "PARQUET"


def _place(address: str) -> Location:
    """The place of a file that the metadata name: an address, also of a local file, or a path."""
    if address.startswith("file:"):
        return Path(unquote(urlparse(address).path))
    if address.startswith(("s3a://", "s3n://")):
        address = f"s3://{address.partition('://')[2]}"
    return listed_location(address) if is_address(address) else Path(address)


def _open(table: LakeTable) -> Any:
    try:
        from pyiceberg.table import StaticTable
    except ImportError:
        raise without_extra(table) from None
    metadata = _newest_metadata(table)
    place = str(metadata) if isinstance(metadata, RemotePath) else str(metadata.absolute())
    try:
        return StaticTable.from_metadata(place, _properties())
    except Exception as error:  # the library's errors have many classes
        raise _unreadable(table, error) from None


def _properties() -> dict[str, str]:
    """What the library is told beside what it finds itself: another server, and how long to wait."""
    waits = {"s3.connect-timeout": f"{CONNECT_SECONDS:g}", "s3.request-timeout": f"{REQUEST_SECONDS:g}"}
    known = {"s3.endpoint": endpoint(), "s3.region": s3_region()}
    return {
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", **waits,
        **{name: value for name, value in known.items() if value is not None},
    }  # fmt: skip


def _newest_metadata(table: LakeTable) -> Location:
    """The metadata of the table as it is now: what a hint names, else the file with the highest number."""
    folder = table.folder / METADATA
    names = [path.name for path in folder.iterdir()]
    if "version-hint.text" in names:
        hint = (folder / "version-hint.text").read_text(encoding="utf-8").strip()
        named = [name for name in names if is_metadata_name(name) and name.startswith((f"v{hint}.", f"{hint}-"))]
        if hint and len(named) == 1:
            return folder / named[0]
    numbers = {name: int(found[1]) for name in names if is_metadata_name(name) and (found := _NUMBER.match(name))}
    newest = [name for name, number in numbers.items() if number == max(numbers.values())]
    if len(newest) == 1:
        return folder / newest[0]
    what = "no metadata file with a number" if not newest else f"{len(newest)} metadata files with one number"
    raise BadInput(
        f"{table.folder}: the Iceberg table has {what}, and only its catalog knows which counts. Read the table with"
        " pyiceberg from Python, and give table.scan().to_arrow_batch_reader()."
    )


def _snapshot(table: LakeTable, iceberg: Any) -> Any:
    if table.version is None:
        newest = iceberg.current_snapshot()
        if newest is None:
            raise BadInput(f"{table.folder}: the Iceberg table has no snapshot yet, and so no rows.")
        return newest
    snapshot = iceberg.snapshot_by_id(table.version)
    if snapshot is None:
        ids = [str(known.snapshot_id) for known in iceberg.snapshots()]
        shown = ", ".join(ids[-_SHOWN:])
        raise no_version(table, f"Its {'latest ' if len(ids) > _SHOWN else ''}snapshots: {shown or 'none'}.")
    return snapshot


def _unreadable(table: LakeTable, error: Exception) -> BadInput:
    """The sentence for a table that the library cannot read."""
    if isinstance(table.folder, RemotePath) and is_store_fault(error):
        return store_fault(table.folder, error)
    return BadInput(
        f"{table.folder}: the Iceberg table cannot be read ({short(error)}). If it was moved, its metadata name files"
        " that are elsewhere; else write the snapshot that you want as Parquet, and give that."
    )

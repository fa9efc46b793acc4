"""Logs in tables of Delta Lake, through the library deltalake."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from foretest.background import in_background
from foretest.errors import BadInput
from foretest.sources.base import short
from foretest.sources.lake_source import LakeLog, ParquetOfTable, no_version
from foretest.sources.lake_tables import LakeTable, without_extra
from foretest.stores import RemotePath
from foretest.stores.addresses import S3
from foretest.stores.faults import is_store_fault, store_fault
from foretest.stores.file_systems import ATTEMPTS, CONNECT_SECONDS, REQUEST_SECONDS, endpoint


class DeltaLog(LakeLog):
    """A Delta table at one version: its live files, with the columns that their partitions give."""

    def __init__(self, table: LakeTable) -> None:
        super().__init__(table)
        self._delta = in_background(lambda: _open(table))
        _ = self.data_files  # a table that cannot be read is refused before any row is

    @property
    def version(self) -> int:
        return int(self._delta.version())

    @property
    def schema(self) -> pa.Schema:
        return self._dataset.schema

    @cached_property
    def _dataset(self) -> Any:
        from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

        folder = self.table.folder
        place = folder.place if isinstance(folder, RemotePath) else str(folder.absolute())
        files = folder.file_system if isinstance(folder, RemotePath) else LocalFileSystem()
        try:
            return self._delta.to_pyarrow_dataset(filesystem=SubTreeFileSystem(place, files))
        except Exception as error:  # the library's errors have many classes
            raise _unreadable(self.table, error) from None

    def _data_files(self) -> list[ParquetOfTable]:
        from pyarrow.dataset import get_partition_keys

        fragments = list(self._dataset.get_fragments())
        files = self.opened([self.table.folder / fragment.path for fragment in fragments])
        return [
            ParquetOfTable(file, self.schema, _scalars(get_partition_keys(fragment.partition_expression)))
            for file, fragment in zip(files, fragments, strict=True)
        ]


def _scalars(values: Mapping[str, Any]) -> dict[str, pa.Scalar]:
    return {name: value if isinstance(value, pa.Scalar) else pa.scalar(value) for name, value in values.items()}


def _open(table: LakeTable) -> Any:
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise without_extra(table) from None
    address = str(table.folder) if isinstance(table.folder, RemotePath) else str(table.folder.absolute())
    options = _options(table.folder) if isinstance(table.folder, RemotePath) else None
    try:
        newest = DeltaTable(address, storage_options=options)
        if table.version is None or table.version == newest.version():
            return newest
        if table.version > newest.version():
            raise no_version(table, f"The newest is {newest.version()}.")
        return DeltaTable(address, version=table.version, storage_options=options)
    except BadInput:
        raise
    except Exception as error:  # the library's errors have many classes
        raise _unreadable(table, error) from None


def _options(folder: RemotePath) -> dict[str, str]:
    """What the library is told beside what it finds itself: another server, and how long to wait."""
    waits = {
        "connect_timeout": f"{CONNECT_SECONDS:g}s", "timeout": f"{REQUEST_SECONDS:g}s", "max_retries": str(ATTEMPTS),
        "retry_timeout": f"{ATTEMPTS * REQUEST_SECONDS:g}s",
    }  # fmt: skip
    server = endpoint() if folder.scheme == S3 else None
    if server is None:
        return waits
    return {**waits, "AWS_ENDPOINT_URL": server, "AWS_ALLOW_HTTP": str(server.startswith("http://")).lower()}


def _unreadable(table: LakeTable, error: Exception) -> BadInput:
    """The sentence for a table that the library cannot read."""
    if isinstance(table.folder, RemotePath) and is_store_fault(error):
        return store_fault(table.folder, error)
    version = "" if table.version is None else f" at version {table.version}"
    return BadInput(
        f"{table.folder}: the Delta Lake table cannot be read{version} ({short(error)}). Write the version that you"
        " want as Parquet, with the tool that wrote the table, and give that."
    )

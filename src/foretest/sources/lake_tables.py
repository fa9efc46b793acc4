"""Tables of Delta Lake and Iceberg: how they are named and known, and why their files are not read one by one.

Their folders also have files of rows that were deleted or replaced: only the table's own metadata say which count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from foretest.background import side_by_side
from foretest.errors import BadInput
from foretest.files import user_path
from foretest.stores import Location, RemotePath

DELTA, ICEBERG = "Delta Lake", "Iceberg"
DELTA_LOG, METADATA, _DATA = "_delta_log", "metadata", "data"
_VERSION = re.compile(r"(.+)#version=([^/#]*)", re.S)
EXTRA = 'pip install "foretest[lake]"'


class LakeTable(NamedTuple):
    """A table as a user names it."""

    folder: Location
    kind: str
    version: int | None  # of Delta Lake a version, of Iceberg a snapshot; None for the newest

    @property
    def name(self) -> str:
        """As it is named, with its version."""
        return str(self.folder) if self.version is None else f"{self.folder}#version={self.version}"


def lake_table(item: str | Location) -> LakeTable | None:
    """The table that a log's name stands for: its folder, with #version=N at the end for another than the newest."""
    path, version = user_path(item), None
    named = _VERSION.fullmatch(str(item))
    if named and not path.exists():
        path = user_path(named[1])
        if not re.fullmatch(r"[0-9]{1,19}", named[2]):
            raise BadInput(f"{item}: expected a whole number after #version=, as in {path}#version=3.")
        version = int(named[2])
    kind = kind_of_table(path)
    if kind is not None:
        return LakeTable(path, kind, version)
    if version is not None:
        raise BadInput(f"{path}: no table of Delta Lake or Iceberg, and only these have versions. Leave out #version=.")
    return None


def kind_of_table(path: Location) -> str | None:
    """Delta Lake or Iceberg; None for any other folder."""
    if isinstance(path, RemotePath):
        if not path.key or not path.is_dir():
            return None
        return DELTA if (path / DELTA_LOG).is_dir() else ICEBERG if _is_remote_iceberg(path) else None
    return DELTA if os.path.isdir(path / DELTA_LOG) else ICEBERG if _is_iceberg(path) else None


def refuse_lake_tables(folders: Iterable[Path], remedy: str | None = None) -> None:
    """Refuse folders that are, or are inside, a table of Delta Lake or Iceberg."""
    seen: set[Path] = set()
    for folder in dict.fromkeys(folders):
        # as it was named, so that a message names it so; its other parents; and where links lead
        for way in (folder, Path(os.path.abspath(folder)), Path(os.path.realpath(folder))):
            if way not in seen and _is_iceberg(way):
                raise table_refusal(way, ICEBERG, remedy)
            for place in (way, *way.parents):
                if place in seen:  # then its parents were looked at too
                    break
                seen.add(place)
                if os.path.isdir(place / DELTA_LOG):  # unlike Path.is_dir, False where permission is denied
                    raise table_refusal(place, DELTA, remedy)
                if place.name == _DATA and _is_iceberg(place.parent):
                    raise table_refusal(place.parent, ICEBERG, remedy)


def refuse_remote_lake_table(folder: RemotePath) -> None:
    """Refuse a folder of a store that is, or is inside, a table of Delta Lake or Iceberg."""
    places = [folder, *folder.parents]
    tables = dict.fromkeys([folder, *(place.parent for place in places if place.name == _DATA)])
    deltas = side_by_side([(place / DELTA_LOG).is_dir for place in places], threads=len(places))
    for place, is_delta in zip(places, deltas, strict=True):
        if is_delta:
            raise table_refusal(place, DELTA)
    for table in tables:
        if _is_remote_iceberg(table):
            raise table_refusal(table, ICEBERG)


def table_refusal(table: Location, kind: str, remedy: str | None = None) -> BadInput:
    """The sentence for files of a table; the remedy is to give the table itself, unless another is named."""
    return BadInput(
        f"{table}: a table of {kind}, not a plain folder: some of its files may have rows that were deleted or"
        " replaced, and read as plain Parquet these would count."
        f" {remedy or f'Give the folder of the table, {table}, as the only log.'}"
    )


def without_extra(table: LakeTable) -> BadInput:
    """The sentence for a table where the libraries that read it are not installed."""
    return table_refusal(
        table.folder, table.kind,
        f"Install what reads the table itself, {EXTRA}, or write its current version as Parquet and give that.",
    )  # fmt: skip


def is_metadata_name(name: str) -> bool:
    """Is it the name of a file of Iceberg's metadata?"""
    return name.endswith((".metadata.json", ".metadata.json.gz"))


def _is_iceberg(folder: Path) -> bool:
    """Does the folder have Iceberg's metadata beside its data?"""
    if not os.path.isdir(folder / _DATA):
        return False
    try:
        names = os.listdir(folder / METADATA)
    except OSError:
        return False
    return any(map(is_metadata_name, names))


def _is_remote_iceberg(folder: RemotePath) -> bool:
    """Does the folder of a store have Iceberg's metadata beside its data?"""
    if not (folder / _DATA).is_dir() or not (folder / METADATA).is_dir():
        return False
    return any(is_metadata_name(path.name) for path, is_file in (folder / METADATA).listed() if is_file)

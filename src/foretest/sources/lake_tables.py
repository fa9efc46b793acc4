"""Tables of Delta Lake and Iceberg: their folders also have files of rows that were deleted or replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from foretest.errors import BadInput
from foretest.stores import Location, RemotePath

_DELTA, _ICEBERG = "Delta Lake", "Iceberg"
_DATA = "data"  # the folder of an Iceberg table's files
_READ = {
    _DELTA: "test.run(deltalake.DeltaTable(folder).to_pyarrow_table())",
    _ICEBERG: "test.run(table.scan().to_arrow()) of pyiceberg's table",
}


def refuse_lake_tables(folders: Iterable[Path]) -> None:
    """Refuse folders that are, or are inside, a table of Delta Lake or Iceberg."""
    seen: set[Path] = set()
    for folder in dict.fromkeys(folders):
        # as it was named, so that a message names it so; its other parents; and where links lead
        for way in (folder, Path(os.path.abspath(folder)), Path(os.path.realpath(folder))):
            if way not in seen and _is_iceberg(way):
                raise table_refusal(way, _ICEBERG)
            for place in (way, *way.parents):
                if place in seen:  # then its parents were looked at too
                    break
                seen.add(place)
                if os.path.isdir(place / "_delta_log"):  # unlike Path.is_dir, False where permission is denied
                    raise table_refusal(place, _DELTA)
                if place.name == _DATA and _is_iceberg(place.parent):
                    raise table_refusal(place.parent, _ICEBERG)


def refuse_remote_lake_table(folder: RemotePath) -> None:
    """Refuse a folder of a store that is, or is inside, a table of Delta Lake or Iceberg."""
    for place in (folder, *folder.parents) if folder.key else [folder]:
        if (place / "_delta_log").is_dir():
            raise table_refusal(place, _DELTA)
        table = place.parent if place.name == _DATA else place if place == folder else None
        if table is not None and is_remote_iceberg(table):
            raise table_refusal(table, _ICEBERG)


def is_remote_iceberg(folder: RemotePath) -> bool:
    """Does the folder of a store have Iceberg's metadata beside its data?"""
    if not (folder / _DATA).is_dir() or not (folder / "metadata").is_dir():
        return False
    return any(is_metadata_name(path.name) for path, is_file in (folder / "metadata").listed() if is_file)


def is_metadata_name(name: str) -> bool:
    """Is it the name of a file of Iceberg's metadata?"""
    return name.endswith((".metadata.json", ".metadata.json.gz"))


def table_refusal(table: Location, kind: str) -> BadInput:
    return BadInput(
        f"{table}: a table of {kind}, not a plain folder: some of its files may have rows that were deleted or"
        " replaced, and read as plain Parquet these would count. Write its current version as Parquet and give"
        f" that, or give the table itself from Python, as in {_READ[kind]}."
    )


def _is_iceberg(folder: Path) -> bool:
    """Does the folder have Iceberg's metadata beside its data?"""
    if not os.path.isdir(folder / _DATA):
        return False
    try:
        names = os.listdir(folder / "metadata")
    except OSError:
        return False
    return any(map(is_metadata_name, names))

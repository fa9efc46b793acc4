"""Tables of Delta Lake and Iceberg: their folders also have files of rows that were deleted or replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from foretest.errors import BadInput

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
                raise _refusal(way, _ICEBERG)
            for place in (way, *way.parents):
                if place in seen:  # then its parents were looked at too
                    break
                seen.add(place)
                if os.path.isdir(place / "_delta_log"):  # unlike Path.is_dir, False where permission is denied
                    raise _refusal(place, _DELTA)
                if place.name == _DATA and _is_iceberg(place.parent):
                    raise _refusal(place.parent, _ICEBERG)


def _refusal(table: Path, kind: str) -> BadInput:
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
    return any(name.endswith((".metadata.json", ".metadata.json.gz")) for name in names)

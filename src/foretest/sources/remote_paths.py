"""From an address, a pattern or a folder of an object store to the files of a log, by the rules of local ones."""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Iterable

from foretest.errors import BadInput
from foretest.sources.file_kinds import EXPECTED, has_known_ending, is_data, is_walked
from foretest.sources.lake_tables import (
    DELTA,
    DELTA_LOG,
    ICEBERG,
    METADATA,
    is_metadata_name,
    refuse_remote_lake_table,
    table_refusal,
)
from foretest.stores import RemotePath


def expand_remote(path: RemotePath) -> list[RemotePath]:
    """The files of a log that an address stands for."""
    info = path.info()
    if info.is_file:
        refuse_remote_lake_table(path.parent)
        return [path]
    if path.is_dir():
        refuse_remote_lake_table(path)
        return _files_in(path)
    if glob.has_magic(path.key):
        return _matches(path)
    path.refuse_missing_bucket()
    raise BadInput(f"{path}: no such file or folder.")


def _files_in(folder: RemotePath) -> list[RemotePath]:
    """The data files of a folder and its subfolders."""
    listed = [file for file, is_file in folder.listed(recursive=True) if is_file]
    _refuse_tables_within(folder, listed)
    depth = len(folder.parts)
    files = [
        file
        for file in listed
        if has_known_ending(file.name) and is_data(file.name) and all(map(is_walked, file.parts[depth:-1]))
    ]
    if not files:
        raise BadInput(f"{folder}: the folder holds no log, nor do its subfolders. Expected {EXPECTED}.")
    return files


def _refuse_tables_within(folder: RemotePath, files: Iterable[RemotePath]) -> None:
    """Refuse tables of Delta Lake and Iceberg among the subfolders, by what is listed."""
    with_metadata, with_data = set[RemotePath](), set[RemotePath]()
    for file in files:
        names = file.parts[len(folder.parts) : -1]
        for depth, name in enumerate(names):
            table = file.parents[len(names) - depth]
            if name == DELTA_LOG:
                raise table_refusal(table, DELTA)
            if name == METADATA and depth == len(names) - 1 and is_metadata_name(file.name):
                with_metadata.add(table)
            if name == "data":
                with_data.add(table)
    for table in sorted(with_metadata & with_data):
        raise table_refusal(table, ICEBERG)


def _matches(pattern: RemotePath) -> list[RemotePath]:
    """The files that a pattern stands for; a folder that it matches stands for its files."""
    names = pattern.parts[1:]
    fixed = next(place for place, name in enumerate(names) if glob.has_magic(name))
    start = pattern.parents[len(names) - fixed - 1]
    if fixed == 0:
        start.refuse_missing_bucket()
    refuse_remote_lake_table(start)
    found = {start: False} if start.exists() else {}
    for name in names[fixed:]:
        found = _step(found, name)
    files: list[RemotePath] = []
    for path, is_file in sorted(found.items()):
        if is_data(path.name):
            files += [path] if is_file else _files_in(path)
    if not files:
        pattern.refuse_missing_bucket()
        raise BadInput(f"{pattern}: no file matches this pattern.")
    return list(dict.fromkeys(files))


def _step(folders: dict[RemotePath, bool], name: str) -> dict[RemotePath, bool]:
    """What matches one more name of a pattern: each place, and whether it is a file."""
    found: dict[RemotePath, bool] = {}
    for folder, is_file in folders.items():
        if is_file and name != "**":
            continue
        if name == "**":  # the folder itself, and all that is in it
            found[folder] = is_file
            found |= {} if is_file else _visible(folder)
            continue
        fits = re.compile(fnmatch.translate(name)).match
        for path, leaf in folder.listed():
            if path.name == DELTA_LOG:
                raise table_refusal(folder, DELTA)
            if fits(path.name) and (name.startswith(".") or not path.name.startswith(".")):
                found[path] = leaf
    return found


def _visible(folder: RemotePath) -> dict[RemotePath, bool]:
    """All that is in a folder and its subfolders, but for what has a name that begins with a dot."""
    listed, depth = folder.listed(recursive=True), len(folder.parts)
    _refuse_tables_within(folder, [path for path, is_file in listed if is_file])
    return {path: is_file for path, is_file in listed if not any(name.startswith(".") for name in path.parts[depth:])}

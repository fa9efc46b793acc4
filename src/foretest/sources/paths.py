"""From a path, a glob or a folder to the files of a log, and the columns that the names of their folders give."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

import pyarrow as pa

from foretest.errors import BadInput, nearest_file
from foretest.files import refuse_undecodable, user_path
from foretest.sources.file_kinds import EXPECTED, has_known_ending, is_data, is_walked, kind_of
from foretest.sources.lake_tables import refuse_lake_tables
from foretest.sources.remote_paths import expand_remote
from foretest.stores import Location, RemotePath
from foretest.stores.faults import is_store_fault, store_fault


def find_files(items: Iterable[str | Location]) -> tuple[str, list[Location]]:
    """The kind that all files of a log have, and the files that its paths, globs and folders stand for."""
    paths = [path for item in items for path in _expand(item)]
    local = [path for path in paths if isinstance(path, Path)]
    for file in local:
        refuse_undecodable(str(file))
    refuse_lake_tables(folder for path in local for folder in (path.parent, Path(os.path.realpath(path)).parent))
    _refuse_twice(paths)
    first: dict[str, Location] = {}
    for path in paths:
        kind = kind_of(path)
        if kind is None:
            refuse_missing(path)
            raise BadInput(f"{path}: not a log. Expected {EXPECTED}.")
        first.setdefault(kind, path)
    if len(first) > 1:
        (kind, one), (other, two), *_ = first.items()
        raise BadInput(
            f"{one} is {kind} and {two} is {other}: a log is of one kind. Leave one of them out, or name"
            f" the files by a pattern such as '*{one.suffix}'."
        )
    return next(iter(first)), paths


def _expand(item: str | Location) -> Sequence[Location]:
    path = user_path(item)
    if isinstance(path, RemotePath):
        return expand_remote(path)
    try:
        is_folder = path.is_dir()
    except OSError as error:  # a name that is too long
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from None
    if is_folder:
        return _files_in(path)
    if os.path.lexists(path):
        return [path]
    if glob.has_magic(str(path)):
        matches = sorted(Path(p) for p in glob.glob(str(path), recursive=True))
        files = [file for p in matches if is_data(p.name) for file in (_files_in(p) if p.is_dir() else [p])]
        if not files:
            raise BadInput(f"{item}: no file matches this pattern.")
        return files
    broken = _BROKEN_ADDRESS.match(str(path))
    if broken:
        raise BadInput(f'{path}: Path breaks an address: give it as text, "{broken[1]}://{broken[2]}".')
    raise BadInput(f"{path}: no such file or folder.{nearest_file(path)}")


_BROKEN_ADDRESS = re.compile(r"(s3|gs|abfss):/([^/].*)")  # what Path makes of s3://…


def _files_in(folder: Path) -> list[Path]:
    """The data files of a folder and its subfolders; links are followed."""
    files: list[Path] = []
    named_like_files: list[Path] = []
    walked = list(_walk(folder))
    refuse_lake_tables(place for place, _ in walked)  # also one without a file that we know
    for place, names in walked:
        named_like_files += [place] if place != folder and has_known_ending(place.name) else []
        files += [place / name for name in names if has_known_ending(name) and is_data(name)]
    if not files:
        raise BadInput(f"{folder}: the folder holds no log, nor do its subfolders. Expected {EXPECTED}.")
    for place in named_like_files:  # as Spark names folders, but then there are files in it
        if not any(file.is_relative_to(place) for file in files):
            raise BadInput(f"{place}: a folder with the name of a file, and no log in it. Leave it out.")
    return sorted(files)


def _walk(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders and the names of their files; a folder that links lead to again is visited once."""

    def refuse(error: OSError) -> NoReturn:
        raise BadInput(f"{error.filename}: the folder cannot be read ({error.strerror}).")

    seen = set()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        seen.add(os.path.realpath(place))
        folders[:] = [
            name for name in folders if is_walked(name) and os.path.realpath(os.path.join(place, name)) not in seen
        ]
        yield Path(place), names


def _refuse_twice(paths: Sequence[Location]) -> None:
    """Refuse a file that is named twice: its rows would count twice."""
    seen: set[str] = set()
    for path in paths:
        place = os.path.realpath(path) if isinstance(path, Path) else str(path)
        if place in seen:
            raise BadInput(f"{path}: this file is named twice, so its rows would count twice. Leave one out.")
        seen.add(place)


def refuse_missing(path: Location) -> None:
    """Refuse a path at which no file can be read, and say why."""
    if isinstance(path, RemotePath):
        if not path.is_file():
            path.refuse_missing_bucket()
            raise BadInput(f"{path}: no such file or folder.")
        return
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise BadInput(f"{path}: a link to {os.readlink(path)}, which is not there.") from None
        raise BadInput(f"{path}: no such file or folder.") from None
    except PermissionError:
        raise BadInput(f"{path}: permission denied.") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from None
    if stat.S_ISDIR(mode):
        raise BadInput(f"{path}: is a folder, expected a file.")
    if not stat.S_ISREG(mode):
        raise BadInput(f"{path}: neither a file nor a folder.")


def file_ends(path: Location, width: int) -> tuple[bytes, bytes, int]:
    """The first and last `width` bytes of a file, and its size; a file that cannot be opened is refused."""
    refuse_missing(path)
    try:
        with path.open("rb") as file:
            begin = file.read(width)
            size = file.seek(0, 2)
            file.seek(max(0, size - width))
            return begin, file.read(), size
    except PermissionError:
        raise BadInput(f"{path}: permission denied.") from None
    except OSError as error:
        if isinstance(path, RemotePath) and is_store_fault(error):
            raise store_fault(path, error) from None
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from None


# -- partitions -------------------------------------------------------------------------------------------------------

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def partitions(paths: Sequence[Location]) -> list[dict[str, pa.Scalar]]:
    """The columns that Hive-style folders (day=2024-03-01) give to each file.

    A column is of integers if all its values are, else of dates, else of text; 007 is text, not the usual form of 7.

    >>> [columns] = partitions([Path("logs/day=2024-03-01/hour=7/a.parquet")])
    >>> {key: value.as_py() for key, value in columns.items()}
    {'day': datetime.date(2024, 3, 1), 'hour': 7}
    """
    texts = [_texts(path) for path in paths]
    kinds = {
        key: _kind([of_file[key] for of_file in texts if of_file.get(key) is not None])
        for key in dict.fromkeys(key for of_file in texts for key in of_file)
    }
    return [{key: _scalar(text, kinds[key]) for key, text in of_file.items()} for of_file in texts]


def _texts(path: Location) -> dict[str, str | None]:
    """The values that the names of a file's folders give, as text; None for a null."""
    values: dict[str, str | None] = {}
    for folder in path.parts[:-1]:
        key, sign, text = folder.partition("=")
        if sign and key:
            values[unquote(key)] = None if text == _NULL else unquote(text)
    return values


def _kind(values: list[str | None]) -> pa.DataType:
    """The type of a column by its values in all files."""
    if values and all(_INTEGER.fullmatch(text or "") for text in values):
        return pa.int64()
    return pa.date32() if values and all(_is_date(text or "") for text in values) else pa.string()


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _scalar(text: str | None, kind: pa.DataType) -> pa.Scalar:
    if text is None or pa.types.is_string(kind):
        return pa.scalar(text, kind)
    return pa.scalar(int(text) if pa.types.is_integer(kind) else date.fromisoformat(text), kind)

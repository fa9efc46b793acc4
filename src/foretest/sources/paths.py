"""From a path, a glob or a folder to the files of a log, and the columns that the names of their folders give."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

import pyarrow as pa

from foretest.errors import BadInput, nearest_file
from foretest.files import user_path
from foretest.sources.lake_tables import refuse_lake_tables

PARQUET, ARROW, CSV, JSON = "Parquet", "Arrow", "CSV", "JSON lines"
_ENDINGS = {
    PARQUET: (".parquet", ".pq"),
    ARROW: (".arrow", ".arrows", ".feather", ".ipc"),
    CSV: (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    JSON: (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
}
# results and settings end in .json too: in a folder such a file is no log, named by itself it is
_NAMED_ENDINGS = {JSON: (".json", ".json.gz")}
_BEGINNINGS = {b"PAR1": PARQUET, b"ARRO": ARROW}
EXPECTED = "Parquet (.parquet), Arrow (.arrow, .feather), CSV (.csv) or JSON lines (.jsonl)"


def kind_of(path: Path) -> str | None:
    """The kind of a file by the ending of its name, else by its first bytes; None if neither is known."""
    for kind, endings in _ENDINGS.items():
        if path.name.lower().endswith(endings + _NAMED_ENDINGS.get(kind, ())):
            return kind
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return _BEGINNINGS.get(file.read(4))
    except OSError:
        return None


def find_files(items: Iterable[str | Path]) -> tuple[str, list[Path]]:
    """The kind that all files of a log have, and the files that its paths, globs and folders stand for."""
    paths = [path for item in items for path in _expand(item)]
    refuse_lake_tables(folder for path in paths for folder in (path.parent, Path(os.path.realpath(path)).parent))
    _refuse_twice(paths)
    first: dict[str, Path] = {}
    for path in paths:
        kind = kind_of(path)
        if kind is None:
            refuse_missing(path)
            raise BadInput(f"{path}: not a log. Expected {EXPECTED}.")
        first.setdefault(kind, path)
    if len(first) > 1:
        (kind, one), (other, two), *_ = first.items()
        raise BadInput(
            f"{one} is a {kind} file and {two} a {other} file: a log is of one kind. Leave one of them out, or name"
            f" the files by a pattern such as '*{one.suffix}'."
        )
    return next(iter(first)), paths


def _expand(item: str | Path) -> list[Path]:
    if "://" in str(item):
        raise BadInput(f"{item}: only local files are read. Copy it here, or give an Arrow stream of it from Python.")
    path = user_path(item)
    if path.is_dir():
        return _files_in(path)
    if os.path.lexists(path):
        return [path]
    if glob.has_magic(str(path)):
        matches = sorted(Path(p) for p in glob.glob(str(path), recursive=True))
        files = [file for p in matches if _is_data(p) for file in (_files_in(p) if p.is_dir() else [p])]
        if not files:
            raise BadInput(f"{item}: no file matches this pattern.")
        return files
    raise BadInput(f"{path}: no such file or folder.{nearest_file(path)}")


def _files_in(folder: Path) -> list[Path]:
    """The data files of a folder and its subfolders; links are followed."""
    endings = tuple(ending for known in _ENDINGS.values() for ending in known)
    files: list[Path] = []
    named_like_files: list[Path] = []
    walked = list(_walk(folder))
    refuse_lake_tables(place for place, _ in walked)  # also one without a file that we know
    for place, names in walked:
        named_like_files += [place] if place != folder and place.name.lower().endswith(endings) else []
        files += [place / name for name in names if name.lower().endswith(endings) and _is_data(place / name)]
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
            name
            for name in folders
            # such folders have unfinished and hidden files; but the name of a partition may begin so too
            if (not name.startswith(("_", ".")) or "=" in name)
            and os.path.realpath(os.path.join(place, name)) not in seen
        ]
        yield Path(place), names


def _is_data(path: Path) -> bool:
    """Is it a file of data? Writers leave others, such as _SUCCESS, in the same folder."""
    return not path.name.startswith(("_", "."))


def _refuse_twice(paths: list[Path]) -> None:
    """Refuse a file that is named twice: its rows would count twice."""
    seen: set[str] = set()
    for path in paths:
        place = os.path.realpath(path)
        if place in seen:
            raise BadInput(f"{path}: this file is named twice, so its rows would count twice. Leave one out.")
        seen.add(place)


def refuse_missing(path: Path) -> None:
    """Refuse a path at which no file can be read, and say why."""
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


def file_ends(path: Path, width: int) -> tuple[bytes, bytes, int]:
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
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from None


# -- partitions -------------------------------------------------------------------------------------------------------

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def partitions(paths: list[Path]) -> list[dict[str, pa.Scalar]]:
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


def _texts(path: Path) -> dict[str, str | None]:
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

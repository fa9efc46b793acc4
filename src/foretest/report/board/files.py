"""The result files in a folder and its subfolders, here or in a store, and links from a page to their reports."""

from __future__ import annotations

import os
import posixpath
from collections import deque
from collections.abc import Iterator
from dataclasses import field
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import quote, quote_from_bytes

from foretest.errors import BadInput, nearest_file
from foretest.formatting import visible, visible_path
from foretest.records import dataclass
from foretest.stores import Location, RemotePath

RESULT_FILES = ("result.json", "agreement.json")  # what run, online and history write
REPORT = "report.html"
_Step = tuple[Path, tuple[str, ...]]  # a folder, and the names that lead to it


@dataclass(frozen=True)
class ResultFile:
    """A file that should have a result, and where it lies."""

    path: Location
    folder: tuple[str, ...]  # names from the board's folder to the one that the file is in
    report: Location | None  # the page beside it, if there is one

    @property
    def name(self) -> str:
        """The folder's path relative to the board's, as text."""
        return shown_folder(self.folder)

    @property
    def place(self) -> str:
        """The file's path relative to the board's folder, as text."""
        return shown_folder((*self.folder, self.path.name))

    def modified(self) -> date | None:
        """The day (UTC) on which the file was last written; None where nobody knows it."""
        try:
            return datetime.fromtimestamp(self.path.stat().st_mtime_ns / 1e9, UTC).date()
        except (OSError, OverflowError, ValueError, BadInput):
            return None


@dataclass(frozen=True)
class Problem:
    """A file or folder that could not be read, and why."""

    place: str  # its path relative to the board's folder, as text
    sentence: str


@dataclass(frozen=True)
class FolderContent:
    """The result files of a folder, by name, and the folders in it that could not be read."""

    files: list[ResultFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def shown_folder(names: tuple[str, ...]) -> str:
    """Names of folders as one path; a dot for the board's own folder.

    >>> shown_folder(("new ranker", "offline")), shown_folder(())
    ('new ranker/offline', '.')
    """
    return visible_path("/".join(names)) or "."


def find_results(folder: Location) -> FolderContent:
    """All result files of a folder and its subfolders. Folders whose name begins with a dot are left out."""
    if isinstance(folder, RemotePath):
        return _in_store(folder)
    if not folder.exists():
        raise BadInput(f"{folder}: no such folder.{nearest_file(folder)}")
    if not folder.is_dir():
        raise BadInput(f"{folder}: is a file, expected a folder of results.")
    content = FolderContent()
    for place, names, files in _local_folders(folder, content.problems):
        report = place / REPORT if REPORT in files else None
        content.files.extend(ResultFile(place / name, names, report) for name in RESULT_FILES if name in files)
    content.files.sort(key=lambda file: (file.folder, file.path.name))
    return content


def _local_folders(top: Path, problems: list[Problem]) -> Iterator[tuple[Path, tuple[str, ...], set[str]]]:
    """Every folder once, with the names that lead to it and its files. Links to folders are followed last, so that a
    folder has its own name, and a link that leads back to a folder is passed over."""
    waiting, links = deque[_Step]([(top, ())]), deque[_Step]()
    visited = set[tuple[int, int]]()  # by device and number, which all links to a folder share
    while waiting or links:
        place, names = waiting.popleft() if waiting else links.popleft()
        try:
            identity = place.stat()
            with os.scandir(place) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(Problem(shown_folder(names), f"the folder cannot be read ({error.strerror or error})."))
            continue
        if (identity.st_dev, identity.st_ino) in visited:
            continue
        visited.add((identity.st_dev, identity.st_ino))
        for entry in inside:
            if not entry.name.startswith(".") and os.path.isdir(entry.path):
                (links if entry.is_symlink() else waiting).append((place / entry.name, (*names, entry.name)))
        yield place, names, {entry.name for entry in inside if os.path.isfile(entry.path)}


def _in_store(folder: RemotePath) -> FolderContent:
    if folder.is_file():
        raise BadInput(f"{folder}: is a file, expected a folder of results.")
    try:
        listed = [path for path, is_file in folder.listed(recursive=True) if is_file]
    except FileNotFoundError:
        raise BadInput(f"{folder}: no such folder.") from None
    depth, there = len(folder.parts), set(listed)
    files = [
        ResultFile(path, path.parts[depth:-1], path.parent / REPORT if path.parent / REPORT in there else None)
        for path in listed
        if path.name in RESULT_FILES and not any(name.startswith(".") for name in path.parts[depth:-1])
    ]
    return FolderContent(files)


def relative_link(target: Location, page: Location) -> str | None:
    """The address of a file relative to a page, with every character that could be more than a name escaped; None
    where no relative address leads there.

    >>> relative_link(Path("out/a: 1/report.html"), Path("out/board.html"))
    './a%3A%201/report.html'
    """
    if isinstance(target, RemotePath) or isinstance(page, RemotePath):
        if not (isinstance(target, RemotePath) and isinstance(page, RemotePath)):
            return None
        if (target.scheme, target.authority) != (page.scheme, page.authority):
            return None
        return f"./{quote(posixpath.relpath(f'/{target.key}', f'/{page.parent.key}'))}"
    try:
        path = os.path.relpath(target.absolute(), page.absolute().parent)
    except ValueError:  # on another drive
        return None
    return f"./{quote_from_bytes(os.fsencode(Path(path).as_posix()))}"


def describe(error: OSError | BadInput, path: Location) -> str:
    """Why a file could not be read, without its path."""
    if isinstance(error, BadInput):
        return visible(str(error).removeprefix(f"{path}: "))
    return f"the file cannot be read ({error.strerror or error})."

"""Files that are opened more than once: what is read must be of one and the same file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from foretest.stores import Location, RemotePath
from foretest.stores.remote import changed, mark_of, unchanged


def opened(path: Location, mark: str | None = None) -> AbstractContextManager[Any]:
    """A local or remote file to be read; with a mark, if it is and stays the file with this mark."""
    if isinstance(path, RemotePath):
        return path.open() if mark is None else unchanged(path, mark)
    return pa.OSFile(str(path)) if mark is None else _unchanged(path, mark)


@contextmanager
def opened_with_mark(path: Location) -> Iterator[tuple[Any, str]]:
    """A file opened for the first time, and its mark: what changes when the file is written again."""
    # of a local file the mark comes first: where another file takes its place before it is opened, that one has another
    mark = None if isinstance(path, RemotePath) else _mark(path)
    with opened(path) as file:
        yield file, mark_of(file) if mark is None else mark


def _mark(path: Path) -> str:
    """The size of a local file, and when it was written."""
    facts = os.stat(path)
    return f"{facts.st_size} {facts.st_mtime_ns}"


@contextmanager
def _unchanged(path: Path, mark: str) -> Iterator[pa.OSFile]:
    """A local file opened to be read, if it is still the one with this mark, before and after."""
    with pa.OSFile(str(path)) as file:
        if _mark(path) != mark:
            raise changed(path)
        try:
            yield file
        except (pa.ArrowException, OSError):
            if _mark(path) != mark:  # what was read was partly of another file
                raise changed(path) from None
            raise
        if _mark(path) != mark:
            raise changed(path)

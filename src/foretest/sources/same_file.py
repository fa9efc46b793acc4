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


def mark_of_file(file: Any) -> str:
    """What changes when an open file is written again: of a local one its size, and when it was written."""
    if not isinstance(file, pa.OSFile):
        return mark_of(file)
    known = os.fstat(file.fileno())
    return f"{known.st_size} {known.st_mtime_ns}"


@contextmanager
def _unchanged(path: Path, mark: str) -> Iterator[pa.OSFile]:
    """A local file opened to be read, if it is still the one with this mark, before and after."""
    with pa.OSFile(str(path)) as file:
        if mark_of_file(file) != mark:
            raise changed(path)
        try:
            yield file
        except (pa.ArrowException, OSError):
            if mark_of_file(file) != mark:  # what was read was partly of another file
                raise changed(path) from None
            raise
        if mark_of_file(file) != mark:
            raise changed(path)

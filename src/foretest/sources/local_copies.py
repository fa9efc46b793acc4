"""Remote text files as temporary local copies: DuckDB, which parses text, reads no addresses here."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foretest.background import side_by_side
from foretest.stores import Location, RemotePath

_AT_ONCE = 4  # files that are copied at a time


class TextPlace(NamedTuple):
    """A text file: its name for messages, and where its bytes are."""

    path: Location
    local: Path  # the same, or a temporary copy of a remote file

    def renamed(self, message: str) -> str:
        """A message about the copy as one about the file."""
        return message.replace(str(self.local), str(self.path))


class LocalCopies:
    """The copies of remote files, which are removed with this object."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def places(self, paths: Sequence[Location]) -> list[TextPlace]:
        """Every file with its place; the remote ones are copied, some at a time, and none is held in memory."""
        places = [self._place(path, number) for number, path in enumerate(paths)]
        copies = [partial(path.download, local) for path, local in places if isinstance(path, RemotePath)]
        if copies:
            side_by_side(copies, threads=_AT_ONCE)
        return places

    def _place(self, path: Location, number: int) -> TextPlace:
        if isinstance(path, Path):
            return TextPlace(path, path)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="foretest-copies-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        place = self._folder / str(number)
        place.mkdir()
        return TextPlace(path, place / path.name)

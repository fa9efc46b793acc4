"""Files that Foretest makes, and may make again: each has a mark, the digest of all its other bytes. What has none is
somebody else's, what has another one was edited since, and neither is replaced unasked."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from foretest.errors import BadInput
from foretest.files import whole_files
from foretest.stores import Location, RemotePath

if TYPE_CHECKING:
    import pyarrow as pa

_NO_DIGEST = b"0" * 32
_LABEL = "made by Foretest: "
_MARK = re.compile(_LABEL.encode() + rb"([0-9a-f]{32})")
_TEXT = f"{_LABEL}{_NO_DIGEST.decode()}"  # what a writer leaves in a file; the digest is put in when all is written
_END = 1 << 16  # bytes at the end of a file that its mark is in; of a Parquet file the whole footer
_CHUNK = 1 << 20

JSON_KEY = "foretest"  # the last of a JSON document, with the mark


def marked_toml(text: str) -> str:
    """The text of a settings file with room for the mark."""
    return f"{text}\n# {_TEXT}\n"


def marked_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON document with room for the mark."""
    return {**document, JSON_KEY: _TEXT}


def marked_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a Parquet file with room for the mark."""
    return schema.with_metadata({**(schema.metadata or {}), b"foretest.made": _TEXT.encode()})


@contextmanager
def own_files(paths: Sequence[Location], *, replace: bool = False) -> Iterator[list[Path]]:
    """Places to write to, one for each path, that are marked and renamed in the end, all of them or none.

    Files that are not Foretest's, or were edited, are refused before and, where they came meanwhile, after the work.
    """
    refuse_others(paths, replace=replace)
    before = [_state(path) for path in paths]
    with whole_files(paths) as unfinished:
        yield unfinished
        for beside in unfinished:
            put_mark(beside)
        refuse_others(
            (path for path, state in zip(paths, before, strict=True) if _state(path) != state), replace=replace
        )


def refuse_others(paths: Iterable[Location], *, replace: bool = False) -> None:
    """Refuse to replace files that Foretest did not make, or that were edited since, unless that is asked for."""
    for path in paths:
        state = _state(path)
        if state is None:
            continue
        if state.is_folder:
            raise BadInput(f"{path}: is a folder, and a file is to be written there. Give -o another name.")
        if not replace and (whose := _whose(path, state)) is not None:
            raise BadInput(
                f"{path}: already there, and {whose}: it is not replaced. Give -o another name, or --replace (in Python"
                " replace=True) if it may be lost."
            )


def put_mark(path: Path) -> None:
    """Put the digest into a file that a writer has left room in."""
    with path.open("r+b") as file:
        mark = _mark_in(file)
        assert mark is not None, f"no room for a mark: {path}"
        digest = _digest(file, mark.begin)
        file.seek(mark.begin)
        file.write(digest)


class _State(NamedTuple):
    """What tells a file from another one of its name."""

    is_file: bool
    is_folder: bool
    size: int
    changed: int
    number: int


def _state(path: Location) -> _State | None:
    """The state of a file; None where there is none. A link that leads nowhere is something too."""
    if isinstance(path, RemotePath):
        if not path.is_file():  # a folder is the beginning of a name
            return None
        remote = path.stat()
        return _State(True, False, remote.st_size, remote.st_mtime_ns, 0)
    if not os.path.lexists(path):
        return None
    try:
        status = path.stat()
    except OSError:
        status = path.lstat()
    mode = status.st_mode
    return _State(stat.S_ISREG(mode), stat.S_ISDIR(mode), status.st_size, status.st_mtime_ns, status.st_ino)


def _whose(path: Location, state: _State) -> str | None:
    """Why a file is not Foretest's to replace; None where it is."""
    other = "not made by Foretest"
    if not state.is_file:
        return other
    try:
        with path.open("rb") as file:
            mark = _mark_in(file)
            if mark is None:
                return other
            return None if _digest(file, mark.begin) == mark.digest else "edited since Foretest made it"
    except OSError:
        return other  # nobody may know


class _Mark(NamedTuple):
    """The digest in a file, and where it begins."""

    digest: bytes
    begin: int


def _mark_in(file: BinaryIO) -> _Mark | None:
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    footer = int.from_bytes(end[:4], "little") + 8 if end[4:] == b"PAR1" else 0
    begin = max(0, size - max(footer, _END))
    file.seek(begin)
    [last] = [None, *_MARK.finditer(file.read())][-1:]
    return None if last is None else _Mark(last[1], begin + last.start(1))


def _digest(file: BinaryIO, begin: int) -> bytes:
    """The digest of all bytes but the 32 that begin there."""
    digest = hashlib.blake2b(digest_size=16)
    file.seek(0)
    while begin and (chunk := file.read(min(begin, _CHUNK))):
        digest.update(chunk)
        begin -= len(chunk)
    file.read(len(_NO_DIGEST))
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest().encode()

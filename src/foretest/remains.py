"""Temporary files and folders whose names say which process they are of, and the removal of those of a process that was
killed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TEMPORARY = re.compile(r"\.?foretest-([0-9a-f]{8})-(\d{1,10})-(\d{1,20})-[0-9a-f]{8}", re.ASCII)


class _Process(NamedTuple):
    """A process as this machine shows it."""

    state: str  # Z and X: it has ended
    started: str  # in ticks since the machine was started: numbers of processes are used again


def temporary_name() -> str:
    """A name that nothing else has: with this host, the number of this process and when it was started."""
    process = _process("self")
    return f"foretest-{_host()}-{os.getpid()}-{process.started if process else 0}-{os.urandom(4).hex()}"


def is_temporary(path: str | bytes) -> bool:
    """Has the file a name that `temporary_name` gives?"""
    return _TEMPORARY.fullmatch(os.path.basename(os.fsdecode(path))) is not None


def remove_remains(folder: Path) -> None:
    """Remove what killed processes of this host and user have left in a folder; what cannot be removed stays."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match is None or match[1] != _host() or not _is_gone(match[2], match[3]):
                continue
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid != os.getuid():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder, hidden where a parent is given, that is removed in the end; first what is left of earlier ones."""
    above = Path(tempfile.gettempdir()) if parent is None else parent
    remove_remains(above)
    folder = above / (temporary_name() if parent is None else f".{temporary_name()}")
    folder.mkdir(0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_gone(number: str, started: str) -> bool:
    """Has the process ended? Where processes cannot be looked up, none has."""
    if _process("self") is None:
        return False
    process = _process(number)
    return process is None or process.state in "ZX" or process.started != started


def _process(number: str) -> _Process | None:
    """A process of this machine; None where there is none, or none can be looked up."""
    try:
        status = Path("/proc", number, "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    values = status.rpartition(")")[2].split()  # what stands before is the command's name, which may have spaces
    return _Process(values[0], values[19])


@cache
def _host() -> str:
    """This machine, and the container on it: in another one the same number is another process."""
    names = []
    with suppress(AttributeError):  # Windows, where no process is looked up
        names.append(os.uname().nodename)
    with suppress(OSError):
        names.append(Path("/etc/machine-id").read_text(encoding="utf-8"))
    with suppress(OSError):
        names.append(os.readlink("/proc/self/ns/pid"))
    return f"{zlib.crc32(os.fsencode(chr(10).join(names))):08x}"

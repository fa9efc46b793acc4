"""Where a result comes from: versions, a fingerprint of what was read, the command. File names, never folders."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foretest._version import __version__
from foretest.background import side_by_side
from foretest.errors import BadInput
from foretest.formatting import shortened
from foretest.stores import Location, without_credentials

if TYPE_CHECKING:
    import numpy.typing as npt

Fact = TypeVar("Fact")

PACKAGES = ("numpy", "scipy", "pyarrow", "numba", "scikit-learn")
FILES_LISTED = 20
_REQUESTS = 16  # remote files that are asked for at a time
_END = 1 << 16  # bytes at each end of a file that its fingerprint covers

# a leading / or C:\ and the folders after it, but not inside an address such as s3://bucket/folder
_FOLDERS = re.compile(r"(?<![\w.:/\\~])(?:/|[A-Za-z]:[\\/])(?:[^\s'\"()\[\]{}/\\:;,|<>]+[/\\])*(?=[^\s'\"()/\\])")


@cache
def installed_version(package: str) -> str:
    """The version of a package, as its folder of metadata is called: to parse what is in it takes far longer."""
    begin, end = f"{package.replace('-', '_')}-", ".dist-info"
    for name in (name for folder in sys.path for name in _names_in(folder)):
        if name.startswith(begin) and name.endswith(end):
            return name[len(begin) : -len(end)]
    from importlib.metadata import version

    return version(package)


@cache
def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")
    except OSError:  # of a path that is gone, or an archive
        return []


def versions() -> dict[str, str]:
    """The versions of Foretest, Python and the packages that the numbers depend on."""
    return {"foretest": __version__, "python": platform.python_version()} | {p: installed_version(p) for p in PACKAGES}


def public(text: str) -> str:
    """The text without the folders of absolute paths, which may be private.

    >>> public("--config=/home/ada/tests/a.toml"), public("logs/a.parquet"), public("s3://shop/logs/a.parquet")
    ('--config=a.toml', 'logs/a.parquet', 's3://shop/logs/a.parquet')
    """
    for folder, short in ((os.getcwd(), ""), (os.path.expanduser("~"), "~/")):  # their names may have spaces
        if folder not in ("/", "~"):  # a user without a home has ~
            text = text.replace(f"{folder}/", short)
    return _FOLDERS.sub("", without_credentials(text))


def today() -> str:
    """Today's date as a page has it, or the one that a reproducible build sets."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        now = datetime.fromtimestamp(int(seconds), UTC) if seconds else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        raise BadInput(
            f"SOURCE_DATE_EPOCH={shortened(str(seconds))}: expected a whole number of seconds since 1970, of a year up"
            " to 9999, or no such variable."
        ) from None
    return f"{now.day} {now:%B %Y}"


# options for where and how results are shown, with how many values each has: results do not depend on them
_OUTPUT = {"-o": 1, "--out": 1, "--fail-on": 1, "--threads": 1, "--json": 0, "--figures": 0, "--quiet": 0}


def command_line(words: Sequence[str]) -> str:
    """The command that gives these numbers: without options of output, and with the first few of many logs.

    >>> command_line(["foretest", "run", "/data/a b.parquet", "-c", "test.toml", "-o", "out"])
    "foretest run 'a b.parquet' -c test.toml"
    """
    shown: list[str] = []
    run = skip = 0
    for word in words:
        name, given, _ = word.partition("=")
        if skip or name in _OUTPUT:
            skip = skip - 1 if skip else 0 if given else _OUTPUT[name]
            continue
        run = 0 if word.startswith("-") else run + 1
        if run <= 8:
            shown.append(shlex.quote(public(word)))
        elif run == 9:
            shown[-3:] = ["…"]
    return " ".join(shown)


def fingerprint(path: Location) -> str:
    """BLAKE2b of a file's size, its first and last 64 KiB and, for a Parquet file, the whole footer (which has the
    schema and, for every row group and column, place, size and statistics). Fast at any size, but not a hash of every
    byte.
    """
    size = path.stat().st_size
    digest = hashlib.blake2b(f"{size}\n".encode(), digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(_END))
        file.seek(max(0, size - 8))
        end = file.read(8)
        footer = int.from_bytes(end[:4], "little") + 8 if end[4:] == b"PAR1" else 0
        file.seek(max(0, size - max(footer, _END)))
        digest.update(file.read())
    return digest.hexdigest()


def fingerprints(paths: Sequence[Location]) -> list[str]:
    """The fingerprint of each file."""
    return _of_each(paths, fingerprint)


def _of_each(paths: Sequence[Location], ask: Callable[[Location], Fact]) -> list[Fact]:
    """A fact of each file; of remote ones several at a time, since each takes some requests."""
    if all(isinstance(path, Path) for path in paths):
        return [ask(path) for path in paths]

    def explained(path: Location) -> Fact:
        with nullcontext() if isinstance(path, Path) else path.faults_explained():
            return ask(path)

    return side_by_side([partial(explained, path) for path in paths], threads=_REQUESTS)


def files_read(paths: Iterable[Location]) -> dict[str, Any]:
    """The number of files, their bytes, one fingerprint of all in order, and the names of the first."""
    paths = list(paths)
    marks = fingerprints(paths)
    sizes = _of_each(paths, lambda path: path.stat().st_size)
    listed = zip(paths[:FILES_LISTED], sizes, marks, strict=False)
    return {
        "count": len(paths),
        "bytes": sum(sizes),
        "fingerprint": hashlib.blake2b("\n".join(marks).encode(), digest_size=16).hexdigest(),
        "files": [{"name": path.name, "bytes": size, "fingerprint": mark} for path, size, mark in listed],
    }


def rows_fingerprint(*counts: npt.NDArray[Any]) -> str:
    """BLAKE2b of counts: rows by bucket of units, rewarded rows by metric. It exists for any kind of log and does not
    depend on how the rows are divided into files; it is not a hash of every value."""
    digest = hashlib.blake2b(digest_size=16)
    for column in counts:
        digest.update(column.astype("<i8").tobytes())
    return digest.hexdigest()

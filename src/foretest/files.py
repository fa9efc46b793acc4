"""Files that are complete or not there at all, and JSON without NaN."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from foretest.background import in_background
from foretest.errors import BadInput, nearest_file
from foretest.formatting import visible_path
from foretest.remains import is_temporary, remove_remains, temporary_name
from foretest.stores import Location, RemotePath, is_address, location


def json_text(document: dict[str, Any], path: str | Location | None = None) -> str:
    """A document as JSON text, a list of numbers on one line; with a path it is also written there."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # a line break inside a string is two characters: brackets that span lines without quotes are lists of numbers
    text = re.sub(r"\[\n[^\[\]{}\"]*\]", lambda match: " ".join(match[0].split()), text)
    if path is not None:
        write_whole(location(path), text)
    return text


def html_text(page: str, path: str | Location | None = None) -> str:
    """A page as it is; with a path it is also written there."""
    if path is not None:
        write_whole(location(path), page)
    return page


def finite_or_none(value: float) -> float | None:
    """The number, or None where there is none."""
    return float(value) if math.isfinite(value) else None


def nan_if_none(value: float | None) -> float:
    """The number, or NaN where there is none."""
    return math.nan if value is None else float(value)


def json_ready(value: Any) -> Any:
    """A structure as JSON can say it: plain Python numbers, None in place of NaN and infinity."""
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return json_ready(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    # a user's policy may have attributes of any kind: what JSON cannot say is described
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def user_path(text: str | Location) -> Location:
    """The path that a user wrote, with ~ expanded; a text that no file can have as its path is refused."""
    if isinstance(text, RemotePath) or is_address(text):
        return location(text)
    try:
        impossible = b"\0" in os.fsencode(text)
    except UnicodeEncodeError:
        impossible = True
    if impossible:
        raise BadInput(f"{str(text)!r}: no file can have this path: it has a null character or a lone surrogate.")
    refuse_undecodable(str(text))
    return location(os.path.expanduser(text))  # a ~ of nobody stays as it is


def refuse_undecodable(name: str) -> None:
    """Refuse a name that is not text: no result or page could have it."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(f"{visible_path(name)}: the name is not text in UTF-8. Rename the file or the folder.") from None


def read_text(path: Location, kind: str, remedy: str, most: int | None = None) -> str:
    """The text of a file that the user named; what cannot be read is refused as that `kind` of file, which has at most
    so many bytes."""
    user_path(path)
    try:
        refuse_device(path)
        if most is not None and path.stat().st_size > most:
            raise BadInput(f"{path}: larger than {most / 1e6:g} MB; {remedy}")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = nearest_file(path) if isinstance(path, Path) else ""
        raise BadInput(f"{path}: no such {kind}.{near}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a text file; {remedy}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as a {kind} ({error.strerror or error}).") from None


def refuse_device(path: Location) -> None:
    """Refuse what has no end, or none until another process gives it: a device, a pipe or a socket."""
    try:
        has_end = not isinstance(path, Path) or path.is_file() or path.is_dir() or not path.exists()
    except OSError:  # a name that is too long: whoever opens it says so
        return
    if not has_end:
        raise BadInput(f"{path}: a device or a pipe, expected a file. Write what it gives to a file, and name that.")


def write_whole(path: Location, text: str) -> None:
    """Write beside, then rename: the file is complete, or as it was."""
    write_all({path: text.encode("utf-8")})


def write_all(files: Mapping[Location, bytes]) -> None:
    """Write all beside their places, then rename all: where one cannot be written, every file is as it was."""
    with whole_files(list(files)) as unfinished:
        for (path, content), beside in zip(files.items(), unfinished, strict=True):
            with _naming(path):
                beside.write_bytes(content)


def upload_all(copies: Mapping[RemotePath, Path]) -> None:
    """Upload local files in order, each whole. Where one cannot be written, those are removed that are new; a store
    has no way back to an object that was replaced."""
    new: list[RemotePath] = []
    try:
        for path, copy in copies.items():
            was_there = path.exists()
            # in another thread: an interrupt in the midst would complete the object with half of its content
            in_background(partial(path.upload, copy))
            new += [] if was_there else [path]
    except BaseException:
        for path in new:
            with suppress(BadInput, OSError):
                path.unlink(missing_ok=True)
        raise


def cache_folder() -> Path:
    """The folder for what is made once: that of `FORETEST_CACHE`, else the user's cache folder on this system."""
    chosen = os.environ.get("FORETEST_CACHE")
    if chosen:
        return Path(os.path.expanduser(chosen))  # no shell does it in a file of variables
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "foretest"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "foretest"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "foretest"


@contextmanager
def whole_file(path: Location) -> Iterator[Path]:
    """A place beside `path` to write to, renamed to it in the end: the file is complete, or as it was. What goes to
    a store is first a temporary file."""
    with whole_files([path]) as [beside]:
        yield beside


@contextmanager
def whole_files(paths: Sequence[Location]) -> Iterator[list[Path]]:
    """Places to write to, one for each path, that are renamed in the end: all files are complete, or as they were."""
    unfinished: dict[Location, Path] = {}
    with ExitStack() as stack:
        if any(isinstance(path, RemotePath) for path in paths):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number, path in enumerate(paths):
            if isinstance(path, RemotePath):
                unfinished[path] = folder / str(number)
                continue
            stack.enter_context(folders_for(path))
            with _naming(path):
                unfinished[path] = _temporary_file(path)
            stack.callback(unfinished[path].unlink, missing_ok=True)
        with _naming(paths[0] if paths else None):
            yield list(unfinished.values())
        replace_all({path: beside for path, beside in unfinished.items() if isinstance(path, Path)})
        upload_all({path: beside for path, beside in unfinished.items() if isinstance(path, RemotePath)})


@contextmanager
def folders_for(path: Path) -> Iterator[None]:
    """The folders above a path, which are made; where something fails, new ones are taken away again."""
    new = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # another file may be there by now
            for folder in new:
                folder.rmdir()
        raise


def _temporary_file(path: Path) -> Path:
    """An empty file beside the path: nobody may read it who may not read the file that it is to replace."""
    remove_remains(path.parent)
    beside = path.with_name(f".{temporary_name()}")
    mode = _mode_of(path)
    os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else mode | stat.S_IWUSR))
    return beside


def _mode_of(path: Path) -> int | None:
    """Who may read and write a file; None where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    except OSError:
        return None


def replace_all(files: Mapping[Path, Path]) -> None:
    """Rename files to the paths that they are given by, in order, each with the mode of what it replaces. Where one
    cannot be renamed, every path has what it had."""
    spares: dict[Path, Path | None] = {}
    try:
        for path, new in files.items():
            with _naming(path):
                spares[path] = _second_name(path) if len(files) > 1 else None
                mode = _mode_of(path)
                if mode is not None and mode != _mode_of(new):
                    new.chmod(mode)
                os.replace(new, path)
    except BaseException:
        for path, spare in spares.items():
            if not files[path].exists():  # it was renamed
                with suppress(OSError):
                    path.unlink() if spare is None else os.replace(spare, path)
        raise
    finally:
        for spare in spares.values():
            if spare is not None:
                spare.unlink(missing_ok=True)


def _second_name(path: Path) -> Path | None:
    """Another name of a file that is to be replaced; None where there is no file."""
    if not os.path.lexists(path):
        return None
    name = path.with_name(f".{temporary_name()}")
    try:
        os.link(path, name, follow_symlinks=False)
    except OSError:  # a file system without them
        shutil.copy2(path, name, follow_symlinks=False)
    return name


@contextmanager
def _naming(path: Location | None) -> Iterator[None]:
    """An error of a temporary file, or one that names no file, as that of a full disk, as one of the path."""
    try:
        yield
    except OSError as error:
        if path is None or (error.filename is not None and not is_temporary(error.filename)):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None

"""The writer: rows of a service into files of a folder, from a bounded buffer, by a thread of its own."""

from __future__ import annotations

import atexit
import errno
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakSet

from foretest.errors import BadInput, check_integer, check_number, choose
from foretest.serving.log_files import FORMATS, Columns, Row, import_for, write_file
from foretest.serving.row_values import ColumnKinds, plain_row

FILES_WAITING = 4  # as many times `file_rows` rows may wait
_RETRY_SECONDS = 1.0  # after a file could not be written


class LogNotWritten(RuntimeError):
    """Rows cannot be written: the disk is full, its folder is gone, or it is slower than the service.

    `LogWriter.write` and `LogWriter.close` raise it. A service may catch it and go on without logging:

    >>> try:
    ...     raise LogNotWritten("4,096 rows wait")
    ... except LogNotWritten as error:
    ...     print(error)
    4,096 rows wait
    """


class LogWriter:
    """Writes rows to Parquet or JSON lines files in a folder, which processes and threads may share.

    `write` copies the row into a buffer; a thread writes a file when there are `file_rows` rows, or when the oldest
    has waited for `file_seconds`. A file that cannot be written is tried again every second, and its rows wait. At
    most 4 × `file_rows` rows wait; `write` raises `LogNotWritten` beyond that, and so does `close` where rows are left.

    Parameters
    ----------
    folder: where files go, ~ being the user's home; it is made if it is not there.
    format: "parquet" or "jsonl".
    file_rows: the most rows of a file. As many are lost if the process is killed, and four times as many are in memory.
    file_seconds: how long a row waits at most before its file is written.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LogWriter(folder, "jsonl") as log:
    ...         log.write({"id": 1042, "ranking": ["milk", "tea"], "user": 7})
    ...     [file] = Path(folder).iterdir()
    ...     file.read_text()
    '{"id": 1042, "ranking": ["milk", "tea"], "user": 7}\\n'
    """

    def __init__(
        self, folder: str | Path, format: str = "parquet", *, file_rows: int = 10_000, file_seconds: float = 60.0
    ) -> None:
        self.format = choose("format", format, FORMATS)
        check_integer("file_rows", file_rows, 1)
        check_number("file_seconds", file_seconds, above=0)
        if not isinstance(folder, str | os.PathLike) or not str(folder):
            raise BadInput(f"folder = {folder!r}: expected the path of a folder.")
        if "://" in str(folder):
            raise BadInput(
                f"{folder}: expected a folder of this machine; copy its files to the store when they are whole."
            )
        import_for(self.format)
        self.folder = Path(os.path.expanduser(folder)).absolute()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self.folder, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise BadInput(f"{folder}: not a folder that can be written to ({error.strerror}).") from None
        self.file_rows, self.file_seconds = int(file_rows), float(file_seconds)
        self._begin()
        _writers.add(self)

    def _begin(self, *, closed: bool = False) -> None:
        """Without rows, without a thread, with names that no other process gives."""
        self._change = threading.Condition()  # guards all below
        self._on_disk = threading.Lock()  # one file at a time
        self._rows: list[Row] = []
        self._since = 0.0  # when the first of them came, or earlier
        self._columns = ColumnKinds()
        self._fault: str | None = None  # why the last file could not be written
        self._thread: threading.Thread | None = None
        self._closed = closed
        self._files = 0
        self._process = os.urandom(6).hex()

    def __repr__(self) -> str:
        return f"LogWriter({str(self.folder)!r}, {self.format!r}, waiting={self.waiting})"

    @property
    def waiting(self) -> int:
        """How many rows are in no file yet."""
        return len(self._rows)

    def write(self, row: Mapping[str, Any]) -> None:
        """Take a copy of a row, to be written soon; it never waits for the disk.

        A value that cannot be logged, or is of another type than the column's earlier ones, is a `BadInput`.
        """
        values = plain_row(row)
        with self._change:
            if self._closed:
                raise BadInput(f"{self.folder}: the writer is closed, and takes no more rows.")
            if len(self._rows) >= FILES_WAITING * self.file_rows:
                raise LogNotWritten(self._sentence("this row was not taken"))
            self._columns.take(values)
            if not self._rows:
                self._since = time.monotonic()
            self._rows.append({name: value.plain for name, value in values.items()})
            if self._thread is None:
                self._start_thread()
            elif len(self._rows) in (1, self.file_rows):
                self._change.notify_all()

    def flush(self) -> None:
        """Wait until every row that was written before is in a file; `LogNotWritten` if that cannot be."""
        left = self.waiting
        while left > 0 and (written := self._write_one_file()):
            left -= written

    def close(self) -> None:
        """Write what waits, and take no more rows; `LogNotWritten` if some are left: it may be called again then."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start_thread(self) -> None:
        """Start the thread; where none can be started, the next row tries again, and `close` writes what waits."""
        thread = threading.Thread(target=self._run, name="foretest-log", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the process may have no more of them, or is ending
            self._note_fault(error, "tried again with the next row")
        else:
            self._thread, self._fault = thread, None
        _close_in_child_processes()

    def _run(self) -> None:
        """The thread: a file whenever one is due, until the writer is closed."""
        while True:
            with self._change:
                while not self._closed and (seconds := self._seconds_left()) > 0:
                    self._change.wait(seconds)
                if self._closed:  # the rest is written by whoever closes, who hears what goes wrong
                    return
            try:
                self._write_one_file()
            except LogNotWritten:
                with self._change:
                    self._change.wait_for(lambda: self._closed, _RETRY_SECONDS)

    def _seconds_left(self) -> float:
        """Until a file is due: never more than a day, as no system waits for ever."""
        if not self._rows:
            return 86_400.0
        if len(self._rows) >= self.file_rows:
            return 0.0
        return min(86_400.0, self._since + self.file_seconds - time.monotonic())

    def _write_one_file(self) -> int:
        """Write the oldest rows, and say how many they were. They stay in the buffer until their file is there."""
        with self._on_disk:
            with self._change:
                rows = self._rows[: self.file_rows]
                columns = Columns(dict(self._columns.kinds), frozenset(self._columns.mixed))
            if not rows:
                return 0
            begun = time.monotonic()
            moment = datetime.now(UTC)
            place = self.folder / f"{moment:%Y%m%dT%H%M%SZ}-{self._process}-{self._files:06d}.{self.format}"
            try:
                write_file(place, rows, columns)
            except Exception as error:
                self._note_fault(error, f"tried again every {_RETRY_SECONDS:g} s")
                raise LogNotWritten(self._sentence("they are still in memory")) from error
            except BaseException:  # an interrupt, which may come when the file is already there
                if place.exists():
                    self._take_out(len(rows), begun)
                raise
            self._take_out(len(rows), begun)
            return len(rows)

    def _take_out(self, count: int, begun: float) -> None:
        """Take the oldest rows out of the buffer: they are in a file, which was begun then."""
        with self._change:
            del self._rows[:count]
            self._since, self._fault = begun, None
            self._files += 1

    def _note_fault(self, error: Exception, ending: str) -> None:
        """Remember why, and say so in the service's log, once until a file is written again."""
        first = self._fault is None
        self._fault = f"{type(error).__name__}: {error}"
        if first:
            import logging

            logging.getLogger("foretest.serving").error(self._sentence(ending))

    def _sentence(self, ending: str) -> str:
        why = (
            f"could not be written ({self._fault})"
            if self._fault
            else "wait for the disk, which is slower than they come"
        )
        return f"{self.folder}: {self.waiting:,} rows {why}; {ending}."


_writers: WeakSet[LogWriter] = WeakSet()


def _close_all() -> None:
    """At the end of the process: nothing that waits is lost, whatever becomes of one of the writers."""
    with ExitStack() as stack:
        for writer in list(_writers):
            stack.callback(writer.close)


def _close_in_child_processes() -> None:
    """Children of multiprocessing that were forked end without what atexit has; they have a list of their own."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _close_all, exitpriority=10)


def _begin_all() -> None:
    """In a process that was forked: rows that wait are its parent's, who writes them, and threads were not copied."""
    for writer in list(_writers):
        writer._begin(closed=writer._closed)


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all)

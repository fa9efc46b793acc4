"""The writer: files by rows and by time, several threads and processes, ends of processes, disks that fail."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from foretest.serving import BadInput, LogNotWritten, LogWriter, Sampler, log_files, writer
from foretest.sources import open_source

FORMATS = ("parquet", "jsonl")


def ids_in(folder: Path) -> list[list[Any]]:
    """The ids of the rows, file by file in the order of names."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix != ".tmp"]
    assert {path.suffix for path in files} <= {".parquet", ".jsonl"}
    return [
        pq.read_table(path)["id"].to_pylist()
        if path.suffix == ".parquet"
        else [json.loads(line)["id"] for line in path.read_text().splitlines()]
        for path in files
    ]


def all_ids(folder: Path) -> list[Any]:
    return [one for ids in ids_in(folder) for one in ids]


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_has_at_most_file_rows_rows(format: str, tmp_path: Path) -> None:
    with LogWriter(tmp_path, format, file_rows=100) as log:
        for number in range(250):
            log.write({"id": number, "scores": [0.5]})
    files = ids_in(tmp_path)
    assert all_ids(tmp_path) == list(range(250))
    assert max(map(len, files)) <= 100
    assert len(files) == 3


def test_a_row_waits_at_most_file_seconds(tmp_path: Path) -> None:
    """Also where no other row comes after it."""
    with LogWriter(tmp_path, "jsonl", file_seconds=0.2) as log:
        began = time.monotonic()
        log.write({"id": 1})
        log.write({"id": 2})
        wait_until(lambda: log.waiting == 0)
        assert time.monotonic() - began >= 0.19
        assert ids_in(tmp_path) == [[1, 2]]
        log.write({"id": 3})
        wait_until(lambda: log.waiting == 0)
        assert ids_in(tmp_path) == [[1, 2], [3]]
    with LogWriter(tmp_path / "long", "jsonl", file_seconds=1e12) as log:  # longer than any system can wait
        log.write({"id": 1})
    assert all_ids(tmp_path / "long") == [1]


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No file is written before the event is set."""
    let, plain = threading.Event(), log_files.write_file
    monkeypatch.setattr(writer, "write_file", lambda *a: (let.wait(20), plain(*a)))
    yield let
    let.set()


def test_the_buffer_is_bounded(tmp_path: Path, slow_disk: threading.Event) -> None:
    log = LogWriter(tmp_path, "jsonl", file_rows=10)
    for number in range(40):
        log.write({"id": number})
        assert log.waiting <= 40
    for _ in range(3):
        with pytest.raises(LogNotWritten, match=r"40 rows wait for the disk, .* slower .*; this row was not taken\."):
            log.write({"id": -1})
        assert log.waiting == 40
    assert ids_in(tmp_path) == []
    slow_disk.set()
    log.flush()
    log.write({"id": 40})
    log.close()
    assert all_ids(tmp_path) == list(range(41))


def test_writing_does_not_wait_for_the_disk(tmp_path: Path, slow_disk: threading.Event) -> None:
    with LogWriter(tmp_path, "jsonl", file_rows=10) as log:
        began = time.monotonic()
        for number in range(30):
            log.write({"id": number})
        assert time.monotonic() - began < 2.0  # the disk would take 20 s
        slow_disk.set()
    assert len(all_ids(tmp_path)) == 30


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_that_vanished(format: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Said once in the service's log; writes go on until the buffer is full; nothing is lost if the folder returns."""
    folder = tmp_path / "log"
    log = LogWriter(folder, format, file_rows=10)
    folder.rmdir()
    with caplog.at_level(logging.ERROR, "foretest.serving"):
        for number in range(40):
            log.write({"id": number})
        with pytest.raises(LogNotWritten, match="No such file or directory"):
            log.flush()
        with pytest.raises(LogNotWritten, match=r"40 rows could not be written \(FileNotFoundError.*was not taken"):
            log.write({"id": 40})
        with pytest.raises(LogNotWritten, match="still in memory"):
            log.close()
    assert len(caplog.records) == 1
    assert str(folder) in caplog.text
    assert not folder.exists()
    folder.mkdir()
    log.close()
    assert all_ids(folder) == list(range(40))


def test_a_full_disk_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer, "_RETRY_SECONDS", 0.01)
    with monkeypatch.context() as patch, LogWriter(tmp_path, "jsonl", file_seconds=0.01) as log:
        patch.setattr(log_files.os, "fsync", full)
        log.write({"id": 1})
        with pytest.raises(LogNotWritten, match="No space left on device"):
            log.flush()
        assert list(tmp_path.iterdir()) == []  # also no temporary file
        patch.undo()
        wait_until(lambda: log.waiting == 0)
        assert ids_in(tmp_path) == [[1]]


def test_an_interrupt_writes_no_row_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the folder is brought to the disk, when the file has its name, and before that."""
    sync = os.fsync

    def interrupted(descriptor: int) -> None:
        sync(descriptor)
        if os.path.isdir(f"/proc/self/fd/{descriptor}") == in_folder:
            raise KeyboardInterrupt

    for in_folder in (True, False):
        folder = tmp_path / str(in_folder)
        with LogWriter(folder, "jsonl") as log:
            log.write({"id": 1})
            monkeypatch.setattr(log_files.os, "fsync", interrupted)
            with pytest.raises(KeyboardInterrupt):
                log.flush()
            monkeypatch.undo()
            assert log.waiting == (0 if in_folder else 1)
            log.write({"id": 2})
        assert all_ids(folder) == [1, 2]


def test_rows_are_not_lost_where_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with LogWriter(tmp_path, "jsonl", file_rows=2) as log:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            for number in range(8):
                log.write({"id": number})
            with pytest.raises(LogNotWritten, match=r"could not be written \(RuntimeError: can't start new thread\)"):
                log.write({"id": -1})
            assert len(caplog.records) == 1
            log.flush()
            log.write({"id": 8})
        log.write({"id": 9})
        wait_until(lambda: log.waiting == 0)
        log.write({"id": 10})
    assert all_ids(tmp_path) == list(range(11))


def test_threads_and_coroutines_share_a_writer(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "threads", file_rows=300) as log, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: log.write({"id": number, "scores": [0.5]}), range(1000)))
    assert sorted(all_ids(tmp_path / "threads")) == list(range(1000))

    async def write(log: LogWriter, number: int) -> None:
        await asyncio.sleep(0)
        log.write({"id": number})

    async def write_all(log: LogWriter) -> None:
        await asyncio.gather(*(write(log, number) for number in range(100)))
        await asyncio.to_thread(log.close)

    asyncio.run(write_all(LogWriter(tmp_path / "coroutines", "jsonl", file_rows=30)))
    assert sorted(all_ids(tmp_path / "coroutines")) == list(range(100))


def test_writers_one_after_the_other_replace_nothing(tmp_path: Path) -> None:
    for number in range(3):
        with LogWriter(tmp_path, "jsonl") as log:
            log.write({"id": number})
    assert sorted(all_ids(tmp_path)) == [0, 1, 2]
    log.close()  # again
    with pytest.raises(BadInput, match="the writer is closed"):
        log.write({"id": 3})


def run(program: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import os, signal, sys\nfrom foretest.serving import LogWriter\n" + program
    return subprocess.run([sys.executable, "-c", code, str(folder), *arguments], capture_output=True, text=True)


FORKED = """
log = LogWriter(sys.argv[1])
log.write({"id": "parent, before"})
child = os.fork()
log.write({"id": "parent" if child else "child"})
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
PROCESS = """
from multiprocessing import Process
log = LogWriter(sys.argv[1], "jsonl")
def work():
    log.write({"id": "process"})
if __name__ == "__main__":
    process = Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
"""


def test_the_end_of_a_process_writes_what_waits(tmp_path: Path) -> None:
    """Without close, in a process and in one that was forked from it, each its own rows."""
    done = run(FORKED, tmp_path / "forked")
    assert done.returncode == 0, done.stderr
    assert sorted(all_ids(tmp_path / "forked")) == ["child", "parent", "parent, before"]
    assert len(ids_in(tmp_path / "forked")) == 2
    done = run(PROCESS, tmp_path / "process")
    assert done.returncode == 0, done.stderr
    assert all_ids(tmp_path / "process") == ["process"]


KILLED = """
from foretest.serving import log_files
log = LogWriter(sys.argv[1], sys.argv[2], file_rows=100)
files = 0
def fsync(descriptor, sync=os.fsync):
    global files
    if os.path.isdir(f"/proc/self/fd/{descriptor}"):
        return sync(descriptor)
    files += 1
    if files == 3:
        os.kill(os.getpid(), signal.SIGKILL)  # all of the third file is written, and it is not renamed yet
log_files.os.fsync = fsync
for number in range(100_000):
    log.write({"id": number, "scores": [0.5]})
    if number % 100 == 99:
        log.flush()
"""


@pytest.mark.parametrize("format", FORMATS)
def test_a_killed_process_loses_what_was_not_written(format: str, tmp_path: Path) -> None:
    """Its temporary file stays, and no reader takes it for a part of the log; the next writer goes on beside it."""
    done = run(KILLED, tmp_path, format)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]
    assert len(left) == 1
    with LogWriter(tmp_path, format) as log:
        log.write({"id": -1, "scores": [0.5]})
    assert left[0].exists()
    assert sorted(all_ids(tmp_path)) == [-1, *range(200)]
    for name in (tmp_path, tmp_path / f"*.{format}"):
        assert open_source(str(name)).rows == 201


def test_arguments_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments, message in (
        ({"format": "csv"}, "unknown format 'csv'"),
        ({"file_rows": 0}, "file_rows = 0"),
        ({"file_seconds": 0}, "file_seconds = 0"),
        ({"folder": tmp_path / "file"}, "file: not a folder that can be written to"),
        ({"folder": "s3://shop/log"}, "s3://shop/log: expected a folder of this machine"),
        ({"folder": None}, "folder = None: expected the path of a folder"),
        ({"folder": ""}, "folder = '': expected the path of a folder"),
    ):
        with pytest.raises(BadInput, match=message):
            LogWriter(**{"folder": tmp_path / "log", **arguments})  # type: ignore[arg-type]
    assert not (tmp_path / "log").exists()


def test_a_folder_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert LogWriter("~/log").folder == tmp_path / "log"


def test_a_row_that_is_no_mapping(tmp_path: Path) -> None:
    draw = Sampler({"policy": "plackett-luce"}, slots=1, seed=7).draw([0.0, 0.0], key=1)
    with LogWriter(tmp_path, "jsonl") as log:
        for row, message in (
            (draw, r"is a Draw: expected .*, as in log.write\({\*\*draw.row"),
            ([1], "is a list: expected"),
        ):
            with pytest.raises(BadInput, match=f"the row {message}"):
                log.write(row)  # type: ignore[arg-type]
    assert ids_in(tmp_path) == []


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer.os, "access", lambda *_: False)  # root may write anywhere
    with pytest.raises(BadInput, match=r"not a folder that can be written to \(Permission denied\)"):
        LogWriter(tmp_path)


def test_json_lines_need_no_pyarrow(tmp_path: Path) -> None:
    program = """
with LogWriter(sys.argv[1], "jsonl") as log:
    log.write({"id": 1})
print(*sorted({name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)))
"""
    names = set(run(program, tmp_path).stdout.split())
    assert "foretest" in names
    assert not names & {"pyarrow", "pandas", "duckdb", "scipy", "numba"}

"""What a killed process leaves behind is removed by the next one, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from foretest import remains
from foretest.files import write_whole

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes cannot be looked up here")

KILLED = """
import os, signal, sys
from pathlib import Path
from foretest import files, remains
with remains.temporary_folder(Path("folder")) as inner, files.whole_file(Path("a.txt")) as place:
    (inner / "log.parquet").write_text("long")
    place.write_text("half")
    if sys.argv[1:]:
        os.kill(os.getpid(), signal.SIGKILL)
    print(place.name, flush=True)
    sys.stdin.read()
"""


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "folder").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, *words], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


def test_what_kill_leaves_is_removed_by_the_next_run(tmp_path: Path) -> None:
    for name in ("notes.txt", ".foretest", "foretest-demo", f".foretest-{remains._host()}-1-x-00000000"):
        (tmp_path / name).write_text("mine")
    before = names(tmp_path) | {"folder"}
    process = start(tmp_path, "die")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert len(names(tmp_path) - before) == 3  # a file, and a folder with one
    write_whole(tmp_path / "b.txt", "b")
    remains.remove_remains(tmp_path / "folder")
    assert names(tmp_path) - before == {"b.txt"}
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_what_a_running_process_writes_stays(tmp_path: Path) -> None:
    process = start(tmp_path)
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    write_whole(tmp_path / "b.txt", "b")
    remains.remove_remains(tmp_path / "folder")
    assert {name, "log.parquet"} <= names(tmp_path)
    process.communicate("go on")
    assert (process.returncode, names(tmp_path)) == (0, {"a.txt", "b.txt", "folder"})


def test_only_of_this_host_and_of_a_process_that_is_gone(tmp_path: Path) -> None:
    """The number of a process is used again: when it was started tells two apart. Another host's cannot be asked."""
    host, status = remains._host(), remains._process("self")
    assert status is not None
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "precious").write_text("mine")
    mine, gone = f"{os.getpid()}-{status.started}", "4194305-1"  # above all numbers that Linux gives
    stays = [
        f".foretest-{host}-{mine}-00000001",
        f".foretest-{'0' * 8}-{gone}-00000001",
        f"x.foretest-{host}-{gone}-00000001",
    ]
    goes = [f".foretest-{host}-{gone}-00000002", f".foretest-{host}-{os.getpid()}-7-00000001"]
    for name in stays + goes:
        (tmp_path / name).write_text("half")
    (tmp_path / f".foretest-{host}-{gone}-00000003").symlink_to(tmp_path / "target")
    remains.remove_remains(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*stays, "target"}
    assert (tmp_path / "target" / "precious").exists()

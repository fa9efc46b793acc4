"""Odd environments: every one ends in a sentence and exit code 2, or makes no difference."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.commands import LOGGED, exit_code_of

MAIN = [sys.executable, "-c", "from foretest.cli import main; main()"]
LOG = pa.table({"click": [0, 1, 0, 1] * 50, "control": [0.5] * 200, "treatment": [0.4, 0.6] * 100})
Refused = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command that must be refused, beside a good log and its settings; the sentence."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(LOG, "log.parquet")
    Path("test.toml").write_text(LOGGED)

    def run(*words: str) -> str:
        before = sorted(os.listdir(os.fsencode(tmp_path)))
        assert exit_code_of(monkeypatch, *words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert sorted(os.listdir(os.fsencode(tmp_path))) == before
        return err.removeprefix("foretest: ").rstrip("\n")

    return run


UNDECODABLE = os.fsdecode(b"caf\xe9")
NOT_TEXT = r"caf\xe9{}: the name is not text in UTF-8. Rename the file or the folder."


@pytest.mark.parametrize("words", [["run", "caf.parquet", "-c", "test.toml"], ["run", "log.parquet", "-c", "caf"],
                                   ["demo", "-o", "caf"], ["board", "caf", "-o", "b.html"]])  # fmt: skip
def test_names_on_the_command_line_that_are_not_text(words: list[str], refused: Refused) -> None:
    ending = ".parquet" if "caf.parquet" in words else ""
    assert refused(*(word.replace("caf", UNDECODABLE) for word in words)) == NOT_TEXT.format(ending)


@pytest.mark.parametrize("log", ["logs", "logs/*.parquet"])
def test_names_in_a_folder_that_are_not_text(log: str, refused: Refused) -> None:
    Path("logs").mkdir()
    pq.write_table(LOG, "whole.parquet")
    os.rename("whole.parquet", f"logs/{UNDECODABLE}.parquet")
    assert refused("run", log, "-c", "test.toml") == "logs/" + NOT_TEXT.format(".parquet")


def test_names_of_dsjson_that_are_not_text(refused: Refused) -> None:
    Path("logs").mkdir()
    Path(f"logs/{UNDECODABLE}.json").write_text("{}\n")
    assert refused("convert", "dsjson", "logs", "-o", "out") == "logs/" + NOT_TEXT.format(".json")


def test_a_date_that_is_none(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in ("abc", "1e9", "9" * 40, "9" * 5000):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
        sentence = refused("run", "log.parquet", "-c", "test.toml", "-o", "out")
        assert sentence.startswith(f"SOURCE_DATE_EPOCH={seconds[:4] if seconds[0] == '9' else seconds}")
        assert sentence.endswith(
            ": expected a whole number of seconds since 1970, of a year up to 9999, or no such variable."
        )
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert exit_code_of(monkeypatch, "run", "log.parquet", "-c", "test.toml", "-o", "out") == 0
    assert "2 January 1970" in Path("out/report.html").read_text(encoding="utf-8")


def test_settings_that_have_no_end(refused: Refused) -> None:
    os.mkfifo("pipe")
    no_file = "a device or a pipe, expected a file. Write what it gives to a file, and name that."
    for device in ("/dev/zero", "pipe"):
        assert refused("run", "log.parquet", "-c", device) == f"{device}: {no_file}"
        assert refused("history", device, "-o", "out") == f"{device}: {no_file}"
        assert refused("check", "--vectors", device) == f"{device}: {no_file}"
        assert refused("run", "--sql", f"@{device}", "-c", "test.toml") == f"{device}: {no_file}"
    Path("large.toml").write_text(LOGGED + "#" * 10_000_001)
    assert refused("run", "log.parquet", "-c", "large.toml") == (
        "large.toml: larger than 10 MB; expected a settings file (TOML), not the log."
    )


def test_no_memory(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(ft.OfflineTest, "run", fail)
    assert refused("run", "log.parquet", "-c", "test.toml") == (
        "there is not enough memory for this. Run with fewer --threads, on a machine with more memory, or on a part"
        " of the log."
    )


def test_lists_that_no_memory_holds(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two displays of 67 million candidates are some kilobytes of Parquet; they are refused before they are read."""
    many = pa.array(np.zeros(20_000_002, np.int8))
    items = pa.ListArray.from_arrays(pa.array([0, 10_000_001, 20_000_002], pa.int32()), many)
    half = [0.5, 0.5]
    table = pa.table({"click": [0, 1], "control": half, "treatment": half, "ranking": [[0], [1]], "items": items})
    pq.write_table(table, "large.parquet", compression="zstd")
    assert Path("large.parquet").stat().st_size < 100_000
    Path("items.toml").write_text(LOGGED.replace("[log]", '[log]\nranking = "ranking"\ncandidates = "items"'))
    assert refused("run", "large.parquet", "-c", "items.toml") == (
        "large.parquet: column 'items', row group 0 (the first is 0): 20,000,002 values in 2 displays, where a display"
        " has at most 10,000,000. Is the file damaged? Write it again, or leave it out."
    )
    # a column that is not needed is not read
    assert exit_code_of(monkeypatch, "check", "large.parquet", "-c", "test.toml") == 0


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    pq.write_table(LOG, tmp_path / "log.parquet")
    (tmp_path / "test.toml").write_text(LOGGED)
    return tmp_path


@pytest.mark.parametrize("command", ["--version", "run log.parquet -c test.toml -o out"])
def test_closed_streams(command: str, desk: Path) -> None:
    """Without stdout nothing is done; without stderr nothing changes, and files get nothing that was meant for it."""
    words = " ".join(f"'{word}'" for word in [*MAIN, *command.split()])
    closed = subprocess.run(["sh", "-c", f"{words} >&-"], cwd=desk, capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (
        2,
        "foretest: standard output is closed, so that no answer can be shown. Send it to a file, or to /dev/null.\n",
    )
    assert not (desk / "out").exists()
    wrong = " ".join(f"'{word}'" for word in [*MAIN, "run", "--no-such-option"])
    silent = subprocess.run(["sh", "-c", f"{wrong} 2>&-"], cwd=desk, capture_output=True, text=True, check=False)
    assert (silent.returncode, silent.stdout) == (2, "")


@pytest.mark.slow
def test_a_user_without_a_home_and_a_name(desk: Path) -> None:
    """As in a container that runs under any number."""
    code = f"import pwd; pwd.getpwuid = {{}}.__getitem__; {MAIN[2]}"
    variables = {name: value for name, value in os.environ.items() if name not in ("HOME", "USER", "LOGNAME")}
    run = ["run", "log.parquet", "-c", "test.toml", "-o", "out"]
    done = subprocess.run(
        [sys.executable, "-c", code, *run], cwd=desk, env=variables, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (desk / "out" / "report.html").exists()


@pytest.mark.slow
def test_letters_that_the_output_does_not_have(desk: Path) -> None:
    variables = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*MAIN, "run", "log.parquet", "-c", "test.toml"], cwd=desk, env=variables, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()

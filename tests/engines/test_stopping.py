"""Ctrl-C, SIGTERM and kill -9 in the middle of a run: it ends at once, and what was on the disk stays as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import foretest as ft
from tests.engines.input_forms import write_csv
from tests.engines.test_faults import SETTINGS, assert_whole_answer, everything, table
from tests.support import SmallLog

pytestmark = pytest.mark.slow

FORETEST = str(Path(sys.executable).with_name("foretest"))
AT_ONCE = 10.0  # seconds, on a machine that others use; a batch of the log below takes minutes

# every display has a nested integral, of scores too far apart for one grid: one batch of the log is minutes of work
SLOW = """\
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"

[control]
policy = "thurstone"
scores = "control_scores"
sigma = 0.02

[treatment]
policy = "thurstone"
scores = "treatment_scores"
sigma = 0.02

[analysis]
estimators = ["cis"]
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that takes minutes, in two forms, and one that takes no time."""
    folder = tmp_path_factory.mktemp("logs")
    import pyarrow as pa
    import pyarrow.parquet as pq

    small = SmallLog(rows=200, m=6, k=3).table()
    many = pa.concat_tables([small] * 400)
    pq.write_table(many, folder / "slow.parquet", row_group_size=40_000)
    write_csv(many, folder / "slow.csv")
    pq.write_table(table(), folder / "fast.parquet")
    (folder / "slow.toml").write_text(SLOW, encoding="utf-8")
    (folder / "fast.toml").write_text(SETTINGS, encoding="utf-8")
    return folder


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: Path) -> Path:
    """A folder with the result of an earlier run, and one for temporary files."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "desk" / "out").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "desk")
    ft.OfflineTest.from_toml(logs / "fast.toml").run(logs / "fast.parquet").to_json("out/result.json")
    return tmp_path / "desk"


@pytest.fixture
def start(desk: Path, tmp_path: Path, logs: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a run and gives it back when it is at work."""
    started: list[subprocess.Popen[str]] = []
    env = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}

    def run(log: str, *options: str) -> subprocess.Popen[str]:
        command = [FORETEST, "run", str(logs / log), "-c", str(logs / "slow.toml"), "-o", "out", *options]
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        deadline = time.monotonic() + 60
        while not os.listdir(tmp_path / "temporary") and time.monotonic() < deadline:  # a command begins with that
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(3)  # into the first batch
        assert process.poll() is None
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize("log", ["slow.parquet", "slow.csv"])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped(
    sent: signal.Signals, code: int, log: str, start: Callable[..., subprocess.Popen[str]], desk: Path, tmp_path: Path
) -> None:
    before = everything(desk)
    process = start(log)
    begin = time.monotonic()
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < AT_ONCE
    assert (process.returncode, out, err) == (code, "", "foretest: stopped\n")
    assert everything(desk) == before
    assert everything(tmp_path / "temporary") == {}


def test_one_thread_hears_ctrl_c_too(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("slow.parquet", "--threads", "1")
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert time.monotonic() - begin < AT_ONCE


def test_killed(start: Callable[..., subprocess.Popen[str]], desk: Path, logs: Path, tmp_path: Path) -> None:
    """Nothing can be tidied up after kill -9, but nothing is half-written either: a rerun gives the right answer."""
    before = everything(desk)
    process = start("slow.csv")
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL
    assert everything(desk) == before
    done = subprocess.run(
        [FORETEST, "run", logs / "fast.parquet", "-c", logs / "fast.toml", "-o", "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert_whole_answer(json.loads(Path("out/result.json").read_text(encoding="utf-8")))
    assert [name for name in os.listdir("out") if name.startswith(".")] == []

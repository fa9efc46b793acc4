"""A fold that is killed goes on from the files it has done, and ends where an undisturbed one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.engines import local
from foretest.storage.saved import resume
from tests.storage.saved.support import SETTINGS, assert_same_result, write_days
from tests.support import SCORES, SmallLog, build_test

ROOT = Path(__file__).resolve().parents[3]

KILLED = """
import os, signal, sys
import pyarrow.parquet as pq
from foretest.storage.saved import resume
from foretest import cli

resume.FEWEST_ROWS, resume.SECONDS = 1, 0.0  # a save after every file
after, during = int(sys.argv[1]), sys.argv[2] == "during"
saves = 0
write, write_table = resume.write_aggregates, pq.ParquetWriter.write_table

def counted(*args, **options):
    global saves
    saves += 1
    write(*args, **options)
    if saves == after and not during:
        os.kill(os.getpid(), signal.SIGKILL)

def table(self, *args, **options):
    write_table(self, *args, **options)
    if saves == after and during:
        os.kill(os.getpid(), signal.SIGKILL)

resume.write_aggregates = counted
pq.ParquetWriter.write_table = table
sys.argv = ["foretest", *sys.argv[3:]]
cli.main()
"""


@pytest.fixture
def every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A save after every file, not after a million rows."""
    monkeypatch.setattr(resume, "FEWEST_ROWS", 1)
    monkeypatch.setattr(resume, "SECONDS", 0.0)


def rows_folded(test: ft.OfflineTest, log: Any, out: Path) -> int:
    """Save, counting the rows that are read now."""
    seen = []
    plain = local.aggregate

    def counted(source: Any, *args: Any, **options: Any) -> Any:
        seen.append(source.rows)
        return plain(source, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "aggregate", counted)
        test.save_aggregates(log, out)
    return sum(seen)


def stop_after(files: int, test: ft.OfflineTest, log: Any, out: Path) -> None:
    """Save, stopped by Ctrl-C when so many files are done."""
    done = 0
    plain = local.aggregate

    def stopped(*args: Any, **options: Any) -> Any:
        nonlocal done
        if done == files:
            raise KeyboardInterrupt
        done += 1
        return plain(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "aggregate", stopped)
        with pytest.raises(KeyboardInterrupt):
            test.save_aggregates(log, out)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize(("after", "when"), [(1, "after"), (3, "after"), (2, "during")])
def test_killed_and_run_again(tmp_path: Path, after: int, when: str) -> None:
    """A real process, ended by kill -9 after (or in the middle of) a save; then the same command again."""
    log, days = write_days(tmp_path, rows=500, days=5)
    (tmp_path / "test.toml").write_text(SETTINGS)
    (tmp_path / "killed.py").write_text(KILLED)
    out = tmp_path / "a.parquet"
    command = ["aggregate", *days, "-c", str(tmp_path / "test.toml"), "-o", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    killed = subprocess.run(
        [sys.executable, "killed.py", str(after), when, *command], cwd=tmp_path, env=environment, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not out.exists()
    done = after - 1 if when == "during" else after
    assert sum(path.suffix == ".sums" for path in Path(f"{out}.parts").iterdir()) == min(done, 1)
    test = ft.OfflineTest.from_toml(tmp_path / "test.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resume, "FEWEST_ROWS", 1)
        assert rows_folded(test, days, out) == 500 - 100 * done
    assert_same_result(test.run(str(out)), test.run(log.table()))
    assert not Path(f"{out}.parts").exists()


@pytest.mark.usefixtures("every_file")
def test_the_whole_command_goes_on_after_ctrl_c(tmp_path: Path) -> None:
    test = build_test(["cis", "ncis", "piece-ncis", "point-ncis-adaptive"])
    log, days = write_days(tmp_path)
    out = tmp_path / "a.parquet"
    stop_after(3, test, days, out)
    assert rows_folded(test, days, out) == 100
    assert_same_result(test.run(str(out)), test.run(log.table()))


@pytest.mark.usefixtures("every_file")
def test_rows_without_unit_and_id_keep_their_buckets(tmp_path: Path) -> None:
    """Where the row is the unit, buckets follow from its place in the whole log: limits of the bootstrap too."""
    columns = ft.LogColumns(rewards=["click"], ranking="ranking")
    test = ft.OfflineTest(log=columns, **SCORES, estimators=["ncis", "point-ncis"], cap=2.0)
    _, days = write_days(tmp_path)
    out = tmp_path / "a.parquet"
    stop_after(2, test, days, out)
    test.save_aggregates(days, out)
    assert_same_result(test.run(str(out)), test.run(days))


@pytest.mark.usefixtures("every_file")
def test_progress_counts_what_is_done_already(tmp_path: Path) -> None:
    test = build_test(["cis"])
    _, days = write_days(tmp_path)
    out = tmp_path / "a.parquet"
    stop_after(3, test, days, out)
    told: list[tuple[str, int | None, int]] = []
    test.save_aggregates(days, out, progress=lambda *said: told.append(said))
    assert [rows for _, _, rows in told] == [0, 300, 100]
    assert {total for _, total, _ in told} == {400}


@pytest.mark.usefixtures("every_file")
@pytest.mark.parametrize("change", ["a file", "a setting", "the order", "another file", "damage"])
def test_what_is_saved_serves_only_the_same_fold(tmp_path: Path, change: str) -> None:
    test = build_test(["cis", "point-ncis"])
    _, days = write_days(tmp_path)
    out = tmp_path / "a.parquet"
    stop_after(3, test, days, out)
    [kept] = Path(f"{out}.parts").iterdir()
    if change == "a file":
        # the same size, head and tail, and a new time of change
        os.utime(days[0], ns=(1, 1))
    elif change == "a setting":
        test = build_test(["cis", "point-ncis"], cap=3.0)
    elif change == "the order":
        days = days[::-1]
    elif change == "another file":
        pq.write_table(SmallLog(50, seed=4).table(), tmp_path / "more.parquet")
        days = [*days, str(tmp_path / "more.parquet")]
    else:
        kept.write_bytes(kept.read_bytes()[:-100])
    expected = test.run(days)
    assert rows_folded(test, days, out) == expected.log["rows"]
    assert_same_result(test.run(str(out)), expected)
    assert not Path(f"{out}.parts").exists()


@pytest.mark.usefixtures("every_file")
def test_a_file_that_is_bad_leaves_the_good_ones_done(tmp_path: Path) -> None:
    test = build_test(["cis"])
    log, days = write_days(tmp_path)
    good = pq.read_table(days[2])
    bad = good.set_column(0, "click", pa.array(np.full(good.num_rows, -1.0)))
    pq.write_table(bad, days[2])
    out = tmp_path / "a.parquet"
    with pytest.raises(ft.BadInput, match=r"day2.parquet: column 'click', row 0 .* the reward is negative"):
        test.save_aggregates(days, out)
    assert not out.exists()
    pq.write_table(good, days[2])  # mended: its content is another, so the whole log is folded again
    test.save_aggregates(days, out)
    assert_same_result(test.run(str(out)), test.run(log.table()))


def test_one_file_and_small_ones_need_no_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = build_test(["cis"])
    _, days = write_days(tmp_path)

    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("nothing is worth a save")

    monkeypatch.setattr(resume, "write_aggregates", refuse)
    test.save_aggregates(days, tmp_path / "a.parquet")
    monkeypatch.setattr(resume, "FEWEST_ROWS", 1)
    test.save_aggregates(days[0], tmp_path / "b.parquet")
    test.save_aggregates(SmallLog().table(), tmp_path / "c.parquet")


def test_runs_of_files_have_enough_rows(tmp_path: Path) -> None:
    _, days = write_days(tmp_path, rows=400, days=8)
    paths = [Path(day) for day in days]
    stops, done = [], 0
    while done < len(paths):
        done = resume._next_stop(paths, done, 120)
        stops.append(done)
    assert stops == [3, 6, 8]


@pytest.mark.usefixtures("every_file")
def test_what_else_is_in_the_folder_of_parts_stays(tmp_path: Path) -> None:
    test = build_test(["cis"])
    _, days = write_days(tmp_path)
    out, parts = tmp_path / "a.parquet", tmp_path / "a.parquet.parts"
    (parts / "deep").mkdir(parents=True)
    for name in ("notes.txt", "my.sums", "deep/a.txt"):
        (parts / name).write_text("mine")
    stop_after(3, test, days, out)
    assert len(list(parts.iterdir())) == 4
    test.save_aggregates(days, out)
    assert {str(path.relative_to(parts)) for path in parts.rglob("*")} == {"notes.txt", "my.sums", "deep", "deep/a.txt"}

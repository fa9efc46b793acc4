"""foretest warm: what it puts into a folder is all that a test needs there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from foretest.cli import small_tests
from foretest.policies import POLICIES, Fixed, Mixture
from tests.commands import exit_code_of


def test_with_its_folder_nothing_is_compiled(tmp_path: Path) -> None:
    case = next(small_tests._cases())  # the others would take a minute to compile
    cache = tmp_path / "a cache"
    command = f"""
import sys
from foretest.cli import main, small_tests
case = next(small_tests._cases())
small_tests._cases = lambda: iter([case])
small_tests._run_as_the_demo_does = lambda folder: None
sys.argv[1:] = ["warm", {str(cache)!r}, "--quiet"]
sys.exit(main())
"""
    warmed = subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, encoding="utf-8")
    assert f"kernels. Set FORETEST_CACHE='{cache}' where" in warmed.stdout
    assert list((cache / "templates").iterdir())
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o044 for path in files} == {0o044}  # others may read what root put into an image
    pq.write_table(case.rows, tmp_path / "log.parquet")
    script = f"""
import sys
from pathlib import Path
from foretest.kernels import code_files
[place] = Path({str(cache)!r}).joinpath("kernels").iterdir()
code_files.folders = lambda: iter([place])
code_files.folders_of_level = lambda: iter([])
import foretest as ft
columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", slot_rewards={{"click": "slot_click"}})
test = ft.OfflineTest(log=columns, control=ft.PlackettLuce("p"), treatment=ft.PlackettLuce("t"))
test.run({str(tmp_path / "log.parquet")!r})
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_place_that_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert exit_code_of(monkeypatch, "warm", str(tmp_path / "file")) == 2
    assert "cannot be made a folder" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(monkeypatch, "warm", "s3://images/cache") == 2
    assert "s3://images/cache: expected a folder of this machine" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_every_built_in_policy_is_among_the_small_tests() -> None:
    cases = list(small_tests._cases())
    seen = {type(policy) for case in cases for policy in (case.control, case.treatment)}
    seen |= {type(part) for case in cases if isinstance(case.control, Mixture) for _, part in case.control.components}
    assert seen >= set(POLICIES.values()) - {Fixed}  # a fixed ranking has no numbers to compute
    for case in cases[:2]:
        assert case.rows.num_rows == 400

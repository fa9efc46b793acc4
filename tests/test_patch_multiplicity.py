"""A second column that says how many displays a row stands for is added in three files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATCH = ROOT / "tests" / "patches" / "second_multiplicity.patch"


def files_of(patch: Path) -> list[str]:
    """The files that a patch touches."""
    lines = patch.read_text(encoding="utf-8").splitlines()
    return [line.partition(" b/")[2] for line in lines if line.startswith("diff --git ")]


@pytest.mark.slow
def test_a_second_multiplicity_is_added_in_three_files(tmp_path: Path) -> None:
    files = files_of(PATCH)
    assert 1 <= len(files) <= 3
    assert all(name.startswith("src/foretest/") for name in files)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "apply", str(PATCH)], cwd=tmp_path, check=True, env=outside_of_repositories(tmp_path))
    path = os.pathsep.join([str(tmp_path / "src"), str(ROOT)])
    check = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/patches/check_multiplicity.py"]
    run = subprocess.run(
        check, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert "passed" in run.stdout


def outside_of_repositories(folder: Path) -> dict[str, str]:
    """The environment in which git knows no repository, where it would leave out files beside it."""
    return {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent), "GIT_DIR": str(folder / "none")}

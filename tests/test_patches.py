"""What ought to be added in few files is added by a patch: applied to a copy of the sources, it passes its checks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATCHES = ROOT / "tests" / "patches"


class Addition(NamedTuple):
    """A patch, the tests that run with the patched sources, and how many files it may touch."""

    patch: str
    checks: str
    most_files: int


ADDITIONS = [
    Addition("metric_of_parts.patch", "check_metric_of_parts.py", 1),
    Addition("second_multiplicity.patch", "check_multiplicity.py", 3),
]


def files_of(patch: Path) -> list[str]:
    """The files that a patch touches."""
    lines = patch.read_text(encoding="utf-8").splitlines()
    return [line.partition(" b/")[2] for line in lines if line.startswith("diff --git ")]


@pytest.mark.slow
@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.patch)
def test_an_addition_touches_few_files_and_passes_its_checks(addition: Addition, tmp_path: Path) -> None:
    files = files_of(PATCHES / addition.patch)
    assert 1 <= len(files) <= addition.most_files
    assert all(name.startswith("src/foretest/") for name in files)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    # git knows no repository here, where it would leave out files beside it
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "GIT_DIR": str(tmp_path / "none")}
    subprocess.run(["git", "apply", str(PATCHES / addition.patch)], cwd=tmp_path, check=True, env=alone)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "src"), str(ROOT)])}
    checks = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"tests/patches/{addition.checks}"]
    run = subprocess.run(checks, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert "passed" in run.stdout

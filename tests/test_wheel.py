"""The wheel, built and installed outside the repository, does what the checkout does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foretest import kernels
from tests.schemas import validate

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_wheel_runs_the_demo(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run([*pip, *build], check=True)
    [wheel] = tmp_path.glob("foretest-*.whl")
    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)
    take_compiled_kernels(site)
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def run(code: str, *words: str) -> str:
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout

    assert run("import foretest; print(foretest.__file__)").startswith(str(site))
    shown = run("from foretest.cli import main; main()", "demo", "--rows", "3000", "-o", "out")
    assert "the truth" in shown
    schema = json.loads((site / "foretest" / "schema" / "result-1.json").read_text(encoding="utf-8"))
    validate(json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8")), schema)
    assert (site / "foretest" / "py.typed").exists()
    assert (site / "foretest" / "serving" / "vectors.jsonl").stat().st_size > 0


def take_compiled_kernels(site: Path) -> None:
    """Copy the machine code of this checkout's kernels: the sources are the same, and compiling them takes 40 s."""
    [checkout], installed = map(Path, kernels.__path__), site / "foretest" / "kernels"
    for source in checkout.glob("*.py"):
        assert (installed / source.name).read_bytes() == source.read_bytes()
    shutil.copytree(checkout / "__pycache__", installed / "__pycache__", dirs_exist_ok=True)

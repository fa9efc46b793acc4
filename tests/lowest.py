"""Environments with the oldest versions that pyproject.toml allows, for every Python that is supported and here.

`python -m tests.lowest FOLDER` makes them, and compiles the kernels of the demo in each.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PINS = "pins.txt"  # in each environment, written when all is in it
_RUN = "from foretest.cli import main; main()"


def project() -> dict[str, list[str]]:
    content: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return content


def lowest(version: str) -> list[str]:
    """The dependencies for a version of Python, each at its lower bound; of two that hold for it, the higher."""
    bounds: dict[str, str] = {}
    for text in project()["dependencies"]:
        requirement = Requirement(text)
        [bound] = requirement.specifier
        assert bound.operator == ">=", text
        if requirement.marker is None or requirement.marker.evaluate({"python_version": version}):
            bounds[requirement.name] = max(bounds.get(requirement.name, "0"), bound.version, key=_numbers)
    return [f"{name}=={bound}" for name, bound in bounds.items()]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def pythons() -> dict[str, str]:
    """The supported versions of Python that are here, each with its program: on the path, or where pyenv puts it."""
    versions = re.findall(r"Python :: (3\.\d+)\b", "\n".join(project()["classifiers"]))
    programs: dict[str, str] = {}
    for version in versions:
        folder = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
        same = [sys.executable] if version == f"{sys.version_info.major}.{sys.version_info.minor}" else []
        elsewhere = sorted(glob.glob(f"{folder}/{version}.*/bin/python3"))
        for program in [*same, *filter(None, [shutil.which(f"python{version}")]), *elsewhere]:
            code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
            asked = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
            if asked.stdout.strip() == version:
                programs[version] = program
                break
    return programs


def run(environment: Path, code: str, *words: str, folder: Path) -> str:
    """Run code in an environment, with this checkout's package; what it prints."""
    python = environment / "bin" / "python"
    caches = {"FORETEST_CACHE": str(environment / "cache"), "NUMBA_CACHE_DIR": str(environment / "cache" / "numba")}
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **caches}
    done = subprocess.run(
        [python, "-c", code, *words], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{environment.name}: {' '.join(words) or code}\n{done.stdout}{done.stderr}"
    return done.stdout


def foretest(environment: Path, *words: str, folder: Path) -> str:
    """Run a command in an environment; what it prints."""
    return run(environment, _RUN, *words, folder=folder)


def prepare(folder: Path, version: str, program: str) -> None:
    """Make the environment of a version of Python, unless it is there with the same packages; compile its kernels."""
    environment, pins = folder / version, "\n".join(lowest(version))
    done = environment / PINS
    if not done.exists() or done.read_text(encoding="utf-8") != pins:
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([program, "-m", "venv", "--without-pip", environment], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
        subprocess.run([*pip, "--no-compile", "--only-binary", ":all:", *pins.split("\n")], check=True)
        done.write_text(pins, encoding="utf-8")
    foretest(environment, "demo", "--rows", "2000", "-o", str(environment / "demo"), folder=environment)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as threads:
        for made in [threads.submit(prepare, folder, *python) for python in pythons().items()]:
            made.result()


if __name__ == "__main__":
    main()

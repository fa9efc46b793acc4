"""What a small run costs, beside importing what it stands on: `python benchmarks/start_up.py`.

CPU seconds of whole commands on a log of 1,000 displays, kernels on disk, in turns with a bare import of NumPy, PyArrow
and numba: the median of the turns. Then the first demo of a machine that has compiled nothing, by the clock; and the
first job of a Spark session whose workers find kernels beside the package, in the folder of `foretest warm`, or
nowhere. Written into docs/measured/benchmarks.md.

    python benchmarks/start_up.py [--turns 9] [--spark]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pages import DOCS, into_page

import foretest

PACKAGE = Path(foretest.__file__).parent
FORETEST = "import sys; from foretest.cli import main; sys.exit(main())"
IMPORTS = "import numpy, pyarrow, numba"
SETTINGS = """
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
id = "display_id"
date = "day"
slot_rewards = {click = "slot_click"}
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
estimators = ["is", "nis", "cis", "ncis", "point-ncis", "point-ncis-adaptive", "slot-ncis-adaptive"]
cap = 100
"""
RUN = ["run", "log.parquet", "-c", "settings.toml"]
COMMANDS = {
    "`foretest --help`": (["--help"], 0.15),
    "`foretest check`": (["check", *RUN[1:]], None),
    "`foretest run`, seven estimators": (RUN, 1.1),
    "`foretest run -o OUT`, with its page": ([*RUN, "-o", "out"], 1.3),
    "`foretest run -o OUT --no-report`": ([*RUN, "-o", "out", "--no-report"], None),
}
SPARK = """
import sys, time
import foretest as ft
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
log = spark.read.parquet(sys.argv[1]).coalesce(1)
log.mapInArrow(lambda batches: batches, log.schema).count()  # a worker that has imported PyArrow
test = ft.OfflineTest.from_toml(sys.argv[2])
begin = time.perf_counter()
test.run(log)
print(time.perf_counter() - begin)
spark.stop()
"""


def environment(**more: str) -> dict[str, str]:
    """This environment, in which compiled modules may be written."""
    return {**{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}, **more}


def cpu(arguments: list[str], folder: Path) -> float:
    """CPU seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", *arguments], cwd=folder, env=environment(), capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def small_runs(folder: Path, turns: int) -> list[str]:
    """The table of commands on a small log."""
    took: dict[str, list[float]] = {IMPORTS: [], **{name: [] for name in COMMANDS}}
    for turn in range(turns + 1):
        for name, seconds in took.items():
            arguments = [IMPORTS] if name == IMPORTS else [FORETEST, *COMMANDS[name][0]]
            measured = cpu(arguments, folder)
            if turn:  # the first compiles what is not on disk
                seconds.append(measured)
    floor = statistics.median(took.pop(IMPORTS))
    lines = ["| | CPU s | goal | times the imports |", "| --- | ---: | ---: | ---: |",
             f"| *import NumPy, PyArrow and numba* | {floor:.2f} | | 1 |"]  # fmt: skip
    for name, seconds in took.items():
        middle, goal = statistics.median(seconds), COMMANDS[name][1]
        shown = "" if goal is None else f"≤ {goal:g}"
        lines.append(f"| {name} | {middle:.2f} | {shown} | {middle / floor:.2f} |")
    return lines


def without_caches(folder: Path, *, shipped: bool = True) -> dict[str, str]:
    """The environment of a machine that has compiled nothing: a copy of the package, with or without the machine code
    that comes with it, and an empty home."""
    left_out = ("__pycache__",) if shipped else ("__pycache__", "compiled")
    shutil.copytree(PACKAGE, folder / "src" / "foretest", ignore=shutil.ignore_patterns(*left_out))
    (folder / "home").mkdir(parents=True)
    return environment(PYTHONPATH=str(folder / "src"), HOME=str(folder / "home"), XDG_CACHE_HOME=str(folder / "home"))


def seconds_of_demo(folder: Path, environ: dict[str, str]) -> float:
    """Seconds of a demo, by the clock."""
    begin = time.perf_counter()
    command = [sys.executable, "-c", FORETEST, "demo", "-o", "demo"]
    subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=True)
    return time.perf_counter() - begin


def first_demos(folder: Path) -> list[str]:
    """The table of first demos on a machine that has compiled nothing."""
    lines = ["| the first `foretest demo` of a machine | s | goal |", "| --- | ---: | ---: |"]
    for name, shipped in {"with the code that comes with the package": True, "where all is compiled": False}.items():
        place = folder / f"first {shipped}"
        seconds = seconds_of_demo(place, without_caches(place, shipped=shipped))
        lines.append(f"| {name} | {seconds:.1f} | {'≤ 12' if shipped else ''} |")
    return lines


def first_jobs(log: Path, settings: Path, folder: Path) -> list[str]:
    """The table of first jobs of a Spark session."""
    warmed = folder / "warmed"
    subprocess.run([sys.executable, "-c", FORETEST, "warm", str(warmed), "--quiet"], env=environment(), check=True)
    bare = folder / "bare"
    nothing = without_caches(bare, shipped=False)
    places = {
        "beside the package": environment(),
        "in the folder of `foretest warm`": {**nothing, "FORETEST_CACHE": str(warmed)},
        "nowhere": {**nothing, "FORETEST_CACHE": "/dev/null/none"},
    }
    lines = ["| kernels are | first job, s |", "| --- | ---: |"]
    for name, environ in places.items():
        environ["PYSPARK_PYTHON"] = sys.executable
        took = []
        for _ in range(3 if name != "nowhere" else 1):
            shutil.rmtree(bare / "src/foretest/kernels/__pycache__", ignore_errors=True)
            ended = subprocess.run([sys.executable, "-c", SPARK, str(log), str(settings)], env=environ, check=True,
                                   capture_output=True, text=True)  # fmt: skip
            took.append(float(ended.stdout.splitlines()[-1]))
        lines.append(f"| {name} | {statistics.median(took):.1f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--demo", action="store_true", help="also the first demo of a machine")
    parser.add_argument("--spark", action="store_true", help="also the first job of a Spark session")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-c", FORETEST, "simulate", "log", "--rows", "1000", "-o", "."], cwd=folder,
                       capture_output=True, check=True)  # fmt: skip
        (folder / "settings.toml").write_text(SETTINGS, encoding="utf-8")
        write("start", small_runs(folder, options.turns))
        if options.demo:
            write("first demo", first_demos(folder))
        if options.spark:
            write("first job", first_jobs(folder / "log.parquet", folder / "settings.toml", folder))


def write(name: str, lines: list[str]) -> None:
    """Print a table, and put it into its page."""
    print("\n".join(lines), end="\n\n", flush=True)
    into_page(DOCS / "measured/benchmarks.md", name, "\n".join(lines))


if __name__ == "__main__":
    main()

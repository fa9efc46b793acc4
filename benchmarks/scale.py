"""From a laptop to a cluster: `python benchmarks/scale.py [--folder FOLDER] [--peer PYTHON]`.

Every figure is a ratio of two things measured in this run, in turns, the least of each. Prints Markdown tables and
writes them into docs/measured/scale.md, with a picture of the growth, and what follows for 10^11 displays
into docs/how-to/cluster.md.
`--peer` is a Python that has Open Bandit Pipeline 0.5.7; else its rows are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pages import DOCS, into_page
from speed import COLUMNS, SCAN, SETTINGS, K, M, command, write_log

FORETEST = str(Path(sys.executable).with_name("foretest"))
HERE = Path(__file__).parent
Row = tuple[str, str, str]
PIECE = 1_000_000  # rows of a file
RATES: dict[str, float] = {}  # what the cost model is made of, as it is measured


def files(folder: Path, millions: int) -> list[str]:
    """Files of a million rows; those that are there are used again."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"piece-{i:02d}.parquet" for i in range(millions)]
    for i, path in enumerate(paths):
        if not path.exists():
            print(f"writing {path.name}", file=sys.stderr)
            write_log(path, PIECE, seed=i)
    return [str(path) for path in paths]


def run(paths: list[str], settings: Path, *options: str) -> tuple[float, float, float, str]:
    return command(FORETEST, "run", *paths, "-c", str(settings), "--json", *options)


def least(times: int, *work: Callable[[], float]) -> list[float]:
    """The least of each, measured in turns."""
    seen = [[w() for w in work] for _ in range(times)]
    return [min(column) for column in zip(*seen, strict=True)]


def scan(paths: list[str]) -> float:
    return sum(float(command(sys.executable, "-c", SCAN, path, ",".join(COLUMNS))[3]) for path in paths)


def full_run(folder: Path, settings: Path) -> list[Row]:
    """CPU over a bare scan, two cores over one, memory that does not grow."""
    small, five = folder / "log-1000.parquet", files(folder, 5)
    if not small.exists():
        write_log(small, 1000)
    one_core = ("--threads", "1")
    start, start_wall = least(3, lambda: run([str(small)], settings, *one_core)[0]), None
    start_wall = min(run([str(small)], settings)[1] for _ in range(3))
    cpu, floor = least(3, lambda: run(five, settings, *one_core)[0], lambda: scan(five))
    wall = least(2, lambda: run(five, settings)[1], lambda: run(five, settings, *one_core)[1])
    peaks = [run(files(folder, n), settings, *one_core)[2] for n in (2, 20)]
    ratio = (cpu - start[0]) / floor
    RATES["scan, µs a row"] = floor / 5.0
    RATES["run, µs a row"] = (cpu - start[0]) / 5.0
    RATES["bytes a row"] = sum(Path(path).stat().st_size for path in five) / (5.0 * PIECE)
    return [
        ("full run, 5 M displays, CPU beyond 1 000 rows over a bare scan", f"**{ratio:.2f}**", "≤ 1.5"),
        ("wall time on two cores over one", f"{(wall[0] - start_wall) / (wall[1] - start_wall):.2f}", "≤ 0.6"),
        ("peak memory at 20 M rows, MB", f"{peaks[1]:.0f}", "< 600"),
        ("peak memory at 20 M rows over that at 2 M", f"{peaks[1] / peaks[0]:.2f}", "≤ 1.1"),
    ]


BYTES = """
import sys, foretest as ft
test = ft.OfflineTest.from_toml(sys.argv[1]).replace(estimators=['point-ncis-adaptive'])
test.run(sys.argv[2], threads=1)  # modules and compiled kernels are loaded: what is read after is the log
with open('/proc/self/io') as io: before = int(io.readline().split()[1])
test.run(sys.argv[3], threads=1)
with open('/proc/self/io') as io: print(int(io.readline().split()[1]) - before)
"""


def packed(folder: Path, settings: Path) -> list[Row]:
    """The adaptive estimator on a packed log: CPU and bytes, against the full run on the plain log."""
    two, out = files(folder, 2), folder / "packed"
    small, small_packed = str(folder / "log-1000.parquet"), folder / "packed-1000"
    only = ("--estimators", "point-ncis-adaptive", "--threads", "1")
    for paths, place in (([small], small_packed), (two, out)):
        command(FORETEST, "pack", *paths, "-c", str(settings), "-o", str(place))
    full, start_full, quick, start_quick = least(
        3,
        lambda: run(two, settings, "--threads", "1")[0],
        lambda: run([small], settings, "--threads", "1")[0],
        lambda: run([str(out)], settings, *only)[0],
        lambda: run([str(small_packed)], settings, *only)[0],
    )
    ratio = max(0.0, quick - start_quick) / (full - start_full)
    return [
        ("adaptive PointNCIS on a packed log over the full run on the plain one, 2 M rows", f"{ratio:.3f}", "≤ 0.2"),
        ("bytes it reads, of the plain log's, 2 M rows", _bytes_read(settings, small_packed, two, out), "≤ 2 %"),
        ("the same, 5 M rows", _bytes_read(settings, small_packed, files(folder, 5), folder / "packed-5"), "≤ 2 %"),
    ]


def _bytes_read(settings: Path, loaded: Path, paths: list[str], place: Path) -> str:
    """The share of a log that is read once it is packed; some 8 MB of sums and sample whatever its size."""
    command(FORETEST, "pack", *paths, "-c", str(settings), "-o", str(place))
    read = int(command(sys.executable, "-c", BYTES, str(settings), str(loaded), str(place))[3])
    return f"{read / sum(Path(path).stat().st_size for path in paths):.1%}"


def normaliser() -> list[Row]:
    """1/variance/time of q(x): the kernel with the last slot summed out, against NumPy's Gumbel top-K."""
    from foretest.kernels import ranking_draws as kernel
    from foretest.weights.policy_pair import NONE, NOT_SHOWN

    g = np.random.default_rng(0)
    rows, draws, cap = 400, 256, 20.0
    p = g.normal(size=(rows, M))
    t = p + g.normal(scale=0.8, size=(rows, M))
    starts, sizes, slots = np.arange(rows) * M, np.full(rows, M), np.full(rows, K)
    keys = g.integers(0, 1 << 62, rows).astype(np.uint64)

    def ours(count: int = draws) -> np.ndarray:
        return kernel.draws(
            t.ravel(), starts, p.ravel(), starts, sizes, slots, 1.0, 1.0,
            keys, 0, 1, 1, 0, count, 0, kernel.Z, cap, False, NONE, NONE, NOT_SHOWN,
        )  # fmt: skip

    def log_prob(scores: np.ndarray, shown: np.ndarray) -> np.ndarray:
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        held = np.take_along_axis(e, shown, axis=-1)
        tails = e.sum(axis=-1, keepdims=True) - np.concatenate(
            [np.zeros_like(held[..., :1]), np.cumsum(held, axis=-1)[..., :-1]], axis=-1
        )
        return (np.log(held) - np.log(tails)).sum(axis=-1)

    def gumbel() -> np.ndarray:
        noisy = t[:, None, :] + g.gumbel(size=(rows, draws, M))
        shown = np.argpartition(-noisy, K, axis=2)[:, :, :K]
        order = np.argsort(-np.take_along_axis(noisy, shown, axis=2), axis=2)
        shown = np.take_along_axis(shown, order, axis=2)
        every = np.broadcast_to(t[:, None, :], noisy.shape), np.broadcast_to(p[:, None, :], noisy.shape)
        log_w = log_prob(every[0], shown) - log_prob(every[1], shown)
        return np.exp(np.minimum(0.0, np.log(cap) - log_w))

    def timed(work: Callable[[], np.ndarray]) -> Callable[[], float]:
        def measure() -> float:
            start = time.process_time()
            work()
            return time.process_time() - start

        return measure

    mine, theirs = ours(), gumbel()
    np.testing.assert_allclose(mine.mean(), theirs.mean(), atol=0.005)
    seconds = least(5, timed(ours), timed(gumbel))
    efficiency = [1.0 / (z.var(axis=1).mean() * s) for z, s in zip((mine, theirs), seconds, strict=True)]
    ratio = efficiency[0] / efficiency[1]
    return [("pointwise normaliser against NumPy's Gumbel top-K, at equal accuracy", f"{ratio:.0f}×", "≥ 20×")]


MERGE = """
import sys, time, foretest as ft
paths = sys.argv[1:]
ft.OfflineTest.from_aggregates(paths[:2]).run(paths[:2])  # modules and compiled kernels are loaded
seen = []
for _ in range(3):
    start = time.perf_counter()
    ft.OfflineTest.from_aggregates(paths).run(paths)
    seen.append(time.perf_counter() - start)
print(min(seen))
"""


def saved(folder: Path, settings: Path) -> list[Row]:
    """Thirty days of sums, merged and analysed."""
    days = folder / "days"
    days.mkdir(exist_ok=True)
    pieces = files(folder, 20)
    for day in range(30):
        if not (days / f"{day:02d}.parquet").exists():
            log = folder / f"day-{day:02d}.parquet"
            source = pieces[day] if day < len(pieces) else str(log)
            if day >= len(pieces):
                write_log(log, 200_000, seed=100 + day)
            command(FORETEST, "aggregate", source, "-c", str(settings), "-o", str(days / f"{day:02d}.parquet"))
            log.unlink(missing_ok=True)
    paths = sorted(str(path) for path in days.iterdir())
    seconds = min(command(FORETEST, "run", *paths, "--json")[1] for _ in range(3))
    alone = float(command(sys.executable, "-c", MERGE, *paths)[3])
    return [
        ("merge and analyse 30 saved aggregates, s", f"{alone:.1f}", "≤ 2"),
        ("the same as a command, start of Python and loading of kernels included, s", f"{seconds:.1f}", ""),
    ]


SPARK = """
import sys, time
from pyspark.sql import SparkSession
import foretest as ft
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "3g").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
spark.sparkContext.pythonExec = sys.executable
test = ft.OfflineTest.from_toml(sys.argv[1])
columns = sys.argv[2].split(",")
log = spark.read.parquet(*sys.argv[3:])

def nothing(batches):
    for batch in batches:
        pass
    return iter(())

def floor():
    start = time.perf_counter()
    log.select(*columns).mapInArrow(nothing, "x int").collect()
    return time.perf_counter() - start

def run():
    start = time.perf_counter()
    test.run(log)
    return time.perf_counter() - start

floor(), run()
seen = [(floor(), run()) for _ in range(3)]
print(min(f for f, _ in seen), min(r for _, r in seen))
"""


def spark(folder: Path, settings: Path) -> list[Row]:
    text = command(sys.executable, "-c", SPARK, str(settings), ",".join(COLUMNS), *files(folder, 4))[3]
    floor, full = (float(word) for word in text.split()[-2:])
    RATES["Spark, µs a row"] = 2.0 * full / 4.0
    RATES["no-op, µs a row"] = 2.0 * floor / 4.0
    return [("Spark local[2] over a no-op mapInArrow of the same 4 M rows, wall", f"{full / floor:.2f}", "≤ 1.4")]


def peer(python: str | None) -> list[Row]:
    """Open Bandit Pipeline, in its own environment, on the same arrays."""
    if python is None:
        return []
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, interpreter in (("make", sys.executable), ("obp", python), ("foretest", sys.executable)):
            words = [interpreter, str(HERE / "peer.py"), name, folder]
            out = subprocess.run(words, capture_output=True, text=True, check=True)
            answers[name] = json.loads(out.stdout.strip().splitlines()[-1])
    theirs, ours = answers["obp"], answers["foretest"]
    for key in ("ipw", "snipw", "slate"):
        assert abs(theirs[key]["value"] - ours[key]["value"]) < 1e-6 * abs(theirs[key]["value"]), key
    rows: list[Row] = []
    for key, title, goal in (
        ("ipw", "Open Bandit Pipeline, IPW: value and 1000 resamples, 1 M rounds: its time over ours", "≥ 50×"),
        ("snipw", "the same, SNIPW", "≥ 50×"),
        ("slate", "its slate estimator SIPS, 32 000 slates, 100 resamples: its time over ours", "≥ 100×"),
    ):
        rows.append((title, f"{theirs[key]['seconds'] / ours[key]['seconds']:.0f}×", goal))
    rows.append(("our peak memory over its", f"{ours['peak'] / theirs['peak']:.2f}", "≤ 0.33"))
    return rows


def growth(folder: Path, settings: Path) -> str:
    """CPU seconds of whole runs beyond start-up: by rows, by M and by K. Draws the first as a picture."""
    start = min(run([str(folder / "log-1000.parquet")], settings, "--threads", "1")[0] for _ in range(3))

    def beyond(paths: list[str]) -> float:
        return min(run(paths, settings, "--threads", "1")[0] for _ in range(2)) - start

    by_rows = [(millions, beyond(files(folder, millions))) for millions in (1, 2, 4, 8, 16)]
    lines = ["| rows | CPU s beyond start-up | µs a row |", "| ---: | ---: | ---: |"]
    lines += [f"| {n} M | {cpu:.1f} | {cpu / n:.2f} |" for n, cpu in by_rows]
    lines += ["", "| M | K | a further row, µs | over M + K, ns |", "| ---: | ---: | ---: | ---: |"]
    shapes = [(15, 4), (100, 4), (1000, 4), (100, 1), (100, 5), (100, 10), (100, 20)]
    by_shape = []
    for items, slots in shapes:
        # what a run does once, and for the sample of 20 000 displays, is in both
        less, more = 30_000, 30_000 + 40_000_000 // (items + 50)
        logs = []
        for rows in (less, more):
            logs.append(folder / f"shape-{items}-{slots}-{rows}.parquet")
            if not logs[-1].exists():
                write_log(logs[-1], rows, seed=7, items=items, slots=slots)
        few, many = least(2, *(lambda log=log: run([str(log)], settings, "--threads", "1")[0] for log in logs))
        each = (many - few) / (more - less) * 1e6
        by_shape.append((items, slots, each))
        lines.append(f"| {items} | {slots} | {each:.2f} | {each / (items + slots) * 1e3:.0f} |")
    (DOCS / "measured" / "growth.svg").write_text(_picture(by_rows, by_shape), encoding="utf-8")
    return "\n".join(lines)


def _picture(by_rows: list[tuple[int, float]], by_shape: list[tuple[int, int, float]]) -> str:
    """Time against rows, and against M + K, on axes that begin at 0: a straight line is linear growth."""
    from foretest.report.pictures import svg
    from foretest.report.theme import LIGHT

    def panel(values: list[dict[str, Any]], x: str, y: str) -> dict[str, Any]:
        return {
            "width": 260, "height": 200, "data": {"values": values},
            "mark": {"type": "line", "point": True},
            "encoding": {"x": {"field": x, "type": "quantitative"}, "y": {"field": y, "type": "quantitative"}},
        }  # fmt: skip

    spec = {
        "description": "CPU time of a run grows linearly with rows, and with M + K",
        "hconcat": [
            panel([{"million rows": n, "CPU seconds": cpu} for n, cpu in by_rows], "million rows", "CPU seconds"),
            panel(
                [{"M + K": m + k, "µs a row": each} for m, k, each in by_shape if k == K or m == 100],
                "M + K",
                "µs a row",
            ),
        ],
        "config": LIGHT,
    }
    return svg(spec) + "\n"


def cost_model() -> str:
    """What the measured rates come to at 10^8 .. 10^11 displays."""
    one, scanned, in_spark = RATES["run, µs a row"], RATES["scan, µs a row"], RATES["Spark, µs a row"]
    lines = [
        f"Measured: {one:.2f} µs of one core a display for a full run from local Parquet (of which {scanned:.2f} a bare"
        f" scan), {in_spark:.2f} µs in Spark (of which {RATES['no-op, µs a row']:.2f} Spark"
        f" itself), {RATES['bytes a row']:.0f} bytes per display, compressed.",
        "",
        "| displays | compressed | core-hours, local Parquet | core-hours, Spark | on 200 Spark cores |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for power in (8, 9, 10, 11):
        rows = 10.0**power
        size = rows * RATES["bytes a row"]
        text = f"{size / 1e12:.1f} TB" if size >= 1e12 else f"{size / 1e9:.0f} GB"
        local, spark_hours = rows * one / 3.6e9, rows * in_spark / 3.6e9
        minutes = 60.0 * spark_hours / 200.0
        wall = f"{minutes:.0f} min" if minutes >= 1 else f"{60 * minutes:.0f} s"
        lines.append(f"| 10^{power} | {text} | {local:.1f} | {spark_hours:.1f} | {wall} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the simulated logs (4 GB) are kept; default: nowhere")
    parser.add_argument("--peer", help="a Python with Open Bandit Pipeline 0.5.7")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foretest-scale-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "settings.toml"
        settings.write_text(SETTINGS, encoding="utf-8")
        rows: list[Row] = []
        for part in (
            lambda: full_run(folder, settings),
            lambda: packed(folder, settings),
            normaliser,
            lambda: saved(folder, settings),
            lambda: spark(folder, settings),
            lambda: peer(options.peer),
        ):
            found = part()
            for row in found:
                print(f"| {' | '.join(row)} |", file=sys.stderr, flush=True)
            rows += found
        grown = growth(folder, settings)
    text = "\n".join([
        f"Python {platform.python_version()}, PyArrow {pa.__version__}, NumPy {np.__version__}, {os.cpu_count()} shared"
        f" cores; M = {M}, K = {K}, 0.5 % rewarded.",
        "", "| what | measured | goal |", "| --- | ---: | ---: |", *(f"| {' | '.join(row)} |" for row in rows),
        "", grown,
    ])  # fmt: skip
    print(text)
    into_page(DOCS / "measured/scale.md", "scale", text)
    into_page(DOCS / "how-to/cluster.md", "cost", cost_model())


if __name__ == "__main__":
    main()

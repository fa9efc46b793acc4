"""Speed and memory, as ratios to a floor measured in the same run: `python benchmarks/speed.py`.

The floor is a bare PyArrow scan of the columns that the test reads: the one that `iter_batches` makes without options,
and the quickest that we know, on one thread and without reading ahead. Each follows a full run of its own, for what ran
before decides what memory costs. CPU time of a full run is taken beyond that of the same command on 1 000 rows, so that
start-up and the fixed resampling do not count. Written into docs/measured/benchmarks.md.
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
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pages import DOCS, into_page
from start_up import seconds_of_demo, without_caches

M, K, RATE, CHUNK = 20, 4, 0.005, 100_000
TURNS = 15
COLUMNS = ["click", "user", "stratum", "ranking", "control_scores", "treatment_scores"]
SETTINGS = """
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
estimators = ["is", "nis", "cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive"]
strata = "stratum"
cap = 20.0
"""
SCAN = """
import sys, time, pyarrow.parquet as pq
lean = len(sys.argv) < 4
start = time.process_time()
with pq.ParquetFile(sys.argv[1], **({"pre_buffer": False} if lean else {})) as file:
    for batch in file.iter_batches(columns=sys.argv[2].split(","), **({"use_threads": False} if lean else {})):
        pass
print(time.process_time() - start)
"""


def write_log(path: Path, rows: int, seed: int = 0, items: int = M, slots: int = K) -> None:
    """Displays whose treatment moves every score a little: weights beyond the cap in a share of rows."""
    writer = None
    for begin in range(0, rows, CHUNK):
        g = np.random.default_rng([seed, begin])
        n = min(CHUNK, rows - begin)
        control = g.normal(size=(n, items)).astype(np.float32)
        treatment = (control + g.normal(scale=0.8, size=(n, items))).astype(np.float32)
        shown = np.argsort(-(control + g.gumbel(size=(n, items))), axis=1)[:, :slots].astype(np.int16)

        def lists(values: np.ndarray) -> pa.Array:
            ends = np.arange(0, values.size + 1, values.shape[1], dtype=np.int32)
            return pa.ListArray.from_arrays(pa.array(ends), pa.array(values.ravel()))

        table = pa.table({
            "click": g.random(n) < RATE, "user": g.integers(0, rows, n),
            "stratum": g.integers(0, 8, n).astype(np.int32),
            "ranking": lists(shown), "control_scores": lists(control), "treatment_scores": lists(treatment),
        })  # fmt: skip
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def command(*words: str) -> tuple[float, float, float, str]:
    """CPU seconds, wall seconds, peak MB and stdout of a command."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(words, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(words)} failed with {process.returncode}")
        out.seek(0)
        text = out.read()
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss / 1024.0, text


def kernel_ratio(rows: int = 50_000) -> tuple[float, float]:
    """Plackett-Luce log-probabilities: vectorised NumPy's time over the kernel's, and the kernel's ns a row."""
    from foretest.kernels.plackett_luce import log_prob

    g = np.random.default_rng(0)
    scores = g.normal(size=(rows, M)).astype(np.float32)
    ranking = np.argsort(g.random((rows, M)), axis=1)[:, :K].astype(np.int32)
    starts, sizes = np.arange(rows) * M, np.full(rows, M)
    r_starts, r_sizes = np.arange(rows) * K, np.full(rows, K)

    def kernel() -> np.ndarray:
        return log_prob(scores.ravel(), starts, sizes, ranking.ravel(), r_starts, r_sizes, 1.0)

    def plain() -> np.ndarray:
        x = scores.astype(np.float64)
        x -= x.max(axis=1, keepdims=True)
        e = np.exp(x)
        shown = np.take_along_axis(e, ranking, axis=1)
        rest = e.copy()
        np.put_along_axis(rest, ranking, 0.0, axis=1)
        tails = rest.sum(axis=1, keepdims=True) + np.cumsum(shown[:, ::-1], axis=1)[:, ::-1]
        return np.take_along_axis(x, ranking, axis=1).sum(axis=1) - np.log(tails).sum(axis=1)

    np.testing.assert_allclose(kernel(), plain(), rtol=1e-10)

    def best(function: object) -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            function()  # type: ignore[operator]
            times.append(time.perf_counter() - start)
        return min(times)

    fast = best(kernel)
    return best(plain) / fast, fast / rows * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, help="where the simulated logs are kept; default: a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        measure(arguments.folder or Path(temporary), arguments.rows)


def measure(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "settings.toml"
    settings.write_text(SETTINGS, encoding="utf-8")
    sizes = {"full": rows, "quarter": rows // 4, "10k": 10_000, "1k": 1_000}
    paths = {name: folder / f"log-{size}.parquet" for name, size in sizes.items()}
    for name, path in paths.items():
        if not path.exists():
            print(f"writing {path.name}", file=sys.stderr)
            write_log(path, sizes[name])
    foretest = str(Path(sys.executable).with_name("foretest"))

    def run(name: str, *more: str) -> tuple[float, float, float, str]:
        return command(foretest, "run", str(paths[name]), "-c", str(settings), "--json", *(more or ("--threads", "1")))

    def scanned(*more: str) -> float:
        return float(command(sys.executable, "-c", SCAN, str(paths["full"]), ",".join(COLUMNS), *more)[3])

    all_cores = ("--threads", str(os.cpu_count()))
    run("1k")  # compile
    turns = []
    for _ in range(TURNS):  # a shared machine is slow by spells: what is measured side by side shares them
        small, in_threads = run("1k")[0], run("full", *all_cores)
        full, quickest = run("full"), scanned()
        again, plain = run("full"), scanned("as it is")
        turns.append(
            (quickest, plain, full[0] - small, again[0] - small, in_threads[0] - small, full[2], in_threads[2])
        )
    text = full[3]
    scan, plain_scan, beyond, beyond_again, beyond_in_threads, peak, peak_in_threads = np.transpose(turns)
    quarter = run("quarter")[2]
    ten = min(run("10k")[1] for _ in range(2))
    helped = min(command(foretest, "--help")[1] for _ in range(5))
    ratio, nanoseconds = kernel_ratio()
    capped = json.loads(text)["health"]["capped_share"]
    with tempfile.TemporaryDirectory() as fresh:
        environment = without_caches(Path(fresh), shipped=False)
        demos = [seconds_of_demo(Path(fresh), environment) for _ in range(2)]

    def quartiles(ratio: np.ndarray) -> tuple[str, str]:
        low, middle, high = np.quantile(ratio, [0.25, 0.5, 0.75])
        return f"**{middle:.2f}**", f"{low:.2f} to {high:.2f}"

    over_plain, over_quickest = quartiles(beyond_again / plain_scan), quartiles(beyond / scan)
    lines = [
        ("full run beyond 1 000 rows, CPU s", f"{np.median(np.concatenate([beyond, beyond_again])):.2f}", ""),
        ("scan by a bare `iter_batches` of the same columns, CPU s", f"{np.median(plain_scan):.2f}", ""),
        ("the quickest scan that we know, CPU s", f"{np.median(scan):.2f}", ""),
        (f"**full run over a bare `iter_batches`**, median of {TURNS} turns", over_plain[0], "≤ 1.5"),
        ("quartiles of the turns", over_plain[1], ""),
        ("the least full run over the least scan", f"{min(beyond_again) / min(plain_scan):.2f}", ""),
        (f"**full run over the quickest scan**, median of {TURNS} turns", over_quickest[0], "≤ 1.5"),
        ("quartiles of the turns", over_quickest[1], ""),
        ("the least full run over the least scan", f"{min(beyond) / min(scan):.2f}", ""),
        (
            f"full run on {os.cpu_count()} threads over a bare `iter_batches`, median",
            f"{np.median(beyond_in_threads / plain_scan):.2f}",
            "",
        ),
        (
            f"full run on {os.cpu_count()} threads over the quickest scan, median",
            f"{np.median(beyond_in_threads / scan):.2f}",
            "",
        ),
        ("Plackett-Luce kernel, NumPy's time over its own", f"{ratio:.1f}", "≥ 3"),
        ("Plackett-Luce kernel, ns per row", f"{nanoseconds:.0f}", ""),
        ("peak memory, MB", f"{max(peak):.0f}", "≤ 400"),
        (f"peak memory on {os.cpu_count()} threads, MB", f"{max(peak_in_threads):.0f}", "≤ 400"),
        ("peak memory over that of a quarter of the rows", f"{max(peak) / quarter:.2f}", "≤ 1.10"),
        ("`foretest --help`, s", f"{helped:.2f}", ""),
        ("second `foretest run`, 10 000 rows, s", f"{ten:.1f}", "< 3"),
        ("first `foretest demo` where all is compiled, s", f"{demos[0]:.1f}", ""),
        ("second `foretest demo`, s", f"{demos[1]:.1f}", "< 8"),
    ]
    table = ["| what | measured | goal |", "| --- | ---: | ---: |", *(f"| {' | '.join(line)} |" for line in lines), ""]
    table.append(
        f"{rows:,} simulated displays, M = {M}, K = {K}, {RATE:.1%} rewarded, {capped:.1%} of rows above the cap,"
        f" float32 scores, zstd Parquet, strata from a column; Python {platform.python_version()},"
        f" PyArrow {pa.__version__},"
        f" NumPy {np.__version__}, {os.cpu_count()} shared cores."
    )
    print("\n".join(table))
    into_page(DOCS / "measured/benchmarks.md", "speed", "\n".join(table))


if __name__ == "__main__":
    main()

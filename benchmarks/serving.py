"""What a draw and a write of `foretest.serving` cost: `python benchmarks/serving.py [--draws 100] [--rows 3000000]`.

For 100 and 1,000 candidates and 10 slots, every policy's draw, and the same with its row to log, beside the least that
a keyed draw needs: as many keyed uniform numbers as candidates, and a NumPy top-K of them. All are timed in turns of a
few milliseconds, in one run, and the quickest turn of each counts: others may use the machine meanwhile.

Of a writer, how long `write` takes where a row comes every fifth of a millisecond, while files are written, and how
long a file takes for each of its rows; then the memory of a process after a third of the rows and after all, written as
fast as they can be, with files removed as they come. Written into docs/how-to/serving.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pages import DOCS, into_page

from foretest.serving import (
    EpsilonGreedy,
    LogNotWritten,
    LogWriter,
    Mallows,
    Mixture,
    PlackettLuce,
    Sampler,
    SwapNeighbours,
    TopK,
)
from foretest.serving.generator import display_state, seed_state, uniforms

SLOTS, GOAL, TURNS = 10, 3.0, 200
POLICIES = {
    "plackett-luce": PlackettLuce(0.5),
    "epsilon-greedy, ε = 0.1": EpsilonGreedy(0.1),
    "mallows, φ = 0.5": Mallows(0.5),
    "swap-neighbours": SwapNeighbours(0.2),
    "top-k": TopK(),
    "mixture, 10 % of it plackett-luce": Mixture([(0.9, TopK()), (0.1, PlackettLuce(0.5))]),
}


def least(items: int) -> Callable[[int], object]:
    """Keyed uniform numbers and their top-K."""
    of_seed = seed_state(7)

    def draw(key: int) -> object:
        u = uniforms(display_state(of_seed, key), items)
        top = np.argpartition(u, items - SLOTS)[items - SLOTS :]
        return top[np.argsort(-u[top])]

    return draw


def drawing(sampler: Sampler, scores: np.ndarray, *, row: bool) -> Callable[[int], object]:
    """A draw by its key, with or without the row to log."""
    if row:
        return lambda key: sampler.draw(scores, key=key).row
    return lambda key: sampler.draw(scores, key=key)


def microseconds(programs: dict[str, Callable[[int], object]], draws: int) -> dict[str, float]:
    """The time of one call of each, in its quickest turn."""
    quickest = dict.fromkeys(programs, np.inf)
    for _ in range(TURNS):
        for name, program in programs.items():
            began = time.perf_counter()
            for key in range(draws):  # the same in every turn, or the quickest would be the one that explores least
                program(key)
            quickest[name] = min(quickest[name], (time.perf_counter() - began) / draws)
    return {name: 1e6 * seconds for name, seconds in quickest.items()}


def some_rows(items: int, count: int) -> list[dict[str, object]]:
    """Rows of a sampler with a user."""
    g, ids = np.random.default_rng(0), [f"item-{item}" for item in range(items)]
    sampler = Sampler(PlackettLuce(0.5), SLOTS, seed=7)
    return [sampler.draw(g.normal(size=items), ids, key=key).row | {"user": key % 97} for key in range(count)]


def writes(format: str, items: int) -> str:
    """A line of the table of writes: in a service, a row every 0.2 ms, with files of 500 rows."""
    rows, took = some_rows(items, 500), []
    with tempfile.TemporaryDirectory() as folder, LogWriter(folder, format, file_rows=len(rows)) as log:
        for number in range(10_000):
            began = time.perf_counter()
            log.write(rows[number % len(rows)])
            took.append(time.perf_counter() - began)
            time.sleep(2e-4)
        log.flush()
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / len(took)
    with tempfile.TemporaryDirectory() as folder:
        log = LogWriter(folder, format)
        for row in rows:
            log.write(row)
        began = time.thread_time()
        log.close()  # writes the file in this thread
        of_file = (time.thread_time() - began) / len(rows)
    middle, most = np.quantile(took, [0.5, 0.999])
    return f"| {format} | {items:,} | {1e6 * middle:.0f} | {1e3 * most:.1f} | {1e6 * of_file:.0f} | {size:,.0f} |"


def resident() -> float:
    """The memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory(format: str, rows: int) -> dict[str, float]:
    """MB before the first row, after a third of the rows, and after all; and the most rows that waited."""
    some = some_rows(20, 1000)
    with tempfile.TemporaryDirectory() as folder, LogWriter(folder, format) as log:
        sizes, waiting = {"before": resident()}, 0
        for number in range(rows):
            row = {**some[number % len(some)], "id": number}
            try:
                log.write(row)
            except LogNotWritten:
                log.flush()
                log.write(row)
            if number % 10_000 == 0:
                waiting = max(waiting, log.waiting)
                for path in Path(folder).glob(f"*.{format}"):
                    path.unlink()
            if number + 1 == rows // 3:
                log.flush()
                sizes["third"] = resident()
        log.flush()
        return {**sizes, "all": resident(), "waiting": waiting}


def memory_lines(rows: int) -> list[str]:
    """The table of memory, each format in a process of its own."""
    lines = [
        f"| format | before, MB | after {rows // 3:,} rows | after {rows:,} rows |",
        "| --- | ---: | ---: | ---: |",
    ]
    for format in ("parquet", "jsonl"):
        command = [sys.executable, __file__, "--memory", format, "--rows", str(rows)]
        sizes = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        assert sizes["waiting"] <= 40_000
        lines.append(f"| {format} | {sizes['before']:.0f} | {sizes['third']:.0f} | {sizes['all']:.0f} |")
    return lines


def draw_lines(draws: int) -> list[str]:
    """The table of draws."""
    lines = ["| policy | candidates | draw, µs | times the least | goal | with its row, µs |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for items in (100, 1000):
        scores = np.random.default_rng(0).normal(size=items)
        programs = {"least": least(items)}
        for name, policy in POLICIES.items():
            sampler = Sampler(policy, SLOTS, seed=7)
            programs[name] = drawing(sampler, scores, row=False)
            programs[f"{name}, row"] = drawing(sampler, scores, row=True)
        took = microseconds(programs, draws)
        lines.append(f"| *keyed uniforms and top-K* | {items:,} | {took['least']:.0f} | 1 | | |")
        lines += [
            f"| {name} | {items:,} | {took[name]:.0f} | {took[name] / took['least']:.1f} | ≤ {GOAL:g} |"
            f" {took[f'{name}, row']:.0f} |"
            for name in POLICIES
        ]
    return lines


def write_lines() -> list[str]:
    """The table of writes."""
    lines = ["| format | candidates | write, µs | 99.9 % of writes within, ms | its file, µs a row | bytes a row |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    return [*lines, *(writes(format, items) for format in ("parquet", "jsonl") for items in (100, 1000))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="of each turn; 0: leave draws out")
    parser.add_argument("--rows", type=int, default=3_000_000, help="that are written to see memory")
    parser.add_argument("--memory", choices=["parquet", "jsonl"], help="of this format, as JSON")
    options = parser.parse_args()
    if options.memory:
        print(json.dumps(memory(options.memory, options.rows)))
        return
    whole = options.rows == parser.get_default("rows")
    tables = {
        "draws": (draw_lines(options.draws) if options.draws else [], options.draws == parser.get_default("draws")),
        "writes": (write_lines(), whole),
        "memory": (memory_lines(options.rows), whole),
    }
    for name, (lines, for_page) in tables.items():
        print("\n".join(lines), end="\n\n")
        if for_page:
            into_page(DOCS / "how-to/serving.md", name, "\n".join(lines))


if __name__ == "__main__":
    main()

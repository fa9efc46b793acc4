"""What folding a long log costs: `python benchmarks/long_log.py [--rows 10000000]`.

A log with one row per display and item, ten items per display in random order, is folded to displays as `foretest run`
does it first, in a process of its own; beside it DuckDB alone joins and groups the same rows to lists. CPU seconds of
both, their ratio, and the peak memory of the fold; written into docs/measured/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pages import DOCS, into_page

ITEMS, SLOTS = 10, 4
GOAL, MEMORY = 4.0, 1000


def write_log(path: Path, rows: int) -> None:
    """Displays and items in random order, in chunks that each have some of every display."""
    g, displays = np.random.default_rng(0), rows // ITEMS
    order = g.permutation(displays * ITEMS)
    slot_of = np.tile(np.where(np.arange(ITEMS) < SLOTS, np.arange(1, ITEMS + 1), 0), displays).astype(np.int32)
    with pq.ParquetWriter(path, _SCHEMA) as writer:
        for part in np.array_split(order, max(1, rows // 500_000)):
            display, item = part // ITEMS, part % ITEMS
            columns = [
                pa.array(display), pa.array(item), pa.array(slot_of[part]), pa.array(g.normal(size=len(part))),
                pa.array(g.normal(size=len(part))),
                pa.array(((slot_of[part] > 0) & (g.random(len(part)) < 0.01)) * 1.0),
                pa.array(display // 3),
            ]  # fmt: skip
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))


_SCHEMA = pa.schema([
    ("display", pa.int64()), ("item", pa.int64()), ("slot", pa.int32()), ("old", pa.float64()), ("new", pa.float64()),
    ("click", pa.float64()), ("user", pa.int64()),
])  # fmt: skip


def fold(path: str) -> int:
    """Fold the log to displays, and count them."""
    import foretest as ft
    from foretest.log.opening import open_log

    columns = ft.LogColumns(
        rewards=["click"], unit="user", layout="long", display="display", item="item", slot="slot"
    )  # fmt: skip
    test = ft.OfflineTest(log=columns, control=ft.PlackettLuce("old"), treatment=ft.PlackettLuce("new"))
    names = ["display", "user", "click", "foretest: click by slot", "foretest: ranking", "old", "new"]
    source = open_log(path, test.settings)
    return sum(chunk.batch.num_rows for part in source.parts(names) for chunk in part())


def group(path: str) -> int:
    """DuckDB alone: candidates and impressions joined, and grouped to lists."""
    import duckdb

    database = duckdb.connect()
    shown = f"(SELECT display, item, slot, click FROM '{path}' WHERE slot > 0)"
    query = f"""
        SELECT display, any_value(user), sum(s.click), list(s.click), list(s.slot), list(old), list(new)
        FROM '{path}' AS c LEFT JOIN {shown} AS s USING (display, item) GROUP BY display
    """
    with database.sql(query).to_arrow_reader(1 << 16) as reader:
        return sum(batch.num_rows for batch in reader)


def measured(what: str, path: Path) -> dict[str, float]:
    """CPU seconds and peak memory of a process that does it."""
    done = subprocess.run([sys.executable, __file__, what, str(path)], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    if sys.argv[1:2] in (["fold"], ["group"]):
        rows = {"fold": fold, "group": group}[sys.argv[1]](sys.argv[2])
        usage = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"rows": rows, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss / 1024}))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    lines = ["| long rows | fold, CPU s | DuckDB's join and grouping, CPU s | ratio | goal | peak memory of the fold |",
             "| ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="foretest-long-") as folder:
        for rows in (options.rows // 10, options.rows):
            path = Path(folder) / f"{rows}.parquet"
            write_log(path, rows)
            ours, bare = (measured(what, path) for what in ("fold", "group"))
            assert ours["rows"] == bare["rows"]
            lines.append(
                f"| {rows:,} | {ours['cpu']:.1f} | {bare['cpu']:.1f} | {ours['cpu'] / bare['cpu']:.1f} | ≤ {GOAL:g} |"
                f" {ours['memory']:,.0f} MB (goal {MEMORY:,}) |"
            )
    print("\n".join(lines))
    if options.rows == 10_000_000:
        into_page(DOCS / "measured/benchmarks.md", "long log", "\n".join(lines))


if __name__ == "__main__":
    main()

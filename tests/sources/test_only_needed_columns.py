"""Only the needed columns are read: a column that cannot be read hurts nobody who does not need it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.sources import open_source
from tests.engines.input_forms import write_csv, write_json_lines
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=200)
EXTRA = np.random.default_rng(0).integers(0, 2**62, 200)
TABLE = LOG.table(extra=pa.array(EXTRA))


def parquet(folder: Path) -> Any:
    path = folder / "log.parquet"
    pq.write_table(TABLE, path, compression="none", use_dictionary=False, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    begin = data.index(EXTRA[:8].tobytes()) - 30
    data[begin : begin + 100] = b"\xff" * 100  # the header of the page
    path.write_bytes(data)
    return path


def feather(folder: Path) -> Any:
    """Each column is one compressed buffer: that of the last is spoilt."""
    path = folder / "log.arrow"
    with pa.ipc.new_file(path, TABLE.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(TABLE)
    data = bytearray(path.read_bytes())
    begin = data.rindex(b"\x28\xb5\x2f\xfd")  # the mark at the beginning of such a buffer
    data[begin : begin + 200] = b"\xff" * 200
    path.write_bytes(data)
    return path


def csv(folder: Path) -> Any:
    lists = ["[1, 2"] * 100 + ["[3]"] * 100
    write_csv(TABLE.set_column(TABLE.num_columns - 1, "extra", pa.array(lists)), folder / "log.csv")
    return folder / "log.csv"


def json_lines(folder: Path) -> Any:
    write_json_lines(TABLE, folder / "log.jsonl")
    text = (folder / "log.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    lines[77]["extra"] = {"deep": [1, {"deeper": "x"}]}
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder / "log.jsonl"


_FAILING = "SELECT * REPLACE (error('extra was read') AS extra) FROM '{}/log.parquet'"


def sql(folder: Path) -> Any:
    pq.write_table(TABLE, folder / "log.parquet")
    return ft.Sql(_FAILING.format(folder))


def relation(folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    pq.write_table(TABLE, folder / "log.parquet")
    return duckdb.connect().sql(_FAILING.format(folder))


def pandas_frame(folder: Path) -> Any:
    frame = pytest.importorskip("pandas").DataFrame(TABLE.to_pydict())
    frame["extra"] = [object()] * 100 + [{"a": 1}, 3] * 50
    return frame


def lazy(folder: Path) -> Any:
    polars = pytest.importorskip("polars")

    def fail(column: Any) -> Any:
        raise ValueError("extra was read")

    frame = polars.from_arrow(TABLE).lazy()
    return frame.with_columns(polars.col("extra").map_batches(fail, return_dtype=polars.Int64))


def dataset(folder: Path) -> Any:
    return ds.dataset(parquet(folder))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "Parquet": parquet,
    "Arrow": feather,
    "CSV": csv,
    "JSON lines": json_lines,
    "SQL": sql,
    "DuckDB relation": relation,
    "pandas": pandas_frame,
    "Polars, lazy": lazy,
    "dataset": dataset,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_column_that_cannot_be_read(kind: str, tmp_path: Path) -> None:
    log = SOURCES[kind](tmp_path)
    test = build_test(["cis", "dr", "point-ncis"], n_resamples=20)
    got, want = test.run(log), test.run(TABLE)
    for label, estimate in want.metrics["click"].estimates.items():
        assert got.metrics["click"].estimates[label].effect_size_ci_upper == pytest.approx(
            estimate.effect_size_ci_upper, rel=1e-9
        )
    if kind == "JSON lines":  # there it is text: nothing fails
        return
    with pytest.raises(ft.BadInput):
        [list(part()) for part in open_source(log).parts(["extra"])]


BYTES = """
import sys, pathlib
from foretest.sources import open_source

def read():
    return int(pathlib.Path("/proc/self/io").read_text().split()[1])

source = open_source(sys.argv[1])
source.schemas()
before = read()
for part in source.parts(["a"]):
    for chunk in part():
        assert chunk.batch.num_rows
print(read() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux's count of bytes")
@pytest.mark.parametrize("name", ["log.parquet", "log.arrow"])
def test_bytes_read(name: str, tmp_path: Path) -> None:
    """A column of a thirteenth of the bytes: hardly more than that is read, and the flags to count the rows."""
    rows = 200_000
    g = np.random.default_rng(0)
    wide = pa.FixedSizeListArray.from_arrays(g.integers(0, 2**62, rows * 12), 12).cast(pa.list_(pa.int64()))
    table = pa.table({"a": g.integers(0, 2**62, rows), "wide": wide, "flag": pa.repeat(True, rows)})
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(table, path, row_group_size=50_000, use_dictionary=False)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=50_000)
    done = subprocess.run([sys.executable, "-c", BYTES, str(path)], capture_output=True, text=True, check=True)
    needed = 8 * rows
    assert path.stat().st_size > 12 * needed
    assert needed <= int(done.stdout) < 1.2 * needed + 300_000

"""The same displays, wherever and however they lie, give the same digits."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.long_log import LONG, SHORT, assert_same, long_log, short_log, test_of, three_tables
from tests.stores.server import BUCKET, Store

DISPLAYS = short_log()
NAMES = ["click", "user", "view", "ranking", "slot_click", "control_scores", "treatment_scores"]


@pytest.fixture(scope="module")
def local() -> ft.Result:
    return test_of(SHORT).run(DISPLAYS)


def parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=128)
    return buffer.getvalue()


def arrow(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    feather.write_feather(table, buffer, compression="uncompressed", chunksize=100)
    return buffer.getvalue()


def csv(table: pa.Table) -> bytes:
    lines = [";".join(NAMES)]
    for row in table.select(NAMES).to_pylist():
        lines.append(";".join(json.dumps(v) if isinstance(v, list) else str(v) for v in row.values()))
    return "\n".join(lines).encode()


def json_lines(table: pa.Table) -> bytes:
    return "\n".join(json.dumps(row) for row in table.select(NAMES).to_pylist()).encode()


@pytest.mark.parametrize(
    ("ending", "content"), [("parquet", parquet), ("arrow", arrow), ("csv", csv), ("jsonl", json_lines)]
)
def test_one_file_of_every_kind(
    ending: str, content: Callable[[pa.Table], bytes], store: Store, local: ft.Result
) -> None:
    address = store.put(f"one/log.{ending}", content(DISPLAYS))
    assert_same(local, test_of(SHORT).run(address))


@pytest.mark.parametrize("log", ["several/", "several/day=*/*.parquet", "several/**/[ab].parquet"])
@pytest.mark.parametrize("at", ["store", "desk"])
def test_folders_and_patterns(log: str, at: str, store: Store, tmp_path: Path, local: ft.Result) -> None:
    """Also the columns that folders' names give, and what is left out, are as of local folders."""
    table = DISPLAYS.drop_columns(["stratum"])
    files = {"day=1/a": table.slice(0, 120), "day=1/b": table.slice(120, 60), "day=2/a": table.slice(180)}
    for name, rows in files.items():
        store.put(f"several/{name}.parquet", parquet(rows))
        (tmp_path / f"several/{name}.parquet").parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, tmp_path / f"several/{name}.parquet")
    for name in ("_SUCCESS", ".crc.parquet", "_temporary/0/c.parquet", "notes.txt"):
        store.put(f"several/{name}", b"x")
        (tmp_path / f"several/{name}").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"several/{name}").write_bytes(b"x")
    source = f"s3://{BUCKET}/{log}" if at == "store" else str(tmp_path / log)
    columns = ft.LogColumns(
        rewards=["click"], unit="user", id="view", ranking="ranking", slot_rewards={"click": "slot_click"}, date="day"
    )
    result = test_of(columns).run(source)
    assert_same(local, result)
    assert result.provenance["inputs"]["log"]["count"] == 3


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_long_log(ending: str, store: Store, local: ft.Result) -> None:
    long = long_log(DISPLAYS)
    if ending == "parquet":
        address = store.put("long.parquet", parquet(long))
    else:
        rows = [",".join(long.column_names), *(
            ",".join("" if v is None else str(v) for v in row.values()) for row in long.to_pylist()
        )]  # fmt: skip
        address = store.put("long.csv", "\n".join(rows).encode())
    assert_same(local, test_of(LONG).run(address))


def test_a_long_log_in_three_tables_beside_its_settings(store: Store, local: ft.Result) -> None:
    for name, table in three_tables(long_log(DISPLAYS)).items():
        store.put_table(f"three/{name}.parquet", table)
    settings = store.put("three/long.toml", b"""
        [log]
        rewards = ["click"]
        unit = "user"
        layout = "long"
        display = "view"
        item = "sku"
        slot = "place"
        [log.tables]
        impressions = "impressions.parquet"
        candidates = "s3://shop/three/candidates.parquet"
        rewards = "../three/rewards.parquet"
        [control]
        policy = "plackett-luce"
        scores = "control_scores"
        [treatment]
        policy = "plackett-luce"
        scores = "treatment_scores"
        [analysis]
        n_resamples = 50
    """)  # fmt: skip
    assert_same(local, ft.OfflineTest.from_toml(settings).run(None))

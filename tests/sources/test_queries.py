"""SQL over files and DuckDB relations."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.sources import Relation, Sql, SqlQuery, open_source
from foretest.sources.queries import connect
from tests.support import SmallLog, build_test

duckdb = pytest.importorskip("duckdb")

TABLE = pa.table({"id": range(5000), "x": [0.5 * i for i in range(5000)], "name": [f"n{i % 7}" for i in range(5000)]})


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "log.parquet", row_group_size=700)


def read(log: Any, *columns: str, batch_rows: int = 1000) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in columns}
    for part in open_source(log).parts(columns, batch_rows):
        at = 0
        for chunk in part():
            assert (chunk.row, chunk.position) == (at, at)
            assert chunk.batch.schema.names == list(columns)
            assert chunk.batch.num_rows <= batch_rows
            at += chunk.batch.num_rows
            for name in columns:
                found[name] += chunk.batch[name].to_pylist()
    return found


def refused(query: str) -> str:
    with pytest.raises(ft.BadInput) as error:
        open_source(Sql(query)).schemas()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_sql() -> None:
    source = open_source(ft.Sql("SELECT id, x * 2 AS twice, name FROM 'log.parquet' WHERE id >= 10"))
    assert isinstance(source, SqlQuery)
    assert (source.repeatable, source.rows) == (True, None)
    [(name, schema)] = source.schemas()
    assert name == "the SQL query"
    assert schema == pa.schema([("id", pa.int64()), ("twice", pa.float64()), ("name", pa.string())])
    query = Sql("SELECT id, x * 2 AS twice FROM 'log.parquet' WHERE id >= 10")
    for _ in range(2):
        assert read(query, "twice", "id") == {"twice": [float(i) for i in range(10, 5000)], "id": [*range(10, 5000)]}


def test_rows_keep_their_order() -> None:
    """So that the row of a message is the row of the query."""
    for query in (
        "FROM 'log.parquet'",
        "FROM 'log.parquet' ORDER BY id DESC",
        "SELECT * FROM 'log.parquet' LIMIT 3000",
    ):
        ids = read(Sql(query), "id")["id"]
        want = list(range(5000)) if "LIMIT" not in query else list(range(3000))
        assert ids == (want[::-1] if "DESC" in query else want)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM 'log.parquet';",
        "SELECT id FROM 'log.parquet' -- the end",
        "FROM 'log.parquet'",
        "WITH few AS (SELECT * FROM 'log.parquet' WHERE id < 3) SELECT id FROM few",
        "SELECT id FROM read_parquet(['log.parquet'])",
        "SELECT * FROM (VALUES (1), (2)) v(id)",
    ],
)
def test_forms_of_a_query(query: str) -> None:
    assert read(Sql(query), "id")["id"][:2] in ([0, 1], [1, 2])


def test_what_is_no_query() -> None:
    expected = "the SQL query: expected one SELECT, as in SELECT * FROM 'log.parquet'."
    for query in (
        "",
        "SELECT 1; SELECT 2",
        "COPY (SELECT 1 AS a) TO 'out.csv'",
        "CREATE TABLE t AS SELECT 1",
        "SET threads = 1",
    ):
        assert refused(query) == expected
    assert "syntax error" in refused("SELECT 1) t; COPY (SELECT 1) TO 'out.csv'; SELECT (1")
    assert os.listdir() == ["log.parquet"]
    assert refused("SELEKT 1").startswith('the SQL query: Parser Error: syntax error at or near "SELEKT"')
    assert refused("SELECT y FROM 'log.parquet'").startswith('the SQL query: Binder Error: Referenced column "y" not')
    assert "No files found" in refused("FROM 'gone.parquet'")
    with pytest.raises(ft.BadInput, match=r"^Sql\(…\) is given a list: expected the text of a query\.$"):
        Sql(["SELECT 1"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "query",
    [
        "FROM 'lake/*.parquet'",
        "FROM 'lake/day=1/a.parquet'",
        "SELECT * FROM read_parquet('lake/**/*.parquet') WHERE id > 3",
        "WITH one AS (SELECT * FROM read_parquet(['log.parquet', 'lake/a.parquet'], union_by_name = true)) FROM one",
    ],
)
def test_files_of_a_lake_table_are_not_read_one_by_one(query: str) -> None:
    """Some of them may be deleted, and only the table's own log says which."""
    os.makedirs("lake/_delta_log")
    os.makedirs("lake/day=1")
    for name in ("a.parquet", "day=1/a.parquet"):
        pq.write_table(TABLE, f"lake/{name}")
    refusal = refused(query)
    assert refusal.startswith("lake: a table of Delta Lake, not a plain folder: some of its files may have rows")
    assert refusal.endswith("Give the folder of the table as the log, without a query.")
    assert read(Sql("SELECT id FROM 'log.parquet' WHERE name <> 'lake/a.parquet'"), "id")["id"][0] == 0


def test_a_query_that_is_nested_too_deeply() -> None:
    query = "SELECT * FROM " + "(SELECT * FROM " * 400 + "'log.parquet'" + ")" * 400
    assert refused(query).startswith("the SQL query: ")


def test_names_are_not_python_variables() -> None:
    table = TABLE
    assert table.num_rows
    assert "Table with name table_of_nobody does not exist" in refused("FROM table_of_nobody")
    for name in ("log", "columns", "query", "self"):  # as the functions that read have them
        assert "does not exist" in refused(f"FROM {name}")


def test_an_error_in_the_middle() -> None:
    Path("words.csv").write_text("id,n\n" + "".join(f"{i},{i}\n" for i in range(3000)) + "3000,x\n", encoding="utf-8")
    query = "SELECT id, CAST(n AS INTEGER) AS n FROM read_csv('words.csv', all_varchar = true)"
    with pytest.raises(ft.BadInput, match=r"^the SQL query: Conversion Error: .*string \"x\" to") as error:
        read(Sql(query), "n")
    assert "\n" not in str(error.value)


def test_a_query_that_draws_at_random() -> None:
    """A fault that is not met again is told without its place."""
    log = SmallLog(rows=2000).table()
    pq.write_table(log, "small.parquet")
    count = "SELECT * REPLACE (if(random() < 0.001, -1, click) AS click) FROM 'small.parquet'"
    said = set()
    for _ in range(8):  # each draws no fault with a probability of e⁻²: all of them with e⁻¹⁶
        try:
            build_test(["cis"], n_resamples=2).run(Sql(count))
        except ft.BadInput as error:
            said.add(str(error).partition("column 'click'")[0])
    assert said <= {"the SQL query: ", ""}
    assert said


def test_duplicates_of_a_join() -> None:
    names = open_source(Sql("SELECT * FROM 'log.parquet' a JOIN 'log.parquet' b ON a.id = b.id")).schemas()[0][1].names
    assert names[:3] == ["id", "x", "name"]
    assert len(set(names)) == 6


def test_relation() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT id, x FROM 'log.parquet' WHERE id < 3000")
        source = open_source(relation)
        assert isinstance(source, Relation)
        assert source.schemas() == [("the DuckDB relation", pa.schema([("id", pa.int64()), ("x", pa.float64())]))]
        for _ in range(2):
            assert read(relation, "x", "id")["id"] == list(range(3000))
        filtered = connection.from_arrow(TABLE).filter("id < 5").project("id, x AS y")
        assert read(filtered, "y") == {"y": [0.0, 0.5, 1.0, 1.5, 2.0]}


def test_relation_of_a_closed_connection() -> None:
    connection = duckdb.connect()
    relation = connection.sql("FROM 'log.parquet'")
    connection.close()
    with pytest.raises(ft.BadInput, match=r"^the DuckDB relation: .*"):
        open_source(relation).schemas()


def test_kinds_of_columns() -> None:
    """What SQL gives is read: sums, decimals, enums, lists of fixed length."""
    query = Sql(
        "SELECT sum(id) AS total, CAST(0.25 AS DECIMAL(4, 2)) AS tenth, CAST('a' AS ENUM ('a', 'b')) AS letter,"
        " CAST([1.5, 2] AS DOUBLE[2]) AS pair, gen_random_uuid() AS uuid FROM 'log.parquet'"
    )
    schema = open_source(query).schemas()[0][1]
    assert pa.types.is_dictionary(schema.field("letter").type)
    assert pa.types.is_fixed_size_list(schema.field("pair").type)
    assert pa.types.is_string(schema.field("uuid").type)
    got = read(query, "total", "tenth", "letter", "pair")
    assert float(got["total"][0]) == 5000 * 4999 / 2
    assert float(got["tenth"][0]) == 0.25
    assert got["letter"] == ["a"]
    assert got["pair"] == [[1.5, 2.0]]


def test_a_connection_is_bounded_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What does not fit in memory goes to the folder of temporary files, and from there when the work is done."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with connect() as connection:
        [(limit,)] = connection.execute("SELECT current_setting('memory_limit')").fetchall()
        assert float(limit.split()[0]) * {"MiB": 1, "GiB": 1024}[limit.split()[1]] <= 2048
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with connect(80 << 20) as connection:
        wide = "SELECT i, repeat(md5(i::VARCHAR), 10) AS t FROM range(300000) r(i)"
        rows = 0
        spilled = False
        for batch in connection.sql(f"SELECT a.i, a.t FROM ({wide}) a ORDER BY md5(a.t)").to_arrow_reader(1000):
            rows += batch.num_rows
            spilled |= bool(os.listdir(tmp_path / "temporary"))
    assert rows == 300_000
    assert spilled
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(os.listdir()) == ["log.parquet", "temporary"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("autoinstall_known_extensions", False), ("autoload_known_extensions", False), ("lock_configuration", True)],
)
def test_a_query_finds_a_locked_database(setting: str, value: bool) -> None:
    assert read(Sql(f"SELECT current_setting('{setting}') AS x"), "x") == {"x": [value]}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('ht' || 'tps://shop.example/a.csv')",
        "SELECT * FROM read_parquet(concat('s', '3', '://shop/a.parquet'))",
        "SELECT * FROM read_text(chr(115) || '3://shop/a')",
        "SELECT ST_Point(1, 2) AS x",
        "SELECT * FROM sqlite_scan('log.db', 't')",
        "SELECT * FROM postgres_scan('host=shop', 'a', 'b')",
        "SELECT * FROM query('SET memory_limit = ''9GB''')",
        "SELECT * FROM query('INSTALL httpfs')",
        "SELECT * FROM 'https' || '://shop.example/a.csv'",
        "SET threads = 1",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH 'x.db'",
        "SELECT 1; LOAD httpfs",
        "RESET lock_configuration",
        "PRAGMA enable_progress_bar",
        "COPY (SELECT 1) TO 'x.csv'",
        "CALL force_checkpoint()",
    ],
)
def test_a_query_that_needs_more_than_is_here(query: str) -> None:
    before = sorted(os.listdir())
    assert refused(query).startswith("the SQL query: ")
    assert sorted(os.listdir()) == before

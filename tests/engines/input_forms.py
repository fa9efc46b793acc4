"""The forms in which one log can be given to one test: every engine and every source.

`INPUT_FORMS[name](log, folder, test)` brings the log to its form in an empty folder, and runs the test on it. One body
of tests runs over all of them; a new form is one more entry. A form keeps the order of rows, and float64 scores.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import foretest as ft
from tests.engines.spark_session import spark

Way = Callable[[pa.Table, Path, ft.OfflineTest], ft.Result]


def pieces(log: pa.Table, count: int = 3) -> list[pa.Table]:
    """The log cut into files of different sizes."""
    cuts = [0, *(log.num_rows * k // (2 * count) for k in range(1, count)), log.num_rows]
    return [log.slice(begin, end - begin) for begin, end in pairwise(cuts)]


def plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def write_csv(log: pa.Table, path: Path) -> None:
    """A CSV file, lists as JSON text, compressed where its name says so."""
    with open_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(log.column_names)
        for row in zip(*(column.to_pylist() for column in log.columns), strict=True):
            writer.writerow([json.dumps(value) if isinstance(value, list) else plain(value) for value in row])


def write_json_lines(log: pa.Table, path: Path) -> None:
    with open_text(path) as file:
        for row in log.to_pylist():
            file.write(json.dumps({key: plain(value) for key, value in row.items()}) + "\n")


def open_text(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "wt", encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


def write_pieces(log: pa.Table, folder: Path, write: Callable[[pa.Table, Path], Any], ending: str) -> str:
    (folder / "logs").mkdir()
    for number, piece in enumerate(pieces(log)):
        write(piece, folder / "logs" / f"{number}{ending}")
    return str(folder / "logs")


def one_file(write: Callable[[pa.Table, Path], Any], name: str) -> Way:
    def way(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
        write(log, folder / name)
        return test.run(folder / name)

    return way


def many_files(write: Callable[[pa.Table, Path], Any], ending: str) -> Way:
    return lambda log, folder, test: test.run(write_pieces(log, folder, write, ending))


def hive(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    """A folder for each value of `stratum`, which the files do not hold; the log is in order of it."""
    strata = log["stratum"].to_pylist()
    assert strata == sorted(strata)
    for value in sorted(set(strata)):
        place = folder / "logs" / f"stratum={value}"
        place.mkdir(parents=True)
        begin, count = strata.index(value), strata.count(value)
        pq.write_table(log.slice(begin, count).drop_columns(["stratum"]), place / "part-0.parquet")
    return test.run(folder / "logs")


def relation(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    import duckdb

    pq.write_table(log, folder / "log.parquet")
    with duckdb.connect() as connection:
        return test.run(connection.sql(f"FROM '{folder}/log.parquet'"))


def sql(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    pq.write_table(log, folder / "log.parquet", row_group_size=64)
    return test.run(ft.Sql(f"SELECT * FROM '{folder}/*.parquet'"))


def sql_join(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    """The treatment's scores are kept in another table, in another order."""
    place = pa.array(range(log.num_rows))
    log = log.append_column("place", place)
    pq.write_table(log.drop_columns(["treatment_scores"]), folder / "log.parquet")
    pq.write_table(log.select(["place", "treatment_scores"]).take(place[::-1]), folder / "scores.parquet")
    return test.run(ft.Sql(
        f"SELECT log.*, s.treatment_scores FROM '{folder}/log.parquet' log"
        f" JOIN '{folder}/scores.parquet' s USING (place) ORDER BY place"
    ))  # fmt: skip


def pandas_frame(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    return test.run(pytest.importorskip("pandas").DataFrame(log.to_pydict()))


def pandas_arrow(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    return test.run(log.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype))


def polars_frame(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    return test.run(pytest.importorskip("polars").from_arrow(log))


def polars_lazy(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    polars = pytest.importorskip("polars")
    return test.run(polars.scan_parquet(write_pieces(log, folder, pq.write_table, ".parquet") + "/*.parquet"))


def dataset(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    return test.run(ds.dataset(write_pieces(log, folder, pq.write_table, ".parquet")))


def write_stream(log: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, log.schema) as writer:
        writer.write_table(log, max_chunksize=70)


def write_row_groups(log: pa.Table, path: Path) -> None:
    pq.write_table(log, path, row_group_size=70)


def write_batches(log: pa.Table, path: Path) -> None:
    pyarrow.feather.write_feather(log, path, chunksize=70)


def packed(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    """Estimators that need all rows read both files, and a note says so."""
    pq.write_table(log, folder / "log.parquet", row_group_size=70)
    test.pack(str(folder / "log.parquet"), folder / "packed")
    result = test.run(str(folder / "packed"))
    return dataclasses.replace(result, notes=[note for note in result.notes if "packed" not in note])


def saved_aggregates(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    """One file, or three where rows have keys of their own and no value model is fitted to each."""
    columns = test.settings.log
    pieces = 3 if columns.unit is not None and not columns.features else 1
    size = -(-log.num_rows // pieces)
    paths = [folder / f"{piece}.parquet" for piece in range(pieces)]
    for piece, path in enumerate(paths):
        test.save_aggregates(log.slice(piece * size, size), path)
    return test.run([str(path) for path in paths])


def spark_frame(log: pa.Table, folder: Path, test: ft.OfflineTest) -> ft.Result:
    """In one partition: where neither unit nor id tells rows apart, their place does."""
    pq.write_table(log, folder / "log.parquet")
    return test.run(spark().read.parquet(str(folder / "log.parquet")).coalesce(1))


INPUT_FORMS: dict[str, Way] = {
    "table": lambda log, folder, test: test.run(log),
    "table, small batches": lambda log, folder, test: test.run(log, batch_rows=33),
    "Parquet": one_file(pq.write_table, "log.parquet"),
    "Parquet, row groups": one_file(write_row_groups, "log.parquet"),
    "Parquet, folder": many_files(pq.write_table, ".parquet"),
    "Parquet, Hive partitions": hive,
    "Feather": one_file(pyarrow.feather.write_feather, "log.feather"),
    "Arrow, folder": many_files(write_batches, ".arrow"),
    "Arrow, saved stream": one_file(write_stream, "log.arrows"),
    "CSV": one_file(write_csv, "log.csv"),
    "CSV, compressed": one_file(write_csv, "log.csv.gz"),
    "CSV, folder": many_files(write_csv, ".csv"),
    "JSON lines": one_file(write_json_lines, "log.jsonl"),
    "JSON lines, compressed": one_file(write_json_lines, "log.jsonl.gz"),
    "JSON lines, folder": many_files(write_json_lines, ".jsonl"),
    "DuckDB relation": relation,
    "SQL": sql,
    "SQL join": sql_join,
    "pandas": pandas_frame,
    "pandas, Arrow columns": pandas_arrow,
    "Polars": polars_frame,
    "Polars, lazy": polars_lazy,
    "Arrow stream": lambda log, folder, test: test.run(log.to_reader(max_chunksize=90)),
    "Arrow dataset": dataset,
    "packed": packed,
    "saved aggregates": saved_aggregates,
    "Spark": spark_frame,
}
input_forms = pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.spark) if way == "Spark" else way for way in INPUT_FORMS]
)

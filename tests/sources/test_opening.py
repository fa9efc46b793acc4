"""Where a log comes from: every kind of source gives the same rows, at the same places."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.sources import ArrowStream, ArrowTable, Chunk, ParquetFiles, Source, open_source, spool
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=100)
TABLE = LOG.table()


def chunks(source: Source, columns: list[str], batch_rows: int = 1 << 16) -> list[Chunk]:
    return [chunk for part in source.parts(columns, batch_rows) for chunk in part()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files of 40, 35 and 25 rows, in row groups of 15."""
    monkeypatch.chdir(tmp_path)
    for name, begin, end in (("a/1", 0, 40), ("a/2", 40, 75), ("b/3", 75, 100)):
        path = Path("logs") / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(TABLE.slice(begin, end - begin), path, row_group_size=15)
    return Path("logs")


FILES = ["logs/a/1.parquet", "logs/a/2.parquet", "logs/b/3.parquet"]
PATHS: dict[str, Any] = {
    "a folder": "logs",
    "a folder as Path": Path("logs"),
    "a folder with a slash": "logs/",
    "a list of files": FILES,
    "a tuple of paths": tuple(Path(name) for name in FILES),
    "a glob": "logs/*/*.parquet",
    "a recursive glob": "logs/**/*.parquet",
    "a glob of folders": "logs/*",
    "folders": ["logs/a", "logs/b"],
    "a mixture": ["logs/a", "logs/b/*.parquet"],
}


@pytest.mark.parametrize("kind", PATHS)
def test_paths(kind: str, folder: Path) -> None:
    source = open_source(PATHS[kind])
    assert isinstance(source, ParquetFiles)
    assert [str(path) for path in source.paths] == FILES
    assert source.rows == 100
    assert [name for name, _ in source.schemas()] == FILES


def test_marks_of_writers_are_not_data(folder: Path) -> None:
    for name in ("_SUCCESS", "_metadata.parquet", ".hidden.parquet", "notes.txt"):
        (folder / "a" / name).write_text("not data", encoding="utf-8")
    assert [str(path) for path in open_source("logs").paths] == FILES  # type: ignore[attr-defined]
    (folder / "a" / "notes.txt").unlink()
    assert [str(path) for path in open_source("logs/*/*").paths] == FILES  # type: ignore[attr-defined]


def test_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.resolve()))
    assert open_source("~/a/1.parquet").rows == 40
    assert open_source("~/*/1.parquet").rows == 40


def test_a_name_with_brackets_is_a_name(folder: Path) -> None:
    pq.write_table(TABLE.slice(0, 5), "log[1].parquet")
    assert open_source("log[1].parquet").rows == 5


@pytest.mark.parametrize("batch_rows", [4, 15, 1000])
def test_rows_and_positions_of_files(batch_rows: int, folder: Path) -> None:
    """A part a row group; rows count within their file, positions over the whole log."""
    source = open_source("logs")
    assert len(source.parts(["id"])) == 3 + 3 + 2
    got = chunks(source, ["id"], batch_rows)
    start = dict(zip(FILES, (0, 40, 75), strict=True))
    for chunk in got:
        assert chunk.batch.num_rows <= batch_rows
        assert chunk.position == chunk.row + start[chunk.source]
        assert chunk.batch["id"].to_pylist() == list(range(chunk.position, chunk.position + chunk.batch.num_rows))
    assert sum(chunk.batch.num_rows for chunk in got) == 100


def test_parts_may_be_read_in_any_order_and_again(folder: Path) -> None:
    parts = open_source("logs").parts(["id"])
    backwards = [chunk.position for part in reversed(parts) for chunk in part()]
    assert backwards == [90, 75, 70, 55, 40, 30, 15, 0]
    assert [chunk.position for chunk in parts[3]()] == [chunk.position for chunk in parts[3]()] == [40]


@pytest.mark.parametrize("kind", ["file", "table", "stream"])
def test_only_the_columns_asked_for_are_read(kind: str, folder: Path) -> None:
    log: Any = {"file": "logs", "table": TABLE, "stream": TABLE.to_reader()}[kind]
    for chunk in chunks(open_source(log), ["click", "ranking"]):
        assert chunk.batch.schema.names == ["click", "ranking"]


def test_rows_and_positions_of_a_table() -> None:
    table = pa.concat_tables([TABLE.slice(0, 30), TABLE.slice(30)])
    got = chunks(open_source(table), ["id"], 20)
    assert [(c.source, c.row, c.position, c.batch.num_rows) for c in got] == [
        ("the table", 0, 0, 20), ("the table", 20, 20, 10), ("the table", 30, 30, 20), ("the table", 50, 50, 20),
        ("the table", 70, 70, 20), ("the table", 90, 90, 10),
    ]  # fmt: skip


def test_rows_and_positions_of_a_stream() -> None:
    source = open_source(TABLE.to_reader(max_chunksize=30))
    assert isinstance(source, ArrowStream)
    assert source.rows is None
    assert not source.repeatable
    got = chunks(source, ["id"], 20)
    assert [(c.row, c.position, c.batch.num_rows) for c in got] == [
        (0, 0, 20), (20, 20, 10), (30, 30, 20), (50, 50, 10), (60, 60, 20), (80, 80, 10), (90, 90, 10),
    ]  # fmt: skip
    assert [c.batch["id"][0].as_py() for c in got] == [c.position for c in got]


def test_spool(tmp_path: Path) -> None:
    source = spool(open_source(TABLE.to_reader(max_chunksize=30)), ["id", "click", "id"], str(tmp_path))
    assert source.repeatable
    assert source.rows == 100
    for _ in range(2):
        ids = [i for chunk in chunks(source, ["id"]) for i in chunk.batch["id"].to_pylist()]
        assert ids == list(range(100))


# -- all that speaks Arrow --------------------------------------------------------------------------------------------


class Streaming:
    """Anything with an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


def pandas_frame() -> Any:
    return pytest.importorskip("pandas").DataFrame(TABLE.to_pydict())


def polars_frame() -> Any:
    return pytest.importorskip("polars").DataFrame(TABLE.to_pydict())


SOURCES: dict[str, Callable[[], Any]] = {
    "record batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "record batch reader": TABLE.to_reader,
    "an object with a stream": Streaming,
    "pandas": pandas_frame,
    "pandas with Arrow columns": lambda: TABLE.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype),
    "pandas with an index": lambda: pandas_frame().set_index(np.arange(100)[::-1]),
    "Polars": polars_frame,
    "Polars, lazy": lambda: polars_frame().lazy(),
}


def estimates(log: Any) -> dict[str, Any]:
    test = build_test(["cis", "piece-ncis", "dr", "point-ncis", "point-ncis-adaptive"], n_resamples=50)
    return dict(json.loads(test.run(log).to_json())["metrics"]["click"])


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return estimates(TABLE)


def assert_close(got: dict[str, Any], want: dict[str, Any]) -> None:
    for key, estimate in want["estimates"].items():
        other = got["estimates"][key]
        assert other["verdict"] == estimate["verdict"]
        for name in ("treatment", "std_error", "effect_size_ci_lower", "effect_size_ci_upper"):
            assert other[name] == pytest.approx(estimate[name], rel=1e-9)


@pytest.mark.parametrize("kind", SOURCES)
def test_sources_give_the_same_digits(kind: str, expected: dict[str, Any]) -> None:
    assert_close(estimates(SOURCES[kind]()), expected)


@pytest.mark.parametrize("kind", PATHS)
def test_paths_give_the_same_digits(kind: str, folder: Path, expected: dict[str, Any]) -> None:
    assert_close(estimates(PATHS[kind]), expected)


def test_polars_lazy_frame_over_files(folder: Path, expected: dict[str, Any]) -> None:
    polars = pytest.importorskip("polars")
    assert_close(estimates(polars.scan_parquet("logs/**/*.parquet")), expected)


def test_stream_with_a_value_model() -> None:
    """V(x) needs the log twice: a stream is spooled, and gives the digits of the table."""
    table = TABLE.append_column("country", pa.array(["fr", "de"] * 50))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=["country"]),
        control=ft.PlackettLuce(scores="control_scores"),
        treatment=ft.PlackettLuce(scores="treatment_scores"),
        estimators=["dr"],
        n_resamples=50,
    )
    of_table, of_stream = (test.run(log).metrics["click"].estimates["dr"] for log in (table, table.to_reader()))
    assert of_stream.treatment == pytest.approx(of_table.treatment, rel=1e-9)


def test_tables_and_streams() -> None:
    assert isinstance(open_source(TABLE), ArrowTable)
    assert isinstance(open_source(Streaming()), ArrowStream)


# -- what cannot be read ----------------------------------------------------------------------------------------------


def refused(log: Any) -> str:
    with pytest.raises(ft.BadInput) as error:
        open_source(log)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_refused(folder: Path) -> None:
    assert refused("log") == "log: no such file or folder. Did you mean 'logs'?"
    assert refused("logs/a/11.parquet") == "logs/a/11.parquet: no such file or folder. Did you mean '1.parquet'?"
    assert refused("logs/c/1.parquet") == "logs/c/1.parquet: no such file or folder. There is no folder logs/c."
    assert refused("logs/*/9.parquet") == "logs/*/9.parquet: no file matches this pattern."
    assert refused(["logs/a", "logs/a/1.parquet"]) == (
        "logs/a/1.parquet: this file is named twice, so its rows would count twice. Leave one out."
    )
    assert refused([]) == "the list of logs is empty: expected at least one path."
    begin = (
        "cannot be read: expected a path, a list of paths, SQL (foretest.Sql), a DuckDB relation, or an Arrow, pandas,"
        " Polars or Spark table."
    )
    assert refused(3) == f"a log of type int {begin}"
    assert refused(["logs", 3]) == f"a log of type list {begin}"


def test_a_link_to_a_file_is_that_file(folder: Path) -> None:
    Path("link.parquet").symlink_to("logs/a/1.parquet")
    assert open_source("link.parquet").rows == 40
    assert refused(["logs", "link.parquet"]).startswith("link.parquet: this file is named twice")


def test_a_file_that_goes_away(folder: Path) -> None:
    source = open_source("logs")
    Path("logs/b/3.parquet").unlink()
    with pytest.raises(ft.BadInput, match=r"^logs/b/3.parquet: no such file or folder\.$"):
        chunks(source, ["id"])


def test_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "ParquetFile", denied)
    assert refused("logs/a/1.parquet") == "logs/a/1.parquet: permission denied."


@pytest.mark.parametrize("kept", [1, 4, 8, 100, 0.5, 0.99])
def test_truncated(kept: float, folder: Path) -> None:
    whole = Path(FILES[0]).read_bytes()
    size = int(kept * len(whole)) if kept < 1 else int(kept)
    Path("cut.parquet").write_bytes(whole[:size])
    said = refused("cut.parquet")
    if size >= 4:
        assert said == (
            f"cut.parquet: a truncated Parquet file, whose end is missing after {size:,} bytes. Write it again, or"
            " leave it out."
        ) or size == 4  # fmt: skip
    else:
        assert said == "cut.parquet: not a Parquet file. Convert it to Parquet, or leave it out."

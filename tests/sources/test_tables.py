"""Logs in memory: pandas, Polars, datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.sources import ArrowDataset, ArrowTable, LazyPolars, PandasFrame, Source, open_source
from foretest.sources import tables as module
from tests.support import SmallLog, build_test

LOG = SmallLog(rows=100)


def read(source: Source, *columns: str, batch_rows: int = 1 << 16) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in columns}
    at = 0
    for part in source.parts(columns, batch_rows):
        for chunk in part():
            assert (chunk.row, chunk.position) == (at, at)
            assert chunk.batch.num_rows <= batch_rows
            at += chunk.batch.num_rows
            for name in columns:
                found[name] += chunk.batch[name].to_pylist()
    return found


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PART_ROWS", 30)


@pytest.mark.usefixtures("small_parts")
def test_a_table_is_read_side_by_side() -> None:
    source = open_source(LOG.table())
    assert isinstance(source, ArrowTable)
    assert len(source.parts(["id"])) == 4
    assert read(source, "id", batch_rows=20)["id"] == list(range(100))
    assert len(open_source(LOG.table().slice(0, 0)).parts(["id"])) == 1


def test_a_null_beyond_the_slice_of_coded_lists() -> None:
    """The values of a slice's neighbours are at hand, but none of its rows' business."""
    coded = pa.array(["a", "b", None, "b", "a", "c"]).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array([0, 3, 6], pa.int32()), coded).slice(1)
    log = pa.table(
        {"click": [1.0], "items": lists, "shown": [["a", "c"]], "s": [[0.5, 1.0, 2.0]], "t": [[2.0, 1.0, 0.0]]}
    )
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="shown", candidates="items"),
        control=ft.PlackettLuce("s"), treatment=ft.PlackettLuce("t"), estimators=["is"],
    )  # fmt: skip
    # a is the second of b, a, c, and c the third: w = t(a) t(c | not a) / (s(a) s(c | not a))
    e = np.exp
    t = e(1) / (e(2) + e(1) + 1) / (e(2) + 1)
    s = e(1) / (e(0.5) + e(1) + e(2)) * e(2) / (e(0.5) + e(2))
    assert test.run(log).metrics["click"].estimates["is"].treatment == pytest.approx(t / s, rel=1e-12)


# -- pandas -----------------------------------------------------------------------------------------------------------

pandas = pytest.importorskip("pandas")


@pytest.mark.usefixtures("small_parts")
def test_pandas() -> None:
    source = open_source(pandas.DataFrame(LOG.table().to_pydict()))
    assert isinstance(source, PandasFrame)
    assert source.rows == 100
    assert len(source.parts(["id"])) == 4
    got = read(source, "id", "control_scores", batch_rows=20)
    assert got["id"] == list(range(100))
    assert got["control_scores"] == LOG.control.tolist()


def schema_of(frame: Any) -> dict[str, pa.DataType]:
    schema = open_source(frame).schemas()[0][1]
    return dict(zip(schema.names, schema.types, strict=True))


def test_pandas_columns() -> None:
    frame = pandas.DataFrame(
        {
            "arrays": [np.array([1.5, 2.0]), np.array([3.0])],
            "lists": [["a"], []],
            "category": pandas.Categorical(["x", "y"]),
            "day": pandas.to_datetime(["2024-03-01", "2024-03-02"]),
            "whole": pandas.array([1, None], dtype="Int64"),
            "text": ["a", None],
            7: [True, False],
        }
    )
    kinds = schema_of(frame)
    assert kinds["arrays"] == pa.list_(pa.float64())
    assert kinds["lists"] == pa.list_(pa.string())
    assert pa.types.is_dictionary(kinds["category"])
    assert pa.types.is_timestamp(kinds["day"])
    assert kinds["whole"] == pa.int64()
    assert kinds["7"] == pa.bool_()
    got = read(open_source(frame), "arrays", "lists", "category", "whole", "text", "7")
    assert got == {
        "arrays": [[1.5, 2.0], [3.0]], "lists": [["a"], []], "category": ["x", "y"], "whole": [1, None],
        "text": ["a", None], "7": [True, False],
    }  # fmt: skip


def test_a_type_is_that_of_the_whole_column() -> None:
    """Not of its first batch: integers there, numbers later, and a batch of nothing."""
    frame = pandas.DataFrame({"x": pandas.Series([1] * 10 + [None] * 10 + [0.5] * 10, dtype=object)})
    assert schema_of(frame) == {"x": pa.float64()}
    assert read(open_source(frame), "x", batch_rows=10)["x"] == [1.0] * 10 + [None] * 10 + [0.5] * 10


def test_the_named_index_is_a_column() -> None:
    frame = pandas.DataFrame({"x": [1, 2, 3]}, index=pandas.Index(["a", "b", "c"], name="user"))
    assert read(open_source(frame), "user", "x") == {"user": ["a", "b", "c"], "x": [1, 2, 3]}
    levels = pandas.MultiIndex.from_tuples([(1, "a"), (2, "b"), (3, "c")], names=["n", None])
    assert list(schema_of(pandas.DataFrame({"x": [1, 2, 3]}, index=levels))) == ["n", "x"]
    assert list(schema_of(pandas.DataFrame({"x": [1, 2]}, index=pandas.Index([7, 8], name="x")))) == ["x"]


def test_pandas_columns_of_one_name() -> None:
    frame = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    assert open_source(frame).schemas()[0][1].names == ["a", "a"]


def test_objects_that_arrow_has_no_type_for() -> None:
    frame = pandas.DataFrame({**LOG.table().to_pydict(), "click": [object()] * 100})
    with pytest.raises(ft.BadInput) as error:
        build_test(["cis"]).run(frame)
    said = str(error.value)
    assert said.startswith("the table: column 'click' is null (objects that Arrow has no one type for: ")
    assert said.endswith(", expected a number or bool column (a reward). Convert it, or name another column.")
    assert "\n" not in said


# -- Polars -----------------------------------------------------------------------------------------------------------

polars = pytest.importorskip("polars")


def polars_forms() -> dict[str, Any]:
    frame = polars.from_arrow(LOG.table())
    names = polars.Series("user", [f"u{u}" for u in LOG.unit])
    return {
        "text": frame.with_columns(names),
        "categories": frame.with_columns(names.cast(polars.Categorical)),
        "an enum": frame.with_columns(names.cast(polars.Enum(sorted(set(names))))),
        "arrays": frame.with_columns(
            names,
            polars.col("control_scores", "treatment_scores").cast(polars.Array(polars.Float64, 5)),
            polars.col("ranking").cast(polars.Array(polars.Int16, 2)),
        ),
        "chunks": polars.concat([frame[:33], frame[33:]]).with_columns(names),
        "lazy": frame.lazy().with_columns(names),
    }


@pytest.mark.parametrize("form", polars_forms())
def test_polars_forms(form: str) -> None:
    table = LOG.table().set_column(2, "user", pa.array([f"u{u}" for u in LOG.unit]))
    test = build_test(["ncis", "point-ncis"], n_resamples=50)
    want, got = (test.run(log).metrics["click"].estimates["ncis"] for log in (table, polars_forms()[form]))
    assert got.effect_size_ci_upper == pytest.approx(want.effect_size_ci_upper, rel=1e-9)
    assert got.treatment == pytest.approx(want.treatment, rel=1e-9)


def test_lazy_polars_streams(tmp_path: Path) -> None:
    """Its query runs for every pass, for the columns of the pass, in batches."""
    pq.write_table(LOG.table(), tmp_path / "log.parquet", row_group_size=40)
    source = open_source(polars.scan_parquet(tmp_path / "log.parquet").filter(polars.col("id") >= 10))
    assert isinstance(source, LazyPolars)
    assert source.repeatable
    assert source.schemas()[0][1].names == LOG.table().column_names
    for _ in range(2):
        assert read(source, "id", batch_rows=25)["id"] == list(range(10, 100))


def test_lazy_polars_that_cannot_run(tmp_path: Path) -> None:
    with pytest.raises(ft.BadInput, match=r"^the LazyFrame cannot be read: .*missing") as error:
        open_source(polars.LazyFrame({"a": [1]}).select("missing")).schemas()
    assert "\n" not in str(error.value)
    pq.write_table(LOG.table(), tmp_path / "log.parquet")
    source = open_source(polars.scan_parquet(tmp_path / "log.parquet"))
    source.schemas()
    (tmp_path / "log.parquet").unlink()
    with pytest.raises(ft.BadInput, match=r"^the LazyFrame cannot be read: ") as error:
        read(source, "id")
    assert "\n" not in str(error.value)


# -- datasets ---------------------------------------------------------------------------------------------------------


def test_dataset(tmp_path: Path) -> None:
    ds.write_dataset(LOG.table(), tmp_path, format="parquet", partitioning=["stratum"], partitioning_flavor="hive")
    source = open_source(ds.dataset(tmp_path, partitioning="hive"))
    assert isinstance(source, ArrowDataset)
    got = read(source, "stratum", "id", batch_rows=7)
    assert sorted(got["id"]) == list(range(100))
    assert [LOG.stratum[i] for i in got["id"]] == got["stratum"]


def test_filtered_dataset_of_feather(tmp_path: Path) -> None:
    ds.write_dataset(LOG.table(), tmp_path, format="feather")
    source = open_source(ds.dataset(tmp_path, format="feather").filter(ds.field("id") < 10))
    assert read(source, "id")["id"] == list(range(10))


def test_a_dataset_whose_file_goes_away(tmp_path: Path) -> None:
    pq.write_table(LOG.table(), tmp_path / "log.parquet")
    source = open_source(ds.dataset(tmp_path))
    (tmp_path / "log.parquet").unlink()
    with pytest.raises(ft.BadInput, match=r"^the dataset cannot be read: .*log\.parquet"):
        read(source, "id")

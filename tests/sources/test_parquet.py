"""Parquet files as parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.sources import open_source, parquet
from foretest.storage.saved.files import SavedFile, refuse_to_replace


def test_wide_rows_come_in_smaller_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by bytes, not by rows alone: 4 000 rows of 800 bytes, at most 1 MB a batch."""
    rng = np.random.default_rng(0)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(4000 * 100)), 100).cast(pa.list_(pa.float64()))
    pq.write_table(pa.table({"scores": lists}), tmp_path / "wide.parquet", compression="none", use_dictionary=False)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 1 << 20)
    [part] = open_source(str(tmp_path / "wide.parquet")).parts(["scores"], 65_536)
    batches = [chunk.batch for chunk in part()]
    assert sum(batch.num_rows for batch in batches) == 4000
    assert max(batch.num_rows for batch in batches) <= (1 << 20) // 800
    monkeypatch.undo()
    [part] = open_source(str(tmp_path / "wide.parquet")).parts(["scores"], 65_536)
    assert [chunk.batch.num_rows for chunk in part()] == [4000]


def test_batches_of_a_row_group_have_one_size(tmp_path: Path) -> None:
    """A small one at the end would cost as much as a large one, and leave the others as large as they may be."""
    pq.write_table(pa.table({"click": np.arange(1000) % 2}), tmp_path / "log.parquet", row_group_size=700)
    parts = open_source(str(tmp_path / "log.parquet")).parts(["click"], 400)
    assert [[chunk.batch.num_rows for chunk in part()] for part in parts] == [[350, 350], [300]]
    assert [[chunk.row for chunk in part()] for part in parts] == [[0, 350], [700]]


def test_a_file_of_as_many_rows_is_another_file(tmp_path: Path) -> None:
    """Written again while it is read, before a row group or within one: half of the old rows and half of the new."""
    path = tmp_path / "log.parquet"

    def write(first: int) -> None:
        pq.write_table(pa.table({"click": np.arange(first, first + 40)}), path, row_group_size=20)

    write(0)
    first, second = open_source(str(path)).parts(["click"], 10)
    assert [chunk.batch["click"][0].as_py() for chunk in first()] == [0, 10]
    write(1)
    with pytest.raises(ft.BadInput, match=r"log\.parquet: the file changed while it was read\. Run again"):
        list(second())
    first, _ = open_source(str(path)).parts(["click"], 10)
    chunks = first()
    next(chunks)
    write(2)
    with pytest.raises(ft.BadInput, match=r"log\.parquet: the file changed while it was read\. Run again"):
        list(chunks)


def test_the_end_of_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lists all row groups: read for each of them, a file with thousands would take their square."""
    pq.write_table(pa.table({"click": np.arange(50)}), tmp_path / "log.parquet", row_group_size=1)
    source, given, opened = open_source(str(tmp_path / "log.parquet")), [], parquet.pq.ParquetFile

    def counted(*arguments: object, metadata: object = None, **options: object) -> pq.ParquetFile:
        given.append(metadata)
        return opened(*arguments, metadata=metadata, **options)

    monkeypatch.setattr(parquet.pq, "ParquetFile", counted)
    for part in source.parts(["click"], 10):
        list(part())
    assert len(given) == 50
    assert None not in given


# -- names that are not text ------------------------------------------------------------------------------------------


def damaged(path: Path, name: str) -> Path:
    """A log in whose footer a name has an invalid byte."""
    nested = pa.array([{"inner": 1}, {"inner": 2}])
    pq.write_table(pa.table({"click": [1.0, 0.0], "fragile": [1, 2], "nested": nested}), path, store_schema=False)
    whole = path.read_bytes()
    assert name.encode() in whole
    path.write_bytes(whole.replace(name.encode(), b"\xff" + name[1:].encode()))
    return path


@pytest.mark.parametrize("name", ["fragile", "nested", "inner"])
def test_a_name_that_is_not_utf_8_is_a_damaged_file(name: str, tmp_path: Path) -> None:
    """Also where nobody asks for the column: Arrow decodes every name to find the others."""
    path = damaged(tmp_path / "log.parquet", name)
    with pytest.raises(ft.BadInput) as error:
        open_source(str(path))
    assert str(error.value) == (
        f"{path}: a damaged Parquet file (the name of a column is not text in UTF-8). Write it again, or leave it out."
    )


def test_a_name_that_is_not_utf_8_elsewhere(tmp_path: Path) -> None:
    """In a file that is to be replaced, in saved aggregates, and in a query."""
    path = damaged(tmp_path / "log.parquet", "fragile")
    with pytest.raises(ft.BadInput, match=r"log\.parquet: the file exists already, and holds no aggregates\."):
        refuse_to_replace(path)
    with pytest.raises(ft.BadInput, match=r"damaged aggregates \(the name of a column is not text in UTF-8\)\. Make"):
        SavedFile.open(path, "Make them again.")
    with pytest.raises(ft.BadInput, match=r"the SQL query: the name of a column is not text in UTF-8\. Is a file"):
        open_source(ft.Sql(f"SELECT * FROM '{path}'")).schemas()


def test_names_that_are_not_utf_8_in_tables_and_arrow_files(tmp_path: Path) -> None:
    schema = pa.schema([pa.field(b"\xfffragile", pa.int64())])
    table = pa.table([pa.array([1])], schema=schema)
    with pytest.raises(ft.BadInput, match=r"^the table: the name of a column is not text in UTF-8\. Rename it\.$"):
        open_source(table)
    with pytest.raises(ft.BadInput, match=r"^the stream: the name of a column is not text in UTF-8"):
        open_source(table.to_reader())
    with pytest.raises(ft.BadInput, match=r"^the dataset: the name of a column is not text in UTF-8"):
        open_source(ds.dataset(table))
    for name, new in (("log.arrow", pa.ipc.new_file), ("log.arrows", pa.ipc.new_stream)):
        with new(tmp_path / name, schema) as writer:
            writer.write_table(table)
        with pytest.raises(ft.BadInput, match=r"a damaged Arrow file \(the name of a column is not text in UTF-8\)\."):
            open_source(str(tmp_path / name)).schemas()

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
    monkeypatch.setattr(parquet, "_MOST_BYTES", 1 << 20)
    [part] = open_source(str(tmp_path / "wide.parquet")).parts(["scores"], 65_536)
    batches = [chunk.batch for chunk in part()]
    assert sum(batch.num_rows for batch in batches) == 4000
    assert max(batch.num_rows for batch in batches) <= (1 << 20) // 800
    monkeypatch.undo()
    [part] = open_source(str(tmp_path / "wide.parquet")).parts(["scores"], 65_536)
    assert [chunk.batch.num_rows for chunk in part()] == [4000]


# -- names that are not text ------------------------------------------------------------------------------------------


def damaged(path: Path, name: str, places: slice = slice(None)) -> Path:
    """A log in whose footer a name has an invalid byte, in some of the places where it stands."""
    nested = pa.array([{"inner": 1}, {"inner": 2}])
    pq.write_table(pa.table({"click": [1.0, 0.0], "fragile": [1, 2], "nested": nested}), path, store_schema=False)
    before, *after = path.read_bytes().split(name.encode())
    names = [name.encode()] * len(after)
    names[places] = [b"\xff" + name[1:].encode()] * len(names[places])
    path.write_bytes(before + b"".join(own + rest for own, rest in zip(names, after, strict=True)))
    return path


@pytest.mark.parametrize("places", [slice(None), slice(1), slice(1, 2)])
@pytest.mark.parametrize("name", ["fragile", "inner"])
def test_a_name_that_is_not_utf_8_is_a_damaged_file(name: str, places: slice, tmp_path: Path) -> None:
    """Also where nobody asks for the column: Arrow decodes every name to find the others."""
    path = damaged(tmp_path / "log.parquet", name, places)
    with pytest.raises(ft.BadInput) as error:
        for part in open_source(str(path)).parts(["click"]):
            list(part())
    message = str(error.value)
    assert message.startswith(f"{path}: a damaged Parquet file (")
    assert message.endswith("). Write it again, or leave it out.")
    if places == slice(None):
        assert "the name of a column is not text in UTF-8" in message


def test_a_name_that_is_not_utf_8_elsewhere(tmp_path: Path) -> None:
    """In a file that is to be replaced, in saved aggregates, and in a query."""
    path = damaged(tmp_path / "log.parquet", "fragile")
    with pytest.raises(ft.BadInput, match=r"log\.parquet: the file exists already, and holds no aggregates\."):
        refuse_to_replace(path)
    with pytest.raises(ft.BadInput, match=r"damaged aggregates \(the name of a column is not text in UTF-8\)\. Make"):
        SavedFile.open(path, "Make them again.")
    with pytest.raises(ft.BadInput, match=r"the SQL query: the name of a column is not text in UTF-8\. Is a file damaged"):
        open_source(ft.Sql(f"SELECT * FROM '{path}'")).schemas()


def test_names_that_are_not_utf_8_in_tables_and_arrow_files(tmp_path: Path) -> None:
    schema = pa.schema([pa.field(b"\xfffragile", pa.int64())])
    table = pa.table([pa.array([1])], schema=schema)
    with pytest.raises(ft.BadInput, match=r"^the table: the name of a column is not text in UTF-8\. Rename it\.$"):
        open_source(table)
    with pytest.raises(ft.BadInput, match="^the stream: the name of a column is not text in UTF-8"):
        open_source(table.to_reader())
    with pytest.raises(ft.BadInput, match="^the dataset: the name of a column is not text in UTF-8"):
        open_source(ds.dataset(table))
    for name, new in (("log.arrow", pa.ipc.new_file), ("log.arrows", pa.ipc.new_stream)):
        with new(tmp_path / name, schema) as writer:
            writer.write_table(table)
        with pytest.raises(ft.BadInput, match=r"a damaged Arrow file \(the name of a column is not text in UTF-8\)\."):
            open_source(str(tmp_path / name)).schemas()

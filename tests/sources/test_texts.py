"""Texts that are not UTF-8."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.sources import open_source

ENDS = np.array([0, 5, 10, 12], np.int32)
LATIN = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(ENDS), pa.py_buffer("phonephonetélé".encode("latin-1"))]
)
COLUMNS: dict[str, Callable[[], pa.Array]] = {
    "text": lambda: LATIN,
    "codes": lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), LATIN),
    "lists": lambda: pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), LATIN),
}
SENTENCE = (
    "{}: column 'device', row {} (the first row is 0): the text is not UTF-8. The file is damaged, or was written in"
    " another encoding: write it again, or leave it out."
)


def refused(source: object) -> str:
    parts = open_source(source).parts(["device"], 2)
    with pytest.raises(ft.BadInput) as error:
        [list(part()) for part in parts]
    return str(error.value)


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_row_is_named(kind: str, tmp_path: Path) -> None:
    """In a file, whose third row group has it, and in a table; text in Latin-1, as old exports are."""
    array = COLUMNS[kind]()
    table = pa.table({"device": array, "click": [0.0, 1.0, 0.0]})
    whole = pa.concat_tables([table.slice(0, 2), table])
    path = tmp_path / "log.parquet"
    pq.write_table(whole, path, row_group_size=2)
    if kind == "codes":  # whose values Arrow looks at itself
        assert refused(str(path)).startswith(f"{path}: a damaged Parquet file (Invalid UTF8 payload). ")
    else:
        assert refused(str(path)) == SENTENCE.format(path, 4)
    # batches of a table share lists and dictionaries, of which the first one has a text that none of its rows has
    where = ", row 4 (the first row is 0)" if kind == "text" else ""
    for source, name in ((whole, "the table"), (whole.to_reader(), "the stream")):
        assert refused(source).startswith(f"{name}: column 'device'{where}: the text is not UTF-8. ")


def test_a_text_that_no_row_has() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), LATIN)
    assert refused(pa.table({"device": codes})).startswith("the table: column 'device': the text is not UTF-8. ")


def test_other_columns_do_not_matter(tmp_path: Path) -> None:
    pq.write_table(pa.table({"device": LATIN, "click": [0.0, 1.0, 0.0]}), tmp_path / "log.parquet")
    [part] = open_source(str(tmp_path / "log.parquet")).parts(["click"], 10)
    assert [chunk.batch.num_rows for chunk in part()] == [3]


def test_texts_of_other_languages_pass() -> None:
    [part] = open_source(pa.table({"device": ["téléphone", "电话", None, ""]})).parts(["device"], 10)
    assert [chunk.batch["device"].to_pylist() for chunk in part()] == [["téléphone", "电话", None, ""]]

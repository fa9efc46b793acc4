"""Arrow IPC files and saved streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pytest

import foretest as ft
from foretest.sources import ArrowFiles, open_source
from tests.support import SmallLog, build_test

TABLE = pa.table({"a": range(100), "name": [f"n{i}" for i in range(100)], "lists": [[i, i + 1] for i in range(100)]})


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, stream: bool = False, rows: int = 40, **options: Any) -> None:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(name, TABLE.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(TABLE, max_chunksize=rows)


def refused(name: str) -> str:
    with pytest.raises(ft.BadInput) as error:
        [list(part()) for part in open_source(name).parts(["a"])]
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_rows_and_positions(stream: bool, compression: str | None) -> None:
    """A part a batch; of a stream all is one part."""
    for name in ("1.arrow", "2.arrow"):
        write(name, stream, compression=compression)
    source = open_source(["1.arrow", "2.arrow"])
    assert isinstance(source, ArrowFiles)
    assert source.rows == 200
    parts = source.parts(["lists", "a"], 25)
    assert len(parts) == (2 if stream else 6)
    chunks = [chunk for part in parts for chunk in part()]
    assert [c.position for c in chunks] == [0, 25, 40, 65, 80, 100, 125, 140, 165, 180]
    assert [c.row for c in chunks] == [0, 25, 40, 65, 80] * 2
    for chunk in chunks:
        assert chunk.batch.schema.names == ["lists", "a"]
        want = TABLE.slice(chunk.row, chunk.batch.num_rows)
        assert chunk.batch["a"].to_pylist() == want["a"].to_pylist()
        assert chunk.batch["lists"].to_pylist() == want["lists"].to_pylist()


def test_feather() -> None:
    feather.write_feather(TABLE, "log.feather", chunksize=30)
    assert open_source("log.feather").rows == 100
    assert len(open_source("log.feather").parts(["a"])) == 4


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kept", [0.3, 0.7, 0.98])
def test_truncated(kept: float, stream: bool) -> None:
    write("log.arrow", stream)
    whole = Path("log.arrow").read_bytes()
    size = int(len(whole) * kept)
    Path("cut.arrow").write_bytes(whole[:size])
    assert refused("cut.arrow") == (
        f"cut.arrow: a truncated Arrow file, whose end is missing after {size:,} bytes. Write it again, or leave it"
        " out."
    )


def test_a_stream_cut_between_two_batches() -> None:
    """It reads well, with fewer rows: its end mark is missing."""
    write("log.arrows", stream=True)
    whole = Path("log.arrows").read_bytes()
    ends = []
    with pa.OSFile("log.arrows") as file:
        for _ in pa.ipc.open_stream(file):
            ends.append(file.tell())
    Path("cut.arrows").write_bytes(whole[: ends[1]])
    assert sum(batch.num_rows for batch in pa.ipc.open_stream("cut.arrows")) == 80
    assert refused("cut.arrows").startswith("cut.arrows: a truncated Arrow file, whose end is missing")


def test_damaged() -> None:
    write("log.arrow", compression="zstd")
    whole = bytearray(Path("log.arrow").read_bytes())
    Path("bad.arrow").write_bytes(whole[:400] + bytes(len(whole) - 800) + whole[-400:])
    assert refused("bad.arrow").startswith("bad.arrow: a damaged Arrow file (")


def test_not_an_arrow_file() -> None:
    Path("log.arrow").write_text("click,user\n1,2\n", encoding="utf-8")
    assert refused("log.arrow") == "log.arrow: not an Arrow file. Convert it, or leave it out."
    Path("log.arrow").write_bytes(b"")
    assert refused("log.arrow") == (
        "log.arrow: the file is empty (0 bytes), not an Arrow file. Write it again, or leave it out."
    )
    Path("log.feather").write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    assert refused("log.feather") == "log.feather: a Feather file of version 1. Write it as version 2, or as Parquet."


def test_a_file_that_changes_meanwhile() -> None:
    write("log.arrow")
    source = open_source("log.arrow")
    parts = source.parts(["a"])
    write("log.arrow", rows=30)
    with pytest.raises(ft.BadInput, match=r"^log.arrow: the file changed while it was read\."):
        list(parts[0]())
    Path("log.arrow").unlink()
    with pytest.raises(ft.BadInput, match=r"^log.arrow: no such file or folder\.$"):
        list(parts[1]())


WIDTHS = {"ranking": 2, "control_scores": 5, "treatment_scores": 5}
LIST_FORMS: dict[str, Callable[[pa.DataType, int], pa.DataType]] = {
    "large lists": lambda kind, _: pa.large_list(kind),
    "list views": lambda kind, _: pa.list_view(kind),
    "large list views": lambda kind, _: pa.large_list_view(kind),
    "lists of fixed size": lambda kind, width: pa.list_(kind, width),
}
TEXT_FORMS: dict[str, Callable[[list[str]], pa.Array]] = {
    "dictionaries": lambda texts: pa.array(texts).dictionary_encode(),
    "views of text": lambda texts: pa.array(texts, pa.string_view()),
    "large text": lambda texts: pa.array(texts, pa.large_string()),
}


def with_column(log: pa.Table, name: str, array: pa.Array) -> pa.Table:
    return log.set_column(log.column_names.index(name), name, array)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", [*LIST_FORMS, *TEXT_FORMS])
def test_forms_of_columns(form: str, stream: bool) -> None:
    """What Arrow can write to a file, Foretest reads."""
    small = SmallLog(rows=150)
    users = [f"u{unit}" for unit in small.unit]
    plain = log = with_column(small.table(), "user", pa.array(users))
    if form in TEXT_FORMS:
        log = with_column(log, "user", TEXT_FORMS[form](users))
    else:
        for name, width in WIDTHS.items():
            kind = LIST_FORMS[form](log[name].type.value_type, width)
            log = with_column(log, name, pa.array(log[name].to_pylist(), kind))
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)("log.arrow", log.schema) as writer:
        writer.write_table(log, max_chunksize=60)
    test = build_test(["ncis", "point-ncis"], n_resamples=50)
    got, want = (test.run(source).metrics["click"].estimates["point-ncis"] for source in ("log.arrow", plain))
    assert got.effect_size_ci_lower == pytest.approx(want.effect_size_ci_lower, rel=1e-9)
    assert got.treatment == pytest.approx(want.treatment, rel=1e-9)

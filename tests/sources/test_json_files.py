"""JSON lines: exact types over all files, and faults by line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import foretest as ft
from foretest.sources import JsonFiles, open_source
from tests.sources.test_csv_files import read, refused, type_of


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(*rows: Any, name: str = "log.jsonl") -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


TYPES: dict[str, tuple[list[Any], pa.DataType]] = {
    "integers": ([1, 0, -5], pa.int64()),
    "numbers": ([1, 0.1, -0.002], pa.float64()),
    "a number after many integers": ([*([1] * 30_000), 0.5], pa.float64()),
    "unsigned integers": ([2**64 - 1, 3], pa.uint64()),
    "bool": ([True, False], pa.bool_()),
    "text": (["x", "007", ""], pa.string()),
    "digits in quotes": (["1", "2"], pa.string()),
    "ids": (["550E8400-e29b-41d4-a716-446655440000", "550E8400-e29b-41d4-a716-446655440001"], pa.string()),
    "times of day": (["12:00:00", "13:00:00"], pa.string()),
    "integer lists": ([[1, 2], [], [-3]], pa.list_(pa.int64())),
    "number lists": ([[1, 2], [0.1, 2e5]], pa.list_(pa.float64())),
    "a number list after many integer lists": ([*([[1]] * 30_000), [0.5]], pa.list_(pa.float64())),
    "text lists": ([["a, b", 'c"d', "é"], ["1"]], pa.list_(pa.string())),
    "ids in lists": ([["550E8400-e29b-41d4-a716-446655440000"]], pa.list_(pa.string())),
    "dates in lists": ([["2024-03-01"], ["2024-03-02"]], pa.list_(pa.string())),
}


@pytest.mark.parametrize("kind", TYPES)
def test_types(kind: str) -> None:
    values, expected = TYPES[kind]
    write(*({"a": value} for value in values))
    assert type_of("log.jsonl") == expected
    assert read("log.jsonl", "a")["a"] == values


def test_dates_and_times() -> None:
    write({"a": "2024-03-01", "b": "2024-03-01T10:00:00Z"}, {"a": "2024-12-31", "b": "2024-03-01T10:00:00.5Z"})
    assert type_of("log.jsonl") == pa.date32()
    assert type_of("log.jsonl", "b") == pa.timestamp("us")
    assert [str(at) for at in read("log.jsonl", "b")["b"]] == ["2024-03-01 10:00:00", "2024-03-01 10:00:00.500000"]


def test_mixed_values_are_text() -> None:
    write({"a": 1, "b": [1]}, {"a": "x", "b": ["x"]}, {"a": None, "b": [2.5]})
    assert read("log.jsonl") == {"a": ["1", "x", None], "b": [["1"], ["x"], ["2.5"]]}


def test_keys_that_are_missing_are_null() -> None:
    write({"a": 1}, {"b": 2}, {"a": 3, "b": 4})
    assert read("log.jsonl") == {"a": [1, None, 3], "b": [None, 2, 4]}


def test_a_key_that_comes_late() -> None:
    write(*({"a": 1} for _ in range(30_000)), {"a": 1, "b": 2})
    assert read("log.jsonl")["b"][-1] == 2


def test_every_digit_of_a_double() -> None:
    values = [0.1 + 0.2, 1 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -123456789.123456789]
    write(*({"a": v, "b": [v]} for v in values))
    got = read("log.jsonl")
    assert got["a"] == values
    assert got["b"] == [[v] for v in values]


def test_nan_is_a_number() -> None:
    """Not of JSON, but Python writes it."""
    write({"a": float("nan"), "b": [1, float("inf")]})
    got = read("log.jsonl")
    assert got["a"][0] != got["a"][0]
    assert got["b"] == [[1.0, float("inf")]]


def test_rows_and_positions() -> None:
    write({"a": 1}, {"a": 2}, {"a": 3}, name="1.jsonl")
    Path("2.jsonl").write_text('{"a": 4}\n\n{"a": 5.5}\n', encoding="utf-8")
    source = open_source(["1.jsonl", "2.jsonl"])
    assert isinstance(source, JsonFiles)
    assert source.rows == 5
    chunks = [chunk for part in source.parts(["a"], 2) for chunk in part()]
    assert [(c.source, c.row, c.position, c.batch["a"].to_pylist()) for c in chunks] == [
        ("1.jsonl", 0, 0, [1.0, 2.0]), ("1.jsonl", 2, 2, [3.0]), ("2.jsonl", 0, 3, [4.0, 5.5]),
    ]  # fmt: skip


def test_compressed() -> None:
    Path("log.jsonl.gz").write_bytes(gzip.compress(b'{"a": [1, 2]}\n{"a": [3]}\n'))
    assert read("log.jsonl.gz") == {"a": [[1, 2], [3]]}


@pytest.mark.parametrize("name", ["log[1].jsonl", "it's.jsonl", "a*b.json", "day=3.ndjson"])
def test_a_name_is_a_name(name: str) -> None:
    write({"a": 1}, name=name)
    write({"a": 9}, name="log1.jsonl")
    assert read(Path(name)) == {"a": [1]}


def test_names_of_columns() -> None:
    write({'x "y" z': 1, "it's": 2})
    assert read("log.jsonl") == {'x "y" z': [1], "it's": [2]}


NO_OBJECTS = {
    "cut off": '{"a": 1, "b',
    "an array": "[1, 2]",
    "a number": "3",
    "text": "hello",
}


@pytest.mark.parametrize("kind", NO_OBJECTS)
def test_lines_that_are_no_objects(kind: str) -> None:
    lines = ['{"a": 1}'] * 50
    lines[30] = NO_OBJECTS[kind]
    Path("good.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    Path("log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = refused(["good.jsonl", "log.jsonl"])
    assert said.startswith("log.jsonl: line 31 is no JSON object")
    assert said.endswith(". Expected JSON lines: one object per row.")


def test_an_array_of_objects() -> None:
    Path("log.json").write_text(json.dumps([{"a": 1}, {"a": 2}], indent=1), encoding="utf-8")
    assert refused("log.json").startswith("log.json: line 1 is no JSON object (Expecting value)")
    Path("log.jsonl").write_text("[1, 2]\n[3, 4]\n", encoding="utf-8")
    assert refused("log.jsonl") == "log.jsonl: line 1 is no JSON object. Expected JSON lines: one object per row."


def test_truncated() -> None:
    whole = '{"a": 1, "b": "x"}\n' * 50
    Path("log.jsonl").write_text(whole[:-9], encoding="utf-8")
    assert refused("log.jsonl").startswith("log.jsonl: line 50 is no JSON object (")
    packed = gzip.compress(whole.encode() * 100)
    Path("log.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    assert refused("log.jsonl.gz").startswith("log.jsonl.gz: cannot be read as JSON lines (")
    Path("log.jsonl").write_text("", encoding="utf-8")
    assert refused("log.jsonl").startswith("log.jsonl: the file is empty (0 bytes), not JSON lines.")


def test_not_utf_8() -> None:
    Path("log.jsonl").write_bytes(b'{"a": "x"}\n{"a": "caf\xe9"}\n')
    assert refused("log.jsonl").startswith("log.jsonl: line 2: not text in UTF-8.")


def test_why_a_column_is_text() -> None:
    write({"a": 1, "b": [1.5]}, {"a": 2, "b": [2]}, {"a": "3", "b": ["x"]}, {"a": 4, "b": [0.5]})
    source = open_source("log.jsonl")
    assert isinstance(source, JsonFiles)
    assert source.remark("log.jsonl", "a") == (
        " (most rows hold integers, but row 2 of log.jsonl, the first row being 0, holds '\"3\"')"
    )
    assert source.remark("log.jsonl", "b") == (
        " (most rows hold lists of numbers, but row 2 of log.jsonl, the first row being 0, holds '[\"x\"]')"
    )


def test_a_file_that_goes_away() -> None:
    source = open_source(write({"a": 1}))
    parts = source.parts(["a"])
    Path("log.jsonl").unlink()
    with pytest.raises(ft.BadInput, match=r"^log.jsonl: no such file or folder\.$"):
        list(parts[0]())

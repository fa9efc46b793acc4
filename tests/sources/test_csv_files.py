"""CSV: exact types, lists as JSON text, and faults by file, column and row."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import foretest as ft
from foretest.sources import CsvFiles, open_source


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "log.csv", encoding: str = "utf-8") -> str:
    Path(name).write_bytes(text.encode(encoding))
    return name


def column(*values: str, name: str = "log.csv") -> str:
    """A file with one column of these values, and a second to tell rows from blank lines."""
    return write("\n".join(["a,b", *(f"{value},x" for value in values)]) + "\n", name)


def read(log: Any, *columns: str, batch_rows: int = 1 << 16) -> dict[str, list[Any]]:
    source = open_source(log)
    names = columns or source.schemas()[0][1].names
    found: dict[str, list[Any]] = {name: [] for name in names}
    for part in source.parts(names, batch_rows):
        for chunk in part():
            for name in names:
                found[name] += chunk.batch[name].to_pylist()
    return found


def type_of(log: Any, name: str = "a") -> pa.DataType:
    return open_source(log).schemas()[0][1].field(name).type


def refused(log: Any, *columns: str) -> str:
    with pytest.raises(ft.BadInput) as error:
        read(log, *columns)
    assert "\n" not in str(error.value)
    return str(error.value)


TYPES: dict[str, tuple[list[str], pa.DataType, list[Any]]] = {
    "integers": (["1", "0", "-5"], pa.int64(), [1, 0, -5]),
    "integers and empty": (["1", "", "2"], pa.int64(), [1, None, 2]),
    "large integers": (["9223372036854775807", "-9223372036854775808"], pa.int64(), [2**63 - 1, -(2**63)]),
    "unsigned integers": (["18446744073709551615", "3"], pa.uint64(), [2**64 - 1, 3]),
    "integers too large for any type": (["18446744073709551616", "3"], pa.string(), ["18446744073709551616", "3"]),
    "numbers": (["1", "0.1", "-2e-3"], pa.float64(), [1.0, 0.1, -0.002]),
    "a number after many integers": ([*(["1"] * 30_000), "0.5"], pa.float64(), [*([1.0] * 30_000), 0.5]),
    "infinite": (["1", "-inf"], pa.float64(), [1.0, float("-inf")]),
    "leading zeros are text": (["007", "7"], pa.string(), ["007", "7"]),
    "a word after many integers": ([*(["1"] * 30_000), "x"], pa.string(), [*(["1"] * 30_000), "x"]),
    "bool": (["true", "False", "TRUE"], pa.bool_(), [True, False, True]),
    "bool and integers": (["true", "1"], pa.string(), ["true", "1"]),
    "text": (["x", "1", "2024-03-01"], pa.string(), ["x", "1", "2024-03-01"]),
    "no such day": (["2024-03-01", "2024-02-30"], pa.string(), ["2024-03-01", "2024-02-30"]),
    "nothing": (["", ""], pa.string(), [None, None]),
    "integer lists": (['"[1, 2]"', "[]", '"[ -3,null ]"'], pa.list_(pa.int64()), [[1, 2], [], [-3, None]]),
    "unsigned lists": (['"[1, 18446744073709551615]"', "[3]"], pa.list_(pa.uint64()), [[1, 2**64 - 1], [3]]),
    "number lists": (['"[1, 2]"', '"[0.1, 2e5]"', ""], pa.list_(pa.float64()), [[1.0, 2.0], [0.1, 2e5], None]),
    "infinite in lists": (['"[1, -Infinity]"'], pa.list_(pa.float64()), [[1.0, float("-inf")]]),
    "text lists": (
        ['"[""a, b"", ""c\\""d"", ""\\u00e9""]"', '"[""1""]"'], pa.list_(pa.string()), [["a, b", 'c"d', "é"], ["1"]],
    ),
    "text that begins like a list": (["[sic]", "x", "y"], pa.string(), ["[sic]", "x", "y"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_types(kind: str) -> None:
    values, expected, content = TYPES[kind]
    column(*values)
    assert type_of("log.csv") == expected
    assert read("log.csv", "a")["a"] == content


def test_dates_and_times() -> None:
    column("2024-03-01", "2024-12-31")
    assert type_of("log.csv") == pa.date32()
    assert [str(day) for day in read("log.csv", "a")["a"]] == ["2024-03-01", "2024-12-31"]
    column("2024-03-01", "2024-03-01 10:00:00", "2024-03-01T10:00:00.5Z")
    assert type_of("log.csv") == pa.timestamp("us")
    assert [str(at) for at in read("log.csv", "a")["a"]] == [
        "2024-03-01 00:00:00", "2024-03-01 10:00:00", "2024-03-01 10:00:00.500000",
    ]  # fmt: skip


def test_nan_is_a_number() -> None:
    column("1", "NaN")
    [one, other] = read("log.csv", "a")["a"]
    assert one == 1.0
    assert other != other


def test_every_digit_of_a_double() -> None:
    """Text carries a double exactly, in a column and in a list."""
    values = [0.1 + 0.2, 1 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -123456789.123456789]
    write("a,b\n" + "".join(f'{v!r},"[{v!r}]"\n' for v in values))
    got = read("log.csv")
    assert got["a"] == values
    assert got["b"] == [[v] for v in values]


def test_a_column_is_of_one_type_in_all_files() -> None:
    column("1", "2", name="1.csv")
    column("x", "3", name="2.csv")
    source = open_source(["1.csv", "2.csv"])
    assert isinstance(source, CsvFiles)
    assert [schema.field("a").type for _, schema in source.schemas()] == [pa.string()] * 2
    assert read(["1.csv", "2.csv"], "a")["a"] == ["1", "2", "x", "3"]


def test_rows_and_positions() -> None:
    """Blank lines are no rows; columns may stand in another order in another file."""
    write("a,b\n1,x\n\n2,y\n3,z\n", "1.csv")
    write("b,a\nu,4\nv,5\n", "2.csv")
    source = open_source(["1.csv", "2.csv"])
    assert source.rows == 5
    chunks = [chunk for part in source.parts(["a", "b"], 2) for chunk in part()]
    assert [(c.source, c.row, c.position, c.batch["a"].to_pylist()) for c in chunks] == [
        ("1.csv", 0, 0, [1, 2]), ("1.csv", 2, 2, [3]), ("2.csv", 0, 3, [4, 5]),
    ]  # fmt: skip
    assert source.repeatable


WRITTEN = {
    "commas": "a,b\n1,x\n2,y\n",
    "semicolons": "a;b\n1;x\n2;y\n",
    "bars": "a|b\n1|x\n2|y\n",
    "Windows": "a,b\r\n1,x\r\n2,y\r\n",
    "a mark at the beginning": "\ufeffa,b\n1,x\n2,y\n",
    "quotes": '"a","b"\n"1","x"\n"2","y"\n',
    "no newline at the end": "a,b\n1,x\n2,y",
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_ways_to_write_it(kind: str) -> None:
    write(WRITTEN[kind])
    assert read("log.csv") == {"a": [1, 2], "b": ["x", "y"]}


def test_tabs() -> None:
    write("a,1\tb\n1\tx,y\n", "log.tsv")
    assert read("log.tsv") == {"a,1": [1], "b": ["x,y"]}


def test_lists_between_semicolons() -> None:
    write("a;b\n[1,2];x\n[3];y\n")
    assert read("log.csv") == {"a": [[1, 2], [3]], "b": ["x", "y"]}


def test_compressed() -> None:
    Path("log.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
    assert read("log.csv.gz") == {"a": [1, 2], "b": ["x", "y"]}


def test_only_a_header() -> None:
    write("a,b\n")
    assert open_source("log.csv").rows == 0
    assert read("log.csv") == {"a": [], "b": []}


@pytest.mark.parametrize("name", ["log[1].csv", "what?.csv", "it's.csv", "a*b.csv", "day=3.csv"])
def test_a_name_is_a_name(name: str) -> None:
    write("a,b\n1,x\n", name)
    write("a,b\n9,9\n", "log1.csv")
    write("a,b\n9,9\n", "axb.csv")
    assert read(Path(name)) == {"a": [1], "b": ["x"]}


def test_names_of_columns() -> None:
    """A name that is there twice is told where it is needed, and names that differ by case are two."""
    write('a,A,a,"x ""y"" z",\n1,2,3,4,5\n')
    assert open_source("log.csv").schemas()[0][1].names == ["a", "A", "a", 'x "y" z', ""]
    assert read("log.csv", "A", 'x "y" z', "") == {"A": [2], 'x "y" z': [4], "": [5]}
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["a"]), control=ft.Logged(prob="A"), treatment=ft.Logged(prob="A"), estimators=["cis"]
    )
    with pytest.raises(ft.BadInput, match=r"^log.csv: column 'a' is there 2 times\. Rename all but one\.$"):
        test.run("log.csv")


def test_folders_give_columns_too() -> None:
    for day in ("2024-03-01", "2024-03-02"):
        Path(f"logs/day={day}").mkdir(parents=True)
        write("a,b\n1,x\n", f"logs/day={day}/log.csv")
    assert type_of("logs", "day") == pa.date32()
    assert [str(day) for day in read("logs", "day")["day"]] == ["2024-03-01", "2024-03-02"]


# -- faults -----------------------------------------------------------------------------------------------------------

ROWS = [f'{i},u{i},"[1.5, 2]"' for i in range(50)]
FAULTS = {
    "too few fields": ("1,u", "2 fields, where the header has 3 names"),
    "too many fields": ("1,u,x,y", "4 fields, where the header has 3 names"),
    "an open quote": ('1,u,"[1.5', "a quote that is not closed"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_lines_that_are_not_csv(kind: str) -> None:
    line, what = FAULTS[kind]
    write("\n".join(["a,b,c", *ROWS[:30], line, *ROWS[30:]]) + "\n")
    assert refused("log.csv") == f"log.csv: line 32 (the header is line 1): {what}. Fix it, or leave the file out."


def test_cut_within_a_row() -> None:
    write("\n".join(["a,b,c", *ROWS])[:-6])
    assert refused("log.csv").startswith("log.csv: line 51 (the header is line 1): a quote that is not closed.")


def test_not_utf_8() -> None:
    write("a,b\n1,caf\xe9\n", encoding="latin-1")
    assert refused("log.csv").startswith("log.csv: line 2 (the header is line 1): not text in UTF-8.")
    write("caf\xe9,b\n1,2\n", encoding="latin-1")
    assert refused("log.csv") == "log.csv: not text in UTF-8, as a CSV file must be. Convert it, or leave it out."


def test_empty() -> None:
    write("")
    assert refused("log.csv") == (
        "log.csv: the file is empty (0 bytes), not a CSV file. Write it again, or leave it out."
    )  # fmt: skip


def test_compressed_and_truncated() -> None:
    whole = gzip.compress("\n".join(["a,b,c", *ROWS * 100]).encode())
    Path("log.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert refused("log.csv.gz").startswith("log.csv.gz: cannot be read as CSV (")
    Path("log.csv.gz").write_bytes(b"a,b\n1,2\n")
    assert refused("log.csv.gz").startswith("log.csv.gz: cannot be read as CSV (")


NO_LISTS = {
    "cut off": ('"[1.5, 2"', "'[1.5, 2' is not a list of numbers as JSON"),
    "a word": ("x", "'x' is not a list of numbers as JSON"),
    "two values without a comma": ("[1.5 2]", "'[1.5 2]' is not a list of numbers as JSON"),
    "a list of lists": ('"[[1.5], 2]"', "'[[1.5], 2]' is not a list of numbers as JSON"),
    "an object": ('"[1, {}]"', "'[1, {}]' is not a list of numbers as JSON"),
}


@pytest.mark.parametrize("kind", NO_LISTS)
def test_values_that_are_no_lists(kind: str) -> None:
    value, what = NO_LISTS[kind]
    rows = list(ROWS)
    rows[31] = f"31,u31,{value}"
    rows[40] = f"40,u40,{value}"
    write("\n".join(["a,b,c", *rows]) + "\n")
    assert refused("log.csv", "a", "c") == (
        f"log.csv: column 'c', row 31 (the first row is 0): {what}; 2 rows have this fault. Lists in CSV are JSON text,"
        " as in [1, 2, 3]: write them with json.dumps, or write Parquet."
    )
    assert read("log.csv", "a", "b")["a"] == list(range(50))  # who does not need it, does not meet it


def test_lists_as_pandas_writes_them() -> None:
    """A cell that is a list or an array is written as Python prints it, which is not JSON."""
    frame = pd.DataFrame({"items": [["a", "b"], ["c", "it's"]], "scores": [np.array([0.5, 1.0]), np.array([2.0, 3.0])]})
    frame["shown"] = [np.array([1, 0]), np.array([0, 1])]
    frame.to_csv("log.csv", index=False)
    [(_, schema)] = open_source("log.csv").schemas()
    assert [str(kind) for kind in schema.types] == ["list<item: string>", "list<item: double>", "list<item: int64>"]
    remedy = "Lists in CSV are JSON text, as in [1, 2, 3]: write them with json.dumps, or write Parquet."
    for name, what in (
        ("items", "\"['a', 'b']\" is not a list of texts as JSON"),
        ("scores", "'[0.5 1. ]' is not a list of numbers as JSON"),
        ("shown", "'[1 0]' is not a list of integers as JSON"),
    ):
        where = f"log.csv: column '{name}', row 0 (the first row is 0)"
        assert refused("log.csv", name) == f"{where}: {what}; 2 rows have this fault. {remedy}"
    for name in frame.columns:  # as the message says
        frame[name] = [json.dumps(np.asarray(cell).tolist()) for cell in frame[name]]
    frame.to_csv("log.csv", index=False)
    assert read("log.csv", "items", "scores", "shown") == {
        "items": [["a", "b"], ["c", "it's"]], "scores": [[0.5, 1.0], [2.0, 3.0]], "shown": [[1, 0], [0, 1]],
    }  # fmt: skip


def test_why_a_column_is_text() -> None:
    """Of several files the one at fault is named."""
    column("1", "2.5", name="1.csv")
    column("3", "none of them", name="2.csv")
    source = open_source(["1.csv", "2.csv"])
    assert isinstance(source, CsvFiles)
    said = source.remark("1.csv", "a")
    assert said == " (most rows hold integers, but row 1 of 1.csv, the first row being 0, holds '2.5')"
    column("1", "2", "7", name="1.csv")
    assert CsvFiles([Path("1.csv"), Path("2.csv")]).remark("1.csv", "a") == (
        " (most rows hold integers, but row 1 of 2.csv, the first row being 0, holds 'none of them')"
    )
    assert CsvFiles([Path("1.csv")]).remark("1.csv", "a") == ""


def test_a_file_that_changes_meanwhile() -> None:
    source = open_source(column("1", "2", "3"))
    parts = source.parts(["a"])
    column("1", "2")
    with pytest.raises(ft.BadInput, match=r"^log.csv: the file changed while it was read\."):
        list(parts[0]())
    Path("log.csv").unlink()
    with pytest.raises(ft.BadInput, match=r"^log.csv: no such file or folder\.$"):
        list(parts[0]())

"""Files of a log from paths, globs and folders, and the columns that folders' names give."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.sources import ParquetFiles, open_source
from foretest.sources.file_kinds import ARROW, CSV, EXPECTED, JSON, PARQUET, kind_of
from foretest.sources.paths import find_files, partitions


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def touch(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()


def refused(*items: Any) -> str:
    with pytest.raises(ft.BadInput) as error:
        find_files(items)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.parquet", PARQUET), ("a.PARQUET", PARQUET), ("a.pq", PARQUET), ("a.arrow", ARROW), ("a.feather", ARROW),
        ("a.ipc", ARROW), ("a.arrows", ARROW), ("a.csv", CSV), ("a.tsv", CSV), ("a.b.csv.gz", CSV), ("a.jsonl", JSON),
        ("a.ndjson", JSON), ("a.jsonl.gz", JSON), ("a.json", JSON), ("a.txt", None), ("a", None), ("a.gz", None),
    ],
)  # fmt: skip
def test_kinds_by_name(name: str, kind: str | None) -> None:
    touch(name)
    assert kind_of(Path(name)) == kind


def test_kinds_by_the_first_bytes() -> None:
    pq.write_table(pa.table({"a": [1]}), "log")
    with pa.ipc.new_file("feathers", pa.schema([("a", pa.int8())])):
        pass
    assert (kind_of(Path("log")), kind_of(Path("feathers"))) == (PARQUET, ARROW)
    assert open_source("log").rows == 1


def test_a_folder_holds_one_kind() -> None:
    """Notes and results lie beside a log; two kinds of logs are a mistake."""
    touch("logs/1.csv", "logs/deep/2.csv.gz", "logs/notes.txt", "logs/result.json", "logs/_SUCCESS", "logs/.3.csv")
    assert find_files(["logs"]) == (CSV, [Path("logs/1.csv"), Path("logs/deep/2.csv.gz")])
    touch("logs/deep/a.jsonl")
    assert refused("logs") == (
        "logs/1.csv is CSV and logs/deep/a.jsonl is JSON lines: a log is of one kind. Leave one of them out,"
        " or name the files by a pattern such as '*.csv'."
    )
    assert find_files(["logs/**/*.csv*"])[0] == CSV
    assert refused("logs/1.csv", "logs/deep/a.jsonl").startswith("logs/1.csv is CSV and logs/deep/a.jsonl is JSON")


def test_json_is_a_log_where_it_is_named() -> None:
    touch("logs/a.json", "logs/b.parquet")
    assert find_files(["logs"]) == (PARQUET, [Path("logs/b.parquet")])
    assert find_files(["logs/a.json"]) == (JSON, [Path("logs/a.json")])


def test_unfinished_folders_are_left_out() -> None:
    touch("logs/_temporary/0/a.parquet", "logs/.hidden/a.parquet", "logs/_day=1/a.parquet", "logs/b.parquet")
    assert find_files(["logs"])[1] == [Path("logs/_day=1/a.parquet"), Path("logs/b.parquet")]


def test_a_folder_named_like_a_file() -> None:
    """So Spark names its output; an empty one is a log that is missing."""
    touch("logs/a.parquet/part-0.parquet")
    assert find_files(["logs"])[1] == [Path("logs/a.parquet/part-0.parquet")]
    Path("logs/b.parquet").mkdir()
    assert refused("logs") == "logs/b.parquet: a folder with the name of a file, and no log in it. Leave it out."
    assert refused("logs/b.parquet") == (
        f"logs/b.parquet: the folder holds no log, nor do its subfolders. Expected {EXPECTED}."
    )


def test_links_are_followed() -> None:
    touch("elsewhere/2.parquet", "logs/1.parquet")
    Path("logs/more").symlink_to("../elsewhere")
    Path("logs/again").symlink_to(".")  # a loop
    assert find_files(["logs"])[1] == [Path("logs/1.parquet"), Path("logs/more/2.parquet")]
    Path("logs/same").symlink_to("../elsewhere")
    assert refused("logs") == (
        "logs/same/2.parquet: this file is named twice, so its rows would count twice. Leave one out."
    )


def test_a_link_that_leads_nowhere_is_told() -> None:
    """It is not left out in silence: its rows would be missing."""
    touch("logs/1.csv")
    Path("logs/1.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    Path("logs/2.csv").symlink_to("gone.csv")
    assert find_files(["logs"])[1] == [Path("logs/1.csv"), Path("logs/2.csv")]
    with pytest.raises(ft.BadInput, match=r"^logs/2.csv: a link to gone.csv, which is not there\.$"):
        open_source("logs").schemas()
    Path("nothing").symlink_to("gone.csv")
    assert refused("nothing") == "nothing: a link to gone.csv, which is not there."


def test_what_is_no_file() -> None:
    os.mkfifo("pipe.csv")
    with pytest.raises(ft.BadInput, match=r"^pipe.csv: neither a file nor a folder\.$"):
        open_source("pipe.csv").schemas()


def test_a_folder_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read any folder, so the system's refusal is put in its place."""
    touch("logs/a/1.csv", "logs/b/2.csv")
    real = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("b"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert refused("logs") == "logs/b: the folder cannot be read (Permission denied)."


# -- partitions -------------------------------------------------------------------------------------------------------


def keys(*paths: str) -> list[dict[str, Any]]:
    return [{key: value.as_py() for key, value in found.items()} for found in partitions([Path(p) for p in paths])]


def test_keys_of_folders() -> None:
    assert keys("logs/a.parquet", "a=1.parquet") == [{}, {}]
    assert keys("logs/day=2024-03-01/country=fr/x.parquet") == [{"day": datetime.date(2024, 3, 1), "country": "fr"}]
    assert keys("n=1/a", "n=-20/b") == [{"n": 1}, {"n": -20}]
    assert keys("q=a%20b%3Dc/x") == [{"q": "a b=c"}]
    assert keys("n=__HIVE_DEFAULT_PARTITION__/x", "n=3/x") == [{"n": None}, {"n": 3}]
    assert keys("=3/x", "empty=/x") == [{}, {"empty": ""}]


def test_a_key_is_of_one_type_in_all_files() -> None:
    assert keys("n=1/a", "n=x/b") == [{"n": "1"}, {"n": "x"}]
    assert keys("n=1/a", "n=01/b") == [{"n": "1"}, {"n": "01"}]  # else they would be one
    assert keys("d=2024-03-01/a", "d=2024-02-30/b") == [{"d": "2024-03-01"}, {"d": "2024-02-30"}]
    kinds = [found["n"].type for found in partitions([Path("n=1/a"), Path("n=x/b")])]
    assert kinds == [pa.string(), pa.string()]


def test_partitions_are_columns(tmp_path: Path) -> None:
    for day in (1, 2):
        Path(f"logs/day={day}/hour=0{day}").mkdir(parents=True)
        pq.write_table(pa.table({"a": [10 * day, 10 * day + 1]}), f"logs/day={day}/hour=0{day}/x.parquet")
    source = open_source("logs")
    assert [schema.names for _, schema in source.schemas()] == [["a", "day", "hour"]] * 2
    got = [chunk.batch.to_pydict() for part in source.parts(["hour", "a", "day"]) for chunk in part()]
    assert got == [
        {"hour": ["01", "01"], "a": [10, 11], "day": [1, 1]},
        {"hour": ["02", "02"], "a": [20, 21], "day": [2, 2]},
    ]
    assert [list(batch) for batch in got] == [["hour", "a", "day"]] * 2
    [only] = [chunk.batch.to_pydict() for chunk in source.parts(["day"])[1]()]
    assert only == {"day": [2, 2]}


def test_what_a_file_says_counts_more_than_its_folder() -> None:
    Path("day=7").mkdir()
    pq.write_table(pa.table({"day": [1, 2]}), "day=7/x.parquet")
    source = ParquetFiles([Path("day=7/x.parquet")])
    assert source.schemas()[0][1].names == ["day"]
    [chunk] = source.parts(["day"])[0]()
    assert chunk.batch.to_pydict() == {"day": [1, 2]}


def test_a_file_outside_the_partitions_is_told() -> None:
    Path("logs/day=1").mkdir(parents=True)
    table = pa.table({"click": [1.0, 0.0], "p": [0.5, 0.5], "t": [0.5, 0.5]})
    pq.write_table(table, "logs/day=1/x.parquet")
    pq.write_table(table, "logs/y.parquet")
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="day"), control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t")
    )
    with pytest.raises(ft.BadInput, match=r"^logs/y.parquet: no column 'day'\. Expected an integer or string column"):
        test.run("logs")


# -- tables of lakes --------------------------------------------------------------------------------------------------

DELTA = ("table/_delta_log/00000000000000000000.json", "table/day=1/a.parquet", "table/b.parquet")
ICEBERG = ("table/metadata/00000-x.metadata.json", "table/metadata/snap-1.avro", "table/data/day=1/a.parquet")


@pytest.mark.parametrize(("kind", "files"), [("Delta Lake", DELTA), ("Iceberg", ICEBERG)])
@pytest.mark.parametrize(
    "log", ["table", "t*", "table/**/*.parquet", "{file}", "{folder}", "link.parquet", ".", "../{desk}/table"]
)
def test_a_table_of_a_lake_is_no_folder_of_files(kind: str, files: tuple[str, ...], log: str, tmp_path: Path) -> None:
    """Files of deleted and replaced rows are still in its folder: the sum over all files is wrong."""
    touch(*files)
    file = next(name for name in files if name.endswith("a.parquet"))
    Path("link.parquet").symlink_to(file)
    message = refused(log.format(file=file, folder=Path(file).parent, desk=tmp_path.name))
    assert f"table: a table of {kind}, not a plain folder" in message
    assert "Give the folder of the table, " in message
    assert "\n" not in message


def test_a_table_of_a_lake_without_a_file_that_we_know() -> None:
    touch("table/_delta_log/0.json", "other/metadata/v1.metadata.json", "other/data/a.orc")
    assert refused("table").startswith("table: a table of Delta Lake")
    assert refused("other").startswith("other: a table of Iceberg")


def test_folders_that_are_no_tables_of_a_lake() -> None:
    """Folders called data and metadata, without the metadata of Iceberg, are anybody's."""
    touch("shop/data/a.parquet", "shop/metadata/notes.json", "more/_delta_log", "more/a.parquet")
    assert find_files(["shop"])[1] == [Path("shop/data/a.parquet")]
    assert find_files(["more"])[1] == [Path("more/a.parquet")]
    # Iceberg's own files are in data/
    touch("alone/metadata/v1.metadata.json", "alone/a.parquet")
    assert find_files(["alone"])[1] == [Path("alone/a.parquet")]
    touch("project/metadata/v1.metadata.json", "project/data/b.parquet", "project/logs/a.parquet")
    assert find_files(["project/logs"])[1] == [Path("project/logs/a.parquet")]
    assert refused("project/logs/a.parquet", "project/data/b.parquet").startswith("project: a table of Iceberg")

"""Tables of Delta Lake and Iceberg, here and in a store: the rows that count at a version, and no others."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.sources import LakeLog, open_source
from foretest.sources.iceberg import IcebergLog
from foretest.stores.remote import RemotePath
from tests.commands import exit_code_of
from tests.long_log import LONG, SHORT, assert_same, long_log, short_log, test_of
from tests.stores.server import BUCKET, DENIED, KEY, SECRET, SILENT, Store, failing_server
from tests.stores.test_commands import SETTINGS
from tests.stores.test_faults import FAULTS, use

DISPLAYS = short_log(rows=240)
# rows that were written and then deleted: they must not count
DELETED = DISPLAYS.slice(0, 40).set_column(
    DISPLAYS.schema.get_field_index("view"), "view", pa.array([f"gone{i}" for i in range(40)])
)
PATHS = ["here", "store"]


@pytest.fixture(scope="module")
def expected() -> ft.Result:
    return test_of(SHORT).run(DISPLAYS)


def storage(store: Store) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": store.url, "AWS_ALLOW_HTTP": "true", "AWS_S3_ALLOW_UNSAFE_RENAME": "true"}


def write_delta(place: str, store: Store, name: str, tmp_path: Path) -> str:
    """A table whose version 2 has all displays; version 1 has rows that were deleted, and 0 only half."""
    from deltalake import DeltaTable, write_deltalake

    address = str(tmp_path / name) if place == "here" else f"s3://{BUCKET}/lake/{name}"
    options = None if place == "here" else storage(store)
    if place == "store":
        _clear(store, f"lake/{name}")
    half = len(DISPLAYS) // 2
    by_day = [_with_day(table) for table in (DISPLAYS.slice(0, half), DISPLAYS.slice(half), DELETED)]
    write_deltalake(address, by_day[0], partition_by=["day"], storage_options=options)
    write_deltalake(address, pa.concat_tables(by_day[1:]), mode="append", storage_options=options)
    DeltaTable(address, storage_options=options).delete("view LIKE 'gone%'")
    return address


def _with_day(table: pa.Table) -> pa.Table:
    """A partition whose name has a space and a percent sign, which paths encode."""
    return table.append_column("day", pa.array(["first day", "50 %"] * (len(table) // 2)))


def _clear(store: Store, folder: str) -> None:
    for key in store.keys(folder):
        store.files.delete_file(f"{BUCKET}/{key}")


@contextmanager
def catalog(place: str, store: Store, tmp_path: Path) -> Iterator[Any]:
    from pyiceberg.catalog.sql import SqlCatalog

    warehouse = f"file://{tmp_path}/house" if place == "here" else f"s3://{BUCKET}/house"
    properties = {"s3.endpoint": store.url, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET,
                  "s3.region": "us-east-1"}  # fmt: skip
    made = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=warehouse, **properties)
    made.create_namespace("shop")
    try:
        yield made
    finally:
        made.close()


class Snapshots:
    """An Iceberg table, and its snapshots: half the displays; all, and rows to delete; all."""

    def __init__(self, place: str, store: Store, tmp_path: Path) -> None:
        if place == "store":
            _clear(store, "house")
        half = len(DISPLAYS) // 2
        with catalog(place, store, tmp_path) as made:
            table = made.create_table("shop.displays", schema=DISPLAYS.schema)
            table.append(DISPLAYS.slice(0, half))
            table.append(pa.concat_tables([DISPLAYS.slice(half), DELETED]))
            table.delete("view LIKE 'gone%'")
            self.ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
            self.address = table.location().removeprefix("file://")


@pytest.mark.parametrize("place", PATHS)
def test_delta_tables_are_read_as_the_table_they_are(
    place: str, store: Store, tmp_path: Path, expected: ft.Result
) -> None:
    address = write_delta(place, store, "displays", tmp_path)
    result = test_of(SHORT).run(address)
    assert_same(expected, result)
    assert result.provenance["inputs"]["log"]["table"] == {"kind": "Delta Lake", "version": 2}
    assert_same(expected, test_of(SHORT).run(f"{address}#version=2"))
    earlier = open_source(f"{address}#version=0")
    assert sum(chunk.batch.num_rows for part in earlier.parts(["view"]) for chunk in part()) == 120
    assert earlier.rows == 120
    assert open_source(f"{address}#version=1").rows == 280


@pytest.mark.parametrize("place", PATHS)
def test_iceberg_tables_are_read_as_the_table_they_are(
    place: str, store: Store, tmp_path: Path, expected: ft.Result
) -> None:
    written = Snapshots(place, store, tmp_path)
    result = test_of(SHORT).run(written.address)
    assert_same(expected, result)
    assert result.provenance["inputs"]["log"]["table"] == {"kind": "Iceberg", "version": written.ids[-1]}
    earlier = open_source(f"{written.address}#version={written.ids[0]}")
    assert earlier.rows == 120
    assert open_source(f"{written.address}#version={written.ids[1]}").rows == 280


def test_a_long_log_in_a_delta_table_of_a_store(store: Store, expected: ft.Result) -> None:
    from deltalake import write_deltalake

    _clear(store, "lake/long")
    write_deltalake(f"s3://{BUCKET}/lake/long", long_log(DISPLAYS), storage_options=storage(store))
    assert_same(expected, test_of(LONG).run(f"s3://{BUCKET}/lake/long"))


def test_only_the_needed_columns_are_read(store: Store, tmp_path: Path) -> None:
    """Columns that a version added are null in the files before it."""
    from deltalake import write_deltalake

    address = str(tmp_path / "table")
    write_deltalake(address, pa.table({"a": [1, 2], "b": ["x", "y"]}))
    write_deltalake(address, pa.table({"a": [3], "b": ["z"], "c": [0.5]}), mode="append", schema_mode="merge")
    source = open_source(address)
    tables = [pa.Table.from_batches([c.batch]) for part in source.parts(["c", "a"]) for c in part()]
    assert all(table.column_names == ["c", "a"] for table in tables)
    assert sorted(pa.concat_tables(tables).to_pylist(), key=lambda row: row["a"]) == [
        {"c": None, "a": 1}, {"c": None, "a": 2}, {"c": 0.5, "a": 3}
    ]  # fmt: skip


def test_an_iceberg_table_whose_schema_changed(store: Store, tmp_path: Path) -> None:
    """A column that was renamed, one that was widened, and one that came later; files are not written again."""
    from pyiceberg.types import DoubleType, LongType

    with catalog("here", store, tmp_path) as made:
        table = made.create_table("shop.t", schema=pa.schema([("n", pa.int32()), ("name", pa.string())]))
        table.append(pa.table({"n": pa.array([1, 2], pa.int32()), "name": ["x", "y"]}))
        with table.update_schema() as change:
            change.update_column("n", LongType())
            change.rename_column("name", "title")
        with table.update_schema() as change:
            change.add_column("name", DoubleType())
        table.append(pa.table({"n": [3], "title": ["z"], "name": [0.5]}))
        address = table.location().removeprefix("file://")
    source = open_source(address)
    rows = [row for part in source.parts(["title", "n", "name"]) for c in part() for row in c.batch.to_pylist()]
    assert sorted(rows, key=lambda row: row["n"]) == [
        {"title": "x", "n": 1, "name": None}, {"title": "y", "n": 2, "name": None},
        {"title": "z", "n": 3, "name": 0.5},
    ]  # fmt: skip


def test_rows_that_an_iceberg_delete_file_names_do_not_count(store: Store, tmp_path: Path) -> None:
    """Other writers delete rows by files that list their positions; pyiceberg reads such files, and writes none."""
    with catalog("here", store, tmp_path) as made:
        table = made.create_table("shop.t", schema=pa.schema([("n", pa.int64())]))
        table.append(pa.table({"n": [10, 11, 12, 13]}))
        address = table.location().removeprefix("file://")
    source = opened(address)
    assert isinstance(source, IcebergLog)
    [task] = source._tasks
    place = Path(address) / "data" / "deletes.parquet"
    positions = pa.table({"file_path": [task.file.file_path] * 2, "pos": pa.array([0, 2], pa.int64())})
    pq.write_table(positions, place)
    task.delete_files = {_delete_file(place)}
    del vars(source)["data_files"]
    assert source.rows is None
    assert [n for part in source.parts(["n"]) for c in part() for n in c.batch["n"].to_pylist()] == [11, 13]


def _delete_file(place: Path) -> Any:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=f"file://{place}", file_format=FileFormat.PARQUET,
        record_count=2, file_size_in_bytes=place.stat().st_size,
    )  # fmt: skip


@pytest.mark.slow
def test_aggregates_pack_online_and_history_of_tables(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from deltalake import write_deltalake

    address = write_delta("here", store, "displays", tmp_path)
    other = short_log(rows=240, seed=3)
    other = other.set_column(other.schema.get_field_index("user"), "user", pc.add(other["user"], 1000))
    write_deltalake(str(tmp_path / "treatment"), other)
    (tmp_path / "test.toml").write_text(SETTINGS)
    (tmp_path / "manifest.toml").write_text(
        'settings = "test.toml"\n[[test]]\nname = "a"\ncontrol = "displays#version=2"\ntreatment = "treatment"\n'
    )
    monkeypatch.chdir(tmp_path)
    for words in (
        ("aggregate", address, "-o", "sums.parquet", "-c", "test.toml"),
        ("pack", address, "-o", "packed", "-c", "test.toml"),
        ("online", address, "treatment", "-c", "test.toml"),
        ("history", "manifest.toml", "-o", "history"),
        ("run", "sums.parquet"),
    ):
        assert exit_code_of(monkeypatch, *words) == 0, capsys.readouterr().err
    agreement = json.loads((tmp_path / "history/agreement.json").read_text())
    assert agreement.get("failures", []) == []


def opened(log: Any) -> LakeLog:
    source = open_source(log)
    assert isinstance(source, LakeLog)
    return source


def refused(log: Any) -> str:
    with pytest.raises(ft.BadInput) as error:
        open_source(log)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize("place", PATHS)
def test_versions_that_are_not_there(place: str, store: Store, tmp_path: Path) -> None:
    address = write_delta(place, store, "displays", tmp_path)
    assert refused(f"{address}#version=9") == f"{address}: the Delta Lake table has no version 9. The newest is 2."
    iceberg = Snapshots(place, store, tmp_path)
    assert refused(f"{iceberg.address}#version=9") == (
        f"{iceberg.address}: the Iceberg table has no version 9. Its snapshots: {', '.join(map(str, iceberg.ids))}."
    )
    assert refused(f"{address}#version=last") == (
        f"{address}#version=last: expected a whole number after #version=, as in {address}#version=3."
    )


def test_what_has_no_versions(store: Store, tmp_path: Path) -> None:
    pq.write_table(DISPLAYS, tmp_path / "log.parquet")
    assert refused(f"{tmp_path}/log.parquet#version=1") == (
        f"{tmp_path}/log.parquet: no table of Delta Lake or Iceberg, and only these have versions. Leave out #version=."
    )
    # a name that has it is a name like any other
    pq.write_table(DISPLAYS, tmp_path / "log#version=1")
    assert open_source(f"{tmp_path}/log#version=1").rows == 240


@pytest.mark.slow
@pytest.mark.parametrize("place", PATHS)
def test_files_of_a_table_are_not_read_one_by_one(place: str, store: Store, tmp_path: Path) -> None:
    address = write_delta(place, store, "displays", tmp_path)
    file = str(opened(address).paths[0])
    above = address.rpartition("/")[0]
    for log in (file, f"{address}/*/*.parquet", file.rpartition("/")[0], above, f"{above}/**/*.parquet", f"{address}*"):
        assert f"{address}: a table of Delta Lake, not a plain folder" in refused(log), log
    assert refused([address, file]) == (
        f"{address}: a table of Delta Lake is a log by itself. Give it alone, without other logs."
    )
    iceberg = Snapshots(place, store, tmp_path).address
    for log in (f"{iceberg}/data", f"{iceberg}/data/*.parquet", iceberg.rpartition("/")[0]):
        assert f"{iceberg}: a table of Iceberg, not a plain folder" in refused(log), log


@pytest.mark.parametrize(("library", "kind"), [("deltalake", "Delta Lake"), ("pyiceberg.table", "Iceberg")])
def test_without_the_extra(
    library: str, kind: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "Iceberg":
        address = Snapshots("here", store, tmp_path).address
    else:
        address = write_delta("here", store, "displays", tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    assert refused(address) == (
        f"{address}: a table of {kind}, not a plain folder: some of its files may have rows that were deleted or"
        " replaced, and read as plain Parquet these would count. Install what reads the table itself, pip install"
        ' "foretest[lake]", or write its current version as Parquet and give that.'
    )


@pytest.mark.parametrize("feature", ["deletionVectors", "columnMapping", "ofTomorrow"])
def test_a_delta_table_with_features_that_are_not_read(feature: str, tmp_path: Path) -> None:
    """With a deletion vector a file has rows that do not count; with mapped columns, other names than the table."""
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "t"), pa.table({"a": [1]}))
    [commit] = (tmp_path / "t/_delta_log").glob("*.json")
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [feature], "writerFeatures": [feature]}
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    commit.write_text("\n".join(json.dumps({"protocol": protocol} if "protocol" in line else line) for line in lines))
    message = refused(str(tmp_path / "t"))
    assert message.startswith(f"{tmp_path}/t: the Delta Lake table cannot be read (")
    assert feature.lower() in message.lower()


def test_tables_that_are_damaged_or_moved(store: Store, tmp_path: Path) -> None:
    (tmp_path / "empty/_delta_log").mkdir(parents=True)
    assert refused(tmp_path / "empty").startswith(f"{tmp_path}/empty: the Delta Lake table cannot be read (")
    address = write_delta("here", store, "displays", tmp_path)
    gone = Path(str(opened(address).paths[0]))
    gone.unlink()
    with pytest.raises(ft.BadInput, match="which version 2 of the Delta Lake table") as error:
        test_of(SHORT).run(address)
    assert str(error.value).startswith(f"{gone}: no such file")
    iceberg = Path(Snapshots("here", store, tmp_path).address)
    shutil.move(iceberg, tmp_path / "moved")
    with pytest.raises(ft.BadInput, match="If it was moved, its metadata name files"):
        test_of(SHORT).run(tmp_path / "moved")
    newest = sorted((tmp_path / "moved/metadata").glob("*.metadata.json"))[-1]
    shutil.copy(newest, newest.with_name(newest.name.replace("-", "-0", 1)))
    assert "has 2 metadata files with one number, and only its catalog knows" in refused(tmp_path / "moved")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "fault"), [("Delta Lake", SILENT), ("Iceberg", DENIED)])
def test_a_store_that_fails(
    kind: str, fault: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the table's data are read, after its log or metadata."""
    delta = kind == "Delta Lake"
    address = write_delta("store", store, "t", tmp_path) if delta else Snapshots("store", store, tmp_path).address
    for module in ("file_systems", "delta", "iceberg"):
        room = "stores" if module == "file_systems" else "sources"
        for name, value in (("ATTEMPTS", 1), ("REQUEST_SECONDS", 1.0)):
            monkeypatch.setattr(f"foretest.{room}.{module}.{name}", value, raising=False)

    def failing(method: str, path: str) -> str | None:
        return fault if method == "GET" and path.partition("?")[0].endswith(".parquet") else None

    with failing_server(store, failing) as url:
        use(monkeypatch, url)
        with pytest.raises(ft.BadInput, match=r"^s3://shop/") as error:
            test_of(SHORT).run(address)
    assert FAULTS[fault] in str(error.value)
    assert KEY not in str(error.value)


def test_a_table_is_known_by_its_address(store: Store, tmp_path: Path) -> None:
    write_delta("store", store, "displays", tmp_path)
    paths = opened(f"s3://{BUCKET}/lake/displays").paths
    assert all(isinstance(path, RemotePath) and path.exists() for path in paths)

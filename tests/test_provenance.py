"""Where a result comes from: fingerprints that tell logs apart, names without folders, the command."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.provenance import (
    command_line,
    files_read,
    fingerprint,
    installed_version,
    public,
    rows_fingerprint,
    versions,
)
from foretest.sources.inputs import files_of
from tests.support import SmallLog, build_test


def test_a_fingerprint_changes_with_the_content_and_not_with_the_name(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(300_000), "y": np.random.default_rng(0).random(300_000)})
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet")]
    pq.write_table(table, paths[0])
    pq.write_table(table, paths[1])
    other = table["y"].to_numpy().copy()
    other[150_000] = 2.0  # one value in the middle: the footer's statistics tell
    pq.write_table(table.set_column(1, "y", pa.array(other)), paths[2])
    assert paths[0].stat().st_size > 4 * (1 << 16)  # neither end of the file holds it
    a, b, c = map(fingerprint, paths)
    assert a == b != c
    assert len(a) == 32


@pytest.mark.parametrize("content", [b"", b"x", b"PAR1", b"short,file\n1,2\n"])
def test_any_file_has_a_fingerprint(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    first = fingerprint(path)
    path.write_bytes(content + b"!")
    assert fingerprint(path) != first


def test_many_files_have_one_fingerprint_and_the_first_are_listed(tmp_path: Path) -> None:
    paths = []
    for k in range(25):
        paths.append(tmp_path / f"{k}.parquet")
        pq.write_table(pa.table({"x": [k]}), paths[-1])
    read = files_read(paths)
    assert read["count"] == 25
    assert read["bytes"] == sum(path.stat().st_size for path in paths)
    assert [file["name"] for file in read["files"]] == [f"{k}.parquet" for k in range(20)]
    assert read["fingerprint"] != files_read(paths[::-1])["fingerprint"]
    pq.write_table(pa.table({"x": [99]}), paths[24])  # one that is not listed
    assert files_read(paths)["fingerprint"] != read["fingerprint"]


def test_rows_have_a_fingerprint_however_they_are_cut() -> None:
    log = SmallLog()
    test = build_test(["ncis"])
    whole = test.run(log.table()).provenance
    other = test.run(log.table(order=np.random.default_rng(1).permutation(log.rows))).provenance
    fewer = test.run(log.table().slice(1)).provenance
    assert whole["rows_fingerprint"] == other["rows_fingerprint"] != fewer["rows_fingerprint"]
    assert rows_fingerprint(np.array([1.0, 2.0])) == rows_fingerprint(np.array([1, 2]))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/home/ada/tests/a.toml", "a.toml"),
        ("--config=/home/ada/a.toml", "--config=a.toml"),
        ("SELECT * FROM '/data/in/a.parquet' JOIN \"/data/b.parquet\"", "SELECT * FROM 'a.parquet' JOIN \"b.parquet\""),
        (r"C:\Users\ada\a.parquet", "a.parquet"),
        ("/home/ada/a.toml: no such file.", "a.toml: no such file."),
        ("logs/day=1/a.parquet", "logs/day=1/a.parquet"),
        ("s3://shop/logs/a.parquet", "s3://shop/logs/a.parquet"),
        ("~/logs/a.parquet", "~/logs/a.parquet"),
        ("clicks/displays and 1/2 or 3 / 4", "clicks/displays and 1/2 or 3 / 4"),
    ],
)
def test_absolute_folders_are_left_out(text: str, wanted: str) -> None:
    assert public(text) == wanted


def test_paths_below_here_and_home_stay_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "a folder with spaces"
    here.mkdir()
    monkeypatch.chdir(here)
    assert public(f"{here}/logs/a.parquet") == "logs/a.parquet"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert public(f"{tmp_path}/logs/a.parquet") == "~/logs/a.parquet"


def test_a_command_can_be_typed_again() -> None:
    assert command_line(["foretest", "run", "a b.parquet", "-c", "t.toml"]) == "foretest run 'a b.parquet' -c t.toml"
    shown = ["-o", "x", "--json", "--out=y", "--fail-on", "negative", "--cap", "5", "--threads=2", "--quiet"]
    assert command_line(["foretest", "run", "a", *shown]) == "foretest run a --cap 5"
    many = [f"{k}.parquet" for k in range(100)]
    assert command_line(["foretest", "run", *many, "-c", "t.toml"]) == (
        "foretest run 0.parquet 1.parquet 2.parquet … -c t.toml"
    )


def test_a_result_from_files_names_them_without_their_folder(tmp_path: Path) -> None:
    pq.write_table(SmallLog().table(), tmp_path / "log.parquet")
    result = build_test(["ncis"]).run(str(tmp_path / "log.parquet"))
    [file] = result.provenance["inputs"]["log"]["files"]
    assert file["name"] == "log.parquet"
    assert file["fingerprint"] == fingerprint(tmp_path / "log.parquet")
    assert str(tmp_path) not in result.to_json()
    assert "inputs" not in build_test(["ncis"]).run(SmallLog().table()).provenance


def test_estimators_are_told_with_their_own_options() -> None:
    result = build_test([ft.NCIS(cap=30), ft.NCIS(cap=10, name="ten"), "cis"]).run(SmallLog().table())
    assert result.provenance["estimators"] == {
        "ncis": {"key": "ncis", "cap": 30}, "ten": {"key": "ncis", "cap": 10}, "cis": {"key": "cis"},
    }  # fmt: skip


def test_versions_are_of_what_digits_depend_on() -> None:
    assert set(versions()) == {"foretest", "python", "numpy", "scipy", "pyarrow", "numba", "scikit-learn"}
    assert versions()["numpy"] == np.__version__
    assert installed_version("scikit-learn") == version("scikit-learn")


def test_only_logs_given_by_name_have_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    assert files_of(os.fspath(path)) == files_of(path) == files_of([path]) == [path]
    assert files_of(pa.table({"x": [1]})) == []
    assert files_of(None) == []

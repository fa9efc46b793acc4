"""Addresses used like paths."""

from __future__ import annotations

import pytest

from foretest.errors import BadInput
from foretest.sources.paths import find_files
from foretest.stores import RemotePath, joined, location
from tests.stores.server import BUCKET, Store


def test_names() -> None:
    path = RemotePath("s3://shop/logs/day=1/a.csv.gz")
    assert (path.name, path.suffix, path.suffixes) == ("a.csv.gz", ".gz", [".csv", ".gz"])
    assert path.parts == ("s3://shop", "logs", "day=1", "a.csv.gz")
    assert [str(place) for place in path.parents] == ["s3://shop/logs/day=1", "s3://shop/logs", "s3://shop"]
    assert str(path.parent.parent.parent.parent) == "s3://shop"
    assert str(path.parent / "../b") == "s3://shop/logs/b"
    assert str(path.with_name("b")) == "s3://shop/logs/day=1/b"
    assert path.is_relative_to("s3://shop/logs")
    assert not path.is_relative_to("s3://shop/log")


def test_an_azure_address_has_its_container_before_the_account() -> None:
    path = RemotePath("abfss://logs@shop.dfs.core.windows.net/day/a.parquet")
    assert path.place == "logs/day/a.parquet"
    assert str(path.parent) == "abfss://logs@shop.dfs.core.windows.net/day"
    assert RemotePath("gs://shop/a").place == "shop/a"


def test_paths_in_a_file_are_relative_to_it() -> None:
    folder = location("s3://shop/tests")
    assert str(joined(folder, "../logs/a.parquet")) == "s3://shop/logs/a.parquet"
    assert str(joined(folder, "gs://other/a")) == "gs://other/a"
    assert str(joined(location("here"), "s3://shop/a")) == "s3://shop/a"
    with pytest.raises(BadInput, match=r"^/data/a: a local path, named by a file in s3://shop/tests\."):
        joined(folder, "/data/a")


def test_every_name_that_a_store_lists(store: Store) -> None:
    names = ["a b", "50 %", "ü", "a+b", "a#b", "x?y=1", "dots..", "[1]"]
    for name in names:
        store.put(f"names/{name}.csv", b"x")
    _, paths = find_files([f"s3://{BUCKET}/names"])
    assert sorted(path.name for path in paths) == sorted(f"{name}.csv" for name in names)
    assert all(path.read_bytes() == b"x" for path in paths)
    assert find_files([f"s3://{BUCKET}/names/[[]1].csv"])[1][0].name == "[1].csv"


def test_a_whole_bucket_and_a_file_that_is_named_twice(store: Store) -> None:
    address = store.put("twice/a.csv", b"x")
    with pytest.raises(BadInput, match=r"this file is named twice"):
        find_files([address, f"s3://{BUCKET}/twice"])
    assert RemotePath(f"s3://{BUCKET}").is_dir()
    assert any(str(path) == address for path, _ in RemotePath(f"s3://{BUCKET}").listed(recursive=True))

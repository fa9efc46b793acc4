"""Credentials in addresses: refused wherever their @ is, and cut from every text."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foretest.errors import BadInput
from foretest.files import user_path
from foretest.provenance import command_line
from foretest.stores import RemotePath, joined, listed_location, location, without_credentials
from tests.commands import LOGGED, exit_code_of

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
WITH_USER = [
    f"s3://{KEY}:{SECRET}@shop/log.parquet",
    f"s3://{SECRET}@shop/log.parquet",
    f"s3://{KEY}@shop/log.parquet",
    f"s3://{KEY}:{SECRET}@shop@logs/log.parquet",
    f"s3://{KEY}:@{SECRET}@shop/log.parquet",
    f"s3://shop/{KEY}:{SECRET}@shop/log.parquet",
    f"s3://:{SECRET}@shop/log.parquet",
    f"s3:///{KEY}:{SECRET}@shop/log.parquet",
    f"S3://{KEY}:{SECRET}@shop/log.parquet",
    f"s3:/{KEY}:{SECRET}@shop/log.parquet",
    f"s3:{KEY}:{SECRET}@shop/log.parquet",
    f"./s3://{KEY}:{SECRET}@shop/log.parquet",
    f" s3://{KEY}:{SECRET}@shop/log.parquet",
    f"s3://{KEY}:wJal rXUtn/{SECRET}@shop/log.parquet",
    f"s3a://{KEY}:{SECRET}@shop/log.parquet",
    f"gs://{KEY}:{SECRET}@shop/log.parquet",
    f"gs:/{KEY}:{SECRET}@shop/log.parquet",
    f"abfss://box:{SECRET}@account.dfs.core.windows.net/log.parquet",
    f"abfss://{SECRET}@account.dfs.core.windows.net/log.parquet",
    f"abfss://box@{SECRET}@account.dfs.core.windows.net/log.parquet",
    f"abfss:/box:{SECRET}@account.dfs.core.windows.net/log.parquet",
    f"https://{KEY}:{SECRET}@shop.example/log.parquet",
    f"ftp://{KEY}:{SECRET}@shop.example/log.parquet",
    f"file:///{KEY}:{SECRET}@shop/log.parquet",
    f"s3:\\\\{KEY}:{SECRET}@shop\\log.parquet",
]
PARTS = (KEY, *SECRET.split("/"))
DOCUMENTED = "abfss://logs@shop.dfs.core.windows.net/day=1/a.parquet"
LOG = pa.table({"click": [0, 1] * 100, "control": [0.5] * 200, "treatment": [0.4, 0.6] * 100})


def shows(text: str) -> list[str]:
    """What of the secret a text has."""
    return [part for part in PARTS if part in text]


@pytest.mark.parametrize("address", WITH_USER)
def test_a_user_in_an_address(address: str) -> None:
    for read in (location, user_path, lambda text: joined(Path("here"), text)):
        with pytest.raises(BadInput, match="user or a password before an @") as error:
            read(address)
        assert shows(str(error.value)) == []
    if " " not in address.strip():  # a text is cut word by word
        assert shows(without_credentials(f"no '{address}' here, nor {address}.")) == []
        assert shows(command_line(["foretest", "run", address, f"--config={address}"])) == []


@pytest.mark.parametrize("address", WITH_USER)
@pytest.mark.parametrize("words", [
    "run ADDRESS -c test.toml", "run log.parquet -c ADDRESS", "run log.parquet -c test.toml -o ADDRESS",
    "run log.parquet -c test.toml --no-such=ADDRESS", "demo -o ADDRESS", "paper -o ADDRESS", "init ADDRESS",
    "init log.parquet -o ADDRESS", "simulate log -o ADDRESS", "board ADDRESS", "history ADDRESS -o out",
    "pack log.parquet -c test.toml -o ADDRESS", "convert dsjson ADDRESS -o out", "warm ADDRESS",
    "aggregate log.parquet -c test.toml -o ADDRESS", "check --vectors ADDRESS", "plan ADDRESS -c test.toml",
])  # fmt: skip
def test_no_command_repeats_it(
    words: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(LOG, "log.parquet")
    Path("test.toml").write_text(LOGGED)
    assert exit_code_of(monkeypatch, *(word.replace("ADDRESS", address) for word in words.split())) == 2
    out, err = capsys.readouterr()
    assert shows(out + err) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet", "test.toml"]


def test_nor_a_query_or_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query may compare with such a text; its provenance has it cut."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(LOG, "log.parquet")
    Path("test.toml").write_text(LOGGED)
    address = WITH_USER[0]
    assert exit_code_of(monkeypatch, "run", "--sql", f"SELECT * FROM '{address}'", "-c", "test.toml") == 2
    assert shows("".join(capsys.readouterr())) == []
    query = f"SELECT * FROM 'log.parquet' WHERE '{address}' <> ''"
    assert exit_code_of(monkeypatch, "run", "--sql", query, "-c", "test.toml", "-o", "out") == 0
    texts = [path.read_text(encoding="utf-8") for path in Path("out").iterdir()]
    assert [shows(text) for text in texts] == [[], []]
    assert "s3://…@shop" in json.loads(Path("out/result.json").read_text(encoding="utf-8"))["provenance"]["command"]


def test_what_is_no_user() -> None:
    for address in (DOCUMENTED, "s3://shop/a b/c:d.parquet", "gs://shop/x?y/*.parquet", "logs/a@b.parquet"):
        assert str(location(address)) == address
        assert without_credentials(f"{address}: no such file or folder.") == f"{address}: no such file or folder."
    message = f"{DOCUMENTED} and {DOCUMENTED} are one file"
    assert without_credentials(message) == message


def test_a_file_that_a_store_lists_may_have_an_at_in_its_name() -> None:
    listed = RemotePath("s3://shop/logs") / "day=1@noon/a@b.parquet"
    assert listed_location(str(listed)) == listed
    assert listed_location(f"{DOCUMENTED}@1").name == "a.parquet@1"
    with pytest.raises(BadInput, match="a credential must not be in it"):
        listed_location(f"s3://{KEY}:x@shop/a.parquet")

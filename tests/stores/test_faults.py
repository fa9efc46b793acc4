"""What goes wrong in stores and on the way to them: one sentence with the address, exit code 2, nothing written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.stores import file_systems
from foretest.stores.remote import RemotePath
from tests.commands import exit_code_of
from tests.stores.conftest import environment
from tests.stores.server import BUCKET, BUSY, CUT, DENIED, KEY, SECRET, SILENT, Fault, Store, failing_server
from tests.stores.test_commands import DISPLAYS, SETTINGS
from tests.stores.test_same_digits import csv, parquet

Refusal = Callable[..., str]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fewer attempts than usual, and file systems of this test alone."""
    monkeypatch.setattr(file_systems, "ATTEMPTS", 2)
    file_systems._file_system.cache_clear()
    yield
    file_systems._file_system.cache_clear()


@pytest.fixture
def refusal(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Refusal:
    """Runs a command that must be refused; the sentence."""
    store.put("f/log.parquet", parquet(DISPLAYS))
    store.put("f/log.csv", csv(DISPLAYS))
    (tmp_path / "test.toml").write_text(SETTINGS)
    pq.write_table(DISPLAYS, tmp_path / "log.parquet")
    monkeypatch.chdir(tmp_path)

    def refusal(*words: str) -> str:
        before = sorted(tmp_path.rglob("*")), store.keys("f")
        begun = time.monotonic()
        code = exit_code_of(monkeypatch, *words)
        assert time.monotonic() - begun < 20.0
        out, err = capsys.readouterr()
        assert code == 2, out
        assert err.startswith("foretest: ")
        assert err.count("\n") == 1
        assert (sorted(tmp_path.rglob("*")), store.keys("f")) == before
        assert KEY not in err
        assert SECRET not in err
        return err.removeprefix("foretest: ").rstrip("\n")

    return refusal


def use(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name, value in environment(url).items():
        monkeypatch.setenv(name, value)


def test_what_is_not_there(refusal: Refusal) -> None:
    words = ("-c", "test.toml", "-o", "out")
    missing = "s3://nowhere/log.parquet"
    sentence = f"{missing}: there is no bucket 'nowhere', or it cannot be seen from here."
    assert refusal("run", missing, *words) == sentence
    assert refusal("run", "s3://nowhere/*.parquet", *words).endswith(sentence.partition(": ")[2])
    assert refusal("run", "log.parquet", "-c", "test.toml", "-o", "s3://nowhere/out").endswith("seen from here.")
    address = f"s3://{BUCKET}/f/lag.parquet"
    assert refusal("run", address, *words) == f"{address}: no such file or folder."
    pattern = f"s3://{BUCKET}/f/*.feather"
    assert refusal("run", pattern, *words) == f"{pattern}: no file matches this pattern."
    settings = f"s3://{BUCKET}/f/test.toml"
    assert refusal("run", "log.parquet", "-c", settings) == f"{settings}: no such settings file."


def test_addresses_that_are_none(refusal: Refusal) -> None:
    words = ("-c", "test.toml")
    assert refusal("run", "s3:///log.parquet", *words).endswith("no address of a file. Expected s3://bucket/key.")
    assert "s3a:// is not read here. Write s3://" in refusal("run", "s3a://shop/log.parquet", *words)
    assert refusal("run", "ftp://shop/log.parquet", *words).endswith(
        "ftp:// is not read. Known: s3://, gs://, abfss://, and local paths."
    )
    with pytest.raises(ft.BadInput, match=r'give it as text, "s3://shop/f/log.parquet"'):
        ft.OfflineTest.from_toml("test.toml").run(Path("s3://shop/f/log.parquet"))


FAULTS = {
    DENIED: "access denied by the store. Check the credentials that its own tools find (environment, profile or role)",
    BUSY: "the store is too busy and asked to slow down, also after several attempts.",
    CUT: "the connection to the store failed, also after several attempts",
    SILENT: "the connection to the store failed, also after several attempts",
}


@pytest.mark.parametrize(
    ("kind", "method", "log"),
    [
        (DENIED, "HEAD", "f/log.parquet"), (DENIED, "GET", "f/log.parquet"), (BUSY, "HEAD", "f/log.parquet"),
        (BUSY, "GET", "f/log.csv"), (CUT, "GET", "f/log.parquet"), (CUT, "GET", "f/log.csv"),
        (SILENT, "HEAD", "f/log.parquet"),
    ],
)  # fmt: skip
def test_a_log_that_cannot_be_read(
    kind: str, log: str, method: str, refusal: Refusal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first request on, or when the content is read."""

    def fault(command: str, path: str) -> str | None:
        return kind if command == method and log in path else None

    if kind == SILENT:
        _wait_no_longer(monkeypatch)
    with failing_server(store, fault) as url:
        use(monkeypatch, url)
        address = f"s3://{BUCKET}/{log}"
        message = refusal("run", address, "-c", "test.toml", "-o", "out")
    assert message.startswith(f"{address}: {FAULTS[kind]}")


def _wait_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_systems, "ATTEMPTS", 1)
    monkeypatch.setattr(file_systems, "REQUEST_SECONDS", 1.0)


def test_no_credentials(refusal: Refusal, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with failing_server(store, _none, signed=True) as url:
        use(monkeypatch, url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "none"))
        address = f"s3://{BUCKET}/f/log.parquet"
        assert refusal("run", address, "-c", "test.toml").startswith(f"{address}: {FAULTS[DENIED]}")


def test_a_server_that_is_gone(refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "http://127.0.0.1:9")
    address = f"s3://{BUCKET}/f/log.parquet"
    assert refusal("run", address, "-c", "test.toml").startswith(f"{address}: {FAULTS[CUT]}")


@pytest.mark.slow
def test_a_connection_that_breaks_in_the_midst(refusal: Refusal, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The footer is read, and the first row groups; then the server is gone."""
    _wait_no_longer(monkeypatch)
    reads = iter(range(100))
    store.put("f/many.parquet", parquet(pa.concat_tables([DISPLAYS] * 3)))

    def fault(command: str, path: str) -> str | None:
        return SILENT if command == "GET" and "many" in path and next(reads) >= 12 else None

    with failing_server(store, fault) as url:
        use(monkeypatch, url)
        address = f"s3://{BUCKET}/f/many.parquet"
        message = refusal("run", address, "-c", "test.toml", "-o", "out", "--threads", "1")
    assert message.startswith(f"{address}: {FAULTS[CUT]}")
    assert next(reads) > 12


@pytest.mark.parametrize(("command", "kind"), [("run", DENIED), ("aggregate", BUSY), ("pack", DENIED)])
def test_an_output_that_cannot_be_written(
    command: str, kind: str, refusal: Refusal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of its objects fails, and none is left: an object of a packed log alone would be half of it."""
    last = {"run": "report.html", "aggregate": "sums.parquet", "pack": "_packed.parquet"}[command]
    out = f"s3://{BUCKET}/f/{'sums.parquet' if command == 'aggregate' else command}"

    def fault(method: str, path: str) -> str | None:
        return kind if method in ("PUT", "POST") and last in path else None

    with failing_server(store, fault) as url:
        use(monkeypatch, url)
        message = refusal(command, "log.parquet", "-c", "test.toml", "-o", out)
    assert message.startswith(out)
    assert FAULTS[kind][:30] in message


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_an_object_that_changes_while_it_is_read(ending: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is replaced by one of the same size, which the next request reads."""
    from tests.stores.test_same_digits import arrow

    make = {"parquet": parquet, "arrow": arrow, "csv": csv}[ending]
    first, second = make(DISPLAYS), make(DISPLAYS.take(pa.array(range(len(DISPLAYS))[::-1])))
    address = store.put(f"f/changing.{ending}", first)
    requests = iter(range(1000))

    def fault(method: str, path: str) -> str | None:
        if (
            method == "GET"
            and "changing" in path.partition("?")[0]
            and next(requests) == (5 if ending == "arrow" else 1)
        ):
            store.put(f"f/changing.{ending}", second)
        return None

    test = ft.OfflineTest.from_toml(_settings(store))
    with failing_server(store, fault) as url:
        use(monkeypatch, url)
        monkeypatch.setattr("foretest.stores.remote._CHUNK", 10_000)
        with pytest.raises(ft.BadInput) as error:
            test.run(address)
    assert str(error.value) == f"{address}: the file changed while it was read. Run again when nobody writes to it."


def _settings(store: Store) -> str:
    return store.put("f/test.toml", SETTINGS.encode())


def test_content_that_is_damaged_is_named_by_its_address(store: Store) -> None:
    test = ft.OfflineTest.from_toml(_settings(store))
    whole = parquet(DISPLAYS)
    cases = {
        "cut.parquet": (whole[:-100], "a truncated Parquet file"),
        "empty.parquet": (b"", "the file is empty (0 bytes), not a Parquet file"),
        "text.parquet": (b"hello, this is text", "not a Parquet file"),
        "bad.csv": (
            csv(DISPLAYS) + b"\n1;2",
            "line 202 (the header is line 1): 2 fields, where the header has 7 names",
        ),
        "bad.jsonl": (b'{"click": 1}\n{"cli', "line 2 is no JSON object"),
        "empty.csv": (b"", "the file is empty (0 bytes), not a CSV file"),
        "noise.csv.gz": (b"not gzip", "cannot be read as CSV"),
    }
    for name, (content, what) in cases.items():
        address = store.put(f"f/{name}", content)
        with pytest.raises(ft.BadInput) as error:
            test.run(address)
        assert str(error.value).startswith(f"{address}: {what}"), name
        assert "foretest-copies" not in str(error.value)


def test_a_column_of_another_kind_names_the_address(store: Store) -> None:
    lines = csv(DISPLAYS).split(b"\n")
    lines[5] = b"much;" + lines[5].partition(b";")[2]
    address = store.put("f/mixed.csv", b"\n".join(lines))
    with pytest.raises(ft.BadInput, match=re.escape(f"row 4 of {address}, the first row being 0, holds 'much'")):
        ft.OfflineTest.from_toml(_settings(store)).run(address)


def test_an_upload_that_fails_leaves_the_old_object(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store.put("f/old.txt", b"old")
    (tmp_path / "new").write_bytes(b"new" * 5_000_000)

    def fault(method: str, path: str) -> str | None:
        return BUSY if method == "PUT" and "partNumber=2" in path else None

    with failing_server(store, fault) as url:
        use(monkeypatch, url)
        with pytest.raises(ft.BadInput, match=r"^s3://shop/f/old.txt: the store is too busy"):
            RemotePath(f"s3://{BUCKET}/f/old.txt").upload(tmp_path / "new")
    assert store.get("f/old.txt") == b"old"


def test_fault_servers_hand_on_what_does_not_fail(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing_server(store, _none) as url:
        use(monkeypatch, url)
        test = ft.OfflineTest.from_toml(_settings(store))
        assert test.run(store.put("f/log.parquet", parquet(DISPLAYS))).log["rows"] == 200


_none: Fault = lambda method, path: None  # noqa: E731


def test_a_disk_without_room_for_the_copy(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is copied before it is parsed: /dev/full is a disk that is."""
    address = store.put("f/log.csv", csv(DISPLAYS))
    monkeypatch.setattr(
        "foretest.sources.local_copies.LocalCopies._place", lambda _, path, n: (path, Path("/dev/full"))
    )
    monkeypatch.setattr("foretest.stores.remote._CHUNK", 1 << 20)
    with pytest.raises(ft.BadInput) as error:
        ft.OfflineTest.from_toml(_settings(store)).run(address)
    assert str(error.value).startswith(f"{address}: its temporary copy /dev/full cannot be written (No space left")


@pytest.mark.parametrize(("name", "kind"), [("503", DENIED), ("credentials", SILENT), ("NoSuchBucket", DENIED)])
def test_names_with_the_words_of_errors(name: str, kind: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of a fault is not mistaken by what a file is called."""
    address = store.put(f"f/{name}/log.parquet", parquet(DISPLAYS))
    test = ft.OfflineTest.from_toml(_settings(store))

    def fault(method: str, path: str) -> str | None:
        return kind if method == "HEAD" and f"{name}/log.parquet" in path else None

    if kind == SILENT:
        _wait_no_longer(monkeypatch)
    with failing_server(store, fault) as url:
        use(monkeypatch, url)
        with pytest.raises(ft.BadInput) as error:
            test.run(address)
    assert str(error.value).startswith(f"{address}: {FAULTS[kind]}")

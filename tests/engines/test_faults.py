"""What goes wrong on real machines: a clear line that names the file, nothing else touched, and the right answer on a
rerun."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest import cli
from foretest.files import write_whole
from tests.engines.input_forms import write_csv, write_json_lines

FORETEST = str(Path(sys.executable).with_name("foretest"))
FILES, ROWS = 100, 20
SETTINGS = """\
[log]
rewards = ["click"]
unit = "user"

[control]
policy = "logged"
prob = "p"

[treatment]
policy = "logged"
prob = "t"

[analysis]
estimators = ["cis", "ncis"]
n_resamples = 100
"""


def table(rows: int = FILES * ROWS) -> pa.Table:
    g = np.random.default_rng(0)
    p, t = g.uniform(0.2, 0.8, rows), g.uniform(0.2, 0.8, rows)
    return pa.table({"click": (g.random(rows) < 0.3) * 1.0, "user": g.integers(0, 300, rows), "p": p, "t": t})


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with settings, a hundred files of a log, and the result of an earlier run."""
    place = tmp_path / "desk"
    (place / "logs").mkdir(parents=True)
    monkeypatch.chdir(place)
    Path("test.toml").write_text(SETTINGS, encoding="utf-8")
    write_hundred(pq.write_table, ".parquet")
    Path("out").mkdir()
    Path("out/result.json").write_text('{"of": "an earlier run"}', encoding="utf-8")
    Path("out/notes.txt").write_text("mine", encoding="utf-8")
    return place


def write_hundred(write: Callable[[pa.Table, Path], Any], ending: str) -> None:
    """A log in a hundred files of one kind, in place of those that are there."""
    log = table()
    for path in Path("logs").glob("*"):
        path.unlink()
    for number in range(FILES):
        write(log.slice(number * ROWS, ROWS), Path("logs") / f"{number:03}{ending}")


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: str) -> tuple[int, str]:
    """The command in this process: exit code and stderr."""
    monkeypatch.setattr(sys, "argv", ["foretest", "run", *(args or ("logs", "-c", "test.toml", "-o", "out"))])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0), capsys.readouterr().err


@pytest.fixture
def refuse(desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A run that must be refused: its message. Nothing on the disk is touched."""

    def refused(*args: str) -> str:
        before = everything(desk)
        code, said = run(capsys, monkeypatch, *args)
        assert code == 2
        assert said.count("\n") == 1
        assert everything(desk) == before
        return said.removeprefix("foretest: ").removesuffix("\n")

    return refused


@pytest.fixture
def assert_right(desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """On a rerun the answer is that of the whole log in memory, and other files are as they were."""

    def right() -> None:
        assert run(capsys, monkeypatch)[0] == 0
        got = json.loads(Path("out/result.json").read_text(encoding="utf-8"))
        assert_whole_answer(got)
        assert Path("out/notes.txt").read_text(encoding="utf-8") == "mine"
        assert_nothing_half_written()

    return right


def assert_nothing_half_written() -> None:
    """Files that are being written have names that begin with a dot."""
    assert [name for name in os.listdir("out") if name.startswith(".")] == []


def assert_whole_answer(got: dict[str, Any], cap: float = 100.0) -> None:
    log = table()
    assert got["log"]["rows"] == FILES * ROWS
    w = np.minimum(log["t"].to_numpy() / log["p"].to_numpy(), cap)
    click = log["click"].to_numpy()
    estimates = got["metrics"]["click"]["estimates"]
    assert estimates["cis"]["treatment"] == pytest.approx((w * click).mean(), rel=1e-12)
    assert estimates["ncis"]["treatment"] == pytest.approx((w * click).sum() / w.sum(), rel=1e-12)


# -- files ------------------------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[Callable[[pa.Table, Path], Any], str]] = {
    ".parquet": (pq.write_table, "a truncated Parquet file, whose end is missing after"),
    ".feather": (feather.write_feather, "a truncated Arrow file, whose end is missing after"),
    ".csv.gz": (write_csv, "cannot be read as CSV ("),
    ".csv": (write_csv, "line 11 (the header is line 1): 3 fields, where the header has 4 names"),
    ".jsonl": (write_json_lines, "line 11 is no JSON object ("),
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", KINDS)
def test_one_of_a_hundred_files_is_truncated(
    ending: str, refuse: Callable[..., str], assert_right: Callable[[], None]
) -> None:
    write, what = KINDS[ending]
    write_hundred(write, ending)
    bad = Path(f"logs/057{ending}")
    whole = bad.read_bytes()
    cut = len(whole) // 2 if ending not in (".csv", ".jsonl") else whole.index(b"\n", len(whole) // 2) - 25
    bad.write_bytes(whole[:cut])
    assert refuse().startswith(f"{bad}: {what}")
    bad.write_bytes(whole)
    assert_right()


def test_a_file_disappears_in_the_middle(desk: Path, assert_right: Callable[[], None]) -> None:
    test = ft.OfflineTest.from_toml("test.toml")
    before = everything(desk)
    seen = 0

    def progress(stage: str, total: int | None, rows: int) -> None:
        nonlocal seen
        seen += rows
        if seen == 3 * ROWS:
            Path("logs/057.parquet").rename("hidden")

    with pytest.raises(ft.BadInput, match=r"^logs/057.parquet: no such file or folder\.$"):
        test.run("logs", threads=1, progress=progress)
    assert 3 * ROWS <= seen < 100 * ROWS
    Path("hidden").rename("logs/057.parquet")
    assert everything(desk) == before
    assert_right()


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
@pytest.mark.parametrize("rows", [7, ROWS])
def test_a_file_is_written_again_in_the_middle(
    ending: str, rows: int, desk: Path, assert_right: Callable[[], None]
) -> None:
    """Half of the old rows and half of the new would be an answer to no question, with as many rows too."""
    write, _ = KINDS[ending]
    write_hundred(write, ending)
    test = ft.OfflineTest.from_toml("test.toml")
    path = Path(f"logs/057{ending}")
    whole = path.read_bytes()

    def progress(stage: str, total: int | None, done: int) -> None:
        if done:
            write(table(rows), path)

    with pytest.raises(ft.BadInput, match=rf"^{path}: the file changed while it was read\."):
        test.run("logs", threads=1, progress=progress)
    path.write_bytes(whole)
    assert_right()


OTHER_TYPES: dict[str, tuple[str, pa.Array, str]] = {
    "unit": (
        "user", pa.array([f"u{i}" for i in range(ROWS)]),
        "logs/057.parquet: column 'user' is string, but int64 in logs/000.parquet: it must be of one type in all files."
        " Convert one of them.",
    ),
    "reward": (
        "click", pa.array(["no"] * ROWS),
        "logs/057.parquet: column 'click' is string, expected a number or bool column (a reward). Convert it, or name"
        " another column.",
    ),
    "probability": (
        "p", pa.array([[0.5]] * ROWS),
        "logs/057.parquet: column 'p' is list<element: double>, expected a number column (a probability). Convert it,"
        " or name another column.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("role", OTHER_TYPES)
def test_a_column_is_of_another_type_in_one_file(
    role: str, refuse: Callable[..., str], assert_right: Callable[[], None]
) -> None:
    column, values, message = OTHER_TYPES[role]
    whole = Path("logs/057.parquet").read_bytes()
    log = pq.read_table("logs/057.parquet")
    pq.write_table(log.set_column(log.column_names.index(column), column, values), "logs/057.parquet")
    assert refuse() == message
    Path("logs/057.parquet").write_bytes(whole)
    assert_right()


def test_a_number_may_be_of_another_width(desk: Path, assert_right: Callable[[], None]) -> None:
    """int32 among int64, and 0 or 1 as bool or integer: the same values, the same answer."""
    log = pq.read_table("logs/057.parquet")
    log = log.set_column(1, "user", log["user"].cast(pa.int32())).set_column(0, "click", log["click"].cast(pa.int8()))
    pq.write_table(log, "logs/057.parquet")
    assert_right()


def test_a_file_that_cannot_be_read(refuse: Callable[..., str], assert_right: Callable[[], None]) -> None:
    """Ways that stop root as well: a link that leads nowhere, one to itself, a folder in a file's place, a pipe."""
    bad = Path("logs/100.parquet")
    bad.symlink_to("/nowhere/100.parquet")
    assert refuse() == f"{bad}: a link to /nowhere/100.parquet, which is not there."
    bad.unlink()
    bad.symlink_to("100.parquet")
    assert refuse().startswith(f"{bad}: cannot be read (")
    bad.unlink()
    bad.mkdir()
    assert refuse() == f"{bad}: a folder with the name of a file, and no log in it. Leave it out."
    bad.rmdir()
    os.mkfifo(bad)
    assert refuse() == f"{bad}: neither a file nor a folder."
    bad.unlink()
    assert_right()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file")
def test_a_file_without_permission(refuse: Callable[..., str], assert_right: Callable[[], None]) -> None:
    bad = Path("logs/057.parquet")
    bad.chmod(0)
    said = refuse()
    bad.chmod(0o644)
    assert said == f"{bad}: permission denied."
    assert_right()


# -- writing ----------------------------------------------------------------------------------------------------------


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may grow beyond a size, as on a disk with so much room."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_room_for_the_result(refuse: Callable[..., str], assert_right: Callable[[], None]) -> None:
    with largest_file(1000):
        assert refuse() == "out/result.json: File too large."
    assert_right()


def test_no_room_to_keep_a_stream(desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    log = table(20_000).append_column("age", pa.array(np.random.default_rng(1).random(20_000)))
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", features=["age"]),
        control=ft.Logged(prob="p"), treatment=ft.Logged(prob="t"), estimators=["piece-ncis"], n_resamples=50,
    )  # fmt: skip
    with largest_file(100_000), pytest.raises(ft.BadInput) as error:
        test.run(log.to_reader(max_chunksize=1000))
    assert str(error.value).endswith(
        "stream.parquet: the log can be read only once, and could not be saved to be read again (File too large). Set"
        " TMPDIR to a folder with more room, or give the log as a file."
    )
    assert list((tmp_path / "temporary").iterdir()) == []
    of_stream, of_table = (
        test.run(source).metrics["click"].estimates["piece-ncis"] for source in (log.to_reader(), log)
    )
    assert of_stream.treatment == pytest.approx(of_table.treatment, rel=1e-9)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def test_a_full_disk(desk: Path, tmp_path: Path, refuse: Callable[..., str]) -> None:
    """The real thing, where this process may make a small disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "foretest", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("may not mount a disk")
    try:
        (disk / "result.json").write_text('{"of": "an earlier run"}', encoding="utf-8")
        with pytest.raises(OSError, match="No space left"):
            fill(disk / "filler")
        before = everything(disk)
        said = refuse("logs", "-c", "test.toml", "-o", str(disk))
        assert re.fullmatch(rf"{disk}/(result\.json|report\.html): No space left on device\.", said)
        assert everything(disk) == before
        (disk / "filler").unlink()
        (disk / "result.json").unlink()
        ft.OfflineTest.from_toml("test.toml").run("logs").to_json(disk / "result.json")
        assert_whole_answer(json.loads((disk / "result.json").read_text(encoding="utf-8")))
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
def test_two_runs_write_to_one_folder(desk: Path) -> None:
    """The file is the whole result of one of them."""
    command = [FORETEST, "run", "logs", "-c", "test.toml", "-o", "out", "--cap"]
    runs = [
        subprocess.Popen([*command, cap], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for cap in ("1.5", "2")
    ]
    for process in runs:
        said = process.communicate()[1]
        assert (process.returncode, said) == (0, b"")
    got = json.loads(Path("out/result.json").read_text(encoding="utf-8"))
    assert_whole_answer(got, got["settings"]["analysis"]["cap"])
    assert_nothing_half_written()


def test_who_reads_while_others_write_sees_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "out" / "result.json"
    texts = [json.dumps({"by": writer, "rows": [writer] * 5000}) for writer in range(3)]
    write_whole(path, texts[0])
    stop = threading.Event()

    def write(text: str) -> None:
        while not stop.is_set():
            write_whole(path, text)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in writers:
        thread.start()
    seen = {path.read_text(encoding="utf-8") for _ in range(500)}
    stop.set()
    for thread in writers:
        thread.join()
    assert seen <= set(texts)
    assert os.listdir(path.parent) == ["result.json"]

"""Characters that a terminal obeys, in names of all kinds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.formatting import visible_lines
from tests.commands import exit_code_of

EVIL = "ev\x1b]0;owned\x07il\x9b2J\u202e\x7f"
SHOWN = r"ev\x1b]0;owned\x07il\x9b2J\u202e\x7f"
SETTINGS = f"""\
[log]
rewards = [{json.dumps(EVIL)}]
unit = "user"
segments = ["country"]

[control]
policy = "logged"
prob = "control"

[[treatment]]
name = {json.dumps("T" + EVIL)}
policy = "logged"
prob = "treatment"

[[treatment]]
name = "other"
policy = "logged"
prob = "control"

[analysis]
estimators = ["ncis"]
n_resamples = 100
"""


@pytest.fixture(autouse=True)
def _desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = 400
    columns = {EVIL: [0, 1] * 200, "user": range(rows), "country": ["a" + EVIL, "b"] * 200,
               "control": [0.5] * rows, "treatment": [0.4, 0.6] * 200}  # fmt: skip
    pq.write_table(pa.table(columns), f"{EVIL}.parquet")
    Path("test.toml").write_text(SETTINGS)


def obeyed(text: str) -> set[str]:
    """What of a text a terminal would obey."""
    return {letter for letter in text if letter != "\n" and not letter.isprintable()}


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--json"], ["-o", EVIL]])
def test_no_name_reaches_a_terminal_as_it_is(
    form: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(monkeypatch, "run", f"{EVIL}.parquet", "-c", "test.toml", *form) == 0
    out, err = capsys.readouterr()
    assert obeyed(out + err) == set()
    if form == ["--json"]:
        assert EVIL in json.loads(out)["metrics"]
    else:
        assert "\\x1b" in out
    if form[:1] == ["-o"]:
        assert EVIL in json.loads(Path(EVIL, "result.json").read_text(encoding="utf-8"))["metrics"]


def test_nor_in_what_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        [f"no{EVIL}", "-c", "test.toml"], [f"{EVIL}.parquet", "-c", EVIL], [f"{EVIL}.parquet", "-c", "test.toml", EVIL],
        [f"{EVIL}.parquet", "-c", "test.toml", "--fail-on", EVIL],
    ):  # fmt: skip
        assert exit_code_of(monkeypatch, "run", *words) == 2
        out, err = capsys.readouterr()
        assert obeyed(out + err) == set()
        assert SHOWN in err


def test_nor_in_python() -> None:
    test = ft.OfflineTest.from_toml("test.toml")
    result = test.run(f"{EVIL}.parquet")
    assert obeyed(str(result)) == set()
    assert EVIL in result.metrics
    with pytest.raises(ft.BadInput) as error:
        test.run(f"no{EVIL}")
    assert str(error.value).startswith(f"no{SHOWN}: no such file")


def test_colours_stay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What Foretest itself says to a terminal passes."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert exit_code_of(monkeypatch, "run", f"{EVIL}.parquet", "-c", "test.toml") == 0
    out = capsys.readouterr().out
    assert "\x1b[1m" in out
    assert obeyed(out) == {"\x1b"}
    assert "\x1b]" not in out


def test_a_board_of_such_names(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(monkeypatch, "run", f"{EVIL}.parquet", "-c", "test.toml", "-o", EVIL) == 0
    os.mkdir("damaged" + EVIL)
    Path("damaged" + EVIL, "result.json").write_text("{")
    assert exit_code_of(monkeypatch, "board", ".", "-o", "board.html") == 0
    out, err = capsys.readouterr()
    assert f"foretest: damaged{SHOWN}/result.json: " in err
    assert obeyed(out + err) == set()


def test_lines_stay() -> None:
    assert visible_lines("one\ntwo\r\n\tthree") == "one\ntwo\\x0d\n\\x09three"

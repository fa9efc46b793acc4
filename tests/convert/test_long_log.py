"""A long log written as displays: the same answers, from a settings file that runs as it is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.convert.long_log import convert_long
from tests.commands import exit_code_of
from tests.log.test_long_layout import EXPECTED, ROWS, settings_file
from tests.long_log import assert_same, three_tables


def test_the_written_log_runs_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(ROWS, tmp_path / "long.parquet")
    config, out = settings_file(tmp_path), tmp_path / "displays"
    assert (
        exit_code_of(monkeypatch, "convert", "long", str(tmp_path / "long.parquet"), "-c", config, "-o", str(out)) == 0
    )
    assert "(300 displays). Next: foretest run" in capsys.readouterr().out
    written = pq.read_table(out / "log.parquet")
    assert {"view", "sku", "user", "ranking", "click", "slot_click", "control_scores"} <= set(written.column_names)
    assert_same(ft.OfflineTest.from_toml(out / "settings.toml").run(out / "log.parquet"), EXPECTED)


def test_three_tables(tmp_path: Path) -> None:
    for name, table in three_tables(ROWS).items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    more = '[log.tables]\nimpressions = "impressions.parquet"\ncandidates = "candidates.parquet"\n'
    config = settings_file(tmp_path, more + 'rewards = "rewards.parquet"\n')
    assert convert_long(None, Path(config), tmp_path / "out") == 300
    assert_same(ft.OfflineTest.from_toml(tmp_path / "out/settings.toml").run(tmp_path / "out/log.parquet"), EXPECTED)


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    log = ROWS.append_column("ranking", ROWS["user"])
    config = Path(settings_file(tmp_path))
    convert_long(log, config, tmp_path / "out")
    assert_same(ft.OfflineTest.from_toml(tmp_path / "out/settings.toml").run(tmp_path / "out/log.parquet"), EXPECTED)


def test_columns_that_differ_within_a_display_are_left_out(tmp_path: Path) -> None:
    """Titles and prices of items, which no setting names; what a display has one value of is written."""
    log = ROWS.append_column("title", pa.array([f"item {item}" for item in ROWS["sku"].to_pylist()]))
    log = log.append_column("country", pa.array([f"c{user % 3}" for user in ROWS["user"].to_pylist()]))
    log = log.append_column("tags", pa.array([["a"]] * len(ROWS)))
    config = Path(settings_file(tmp_path))
    convert_long(log, config, tmp_path / "out")
    names = pq.read_schema(tmp_path / "out/log.parquet").names
    assert "country" in names
    assert not {"title", "tags"} & set(names)
    text = (tmp_path / "out/settings.toml").read_text(encoding="utf-8")
    assert "# Left out, for a display has no single value of them: tags, title." in text
    assert_same(ft.OfflineTest.from_toml(tmp_path / "out/settings.toml").run(tmp_path / "out/log.parquet"), EXPECTED)
    ft.OfflineTest.from_toml(config).pack(log, tmp_path / "packed")
    assert not {"title", "tags"} & set(pq.read_schema(tmp_path / "packed/rest.parquet").names)


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(ROWS, tmp_path / "long.parquet")
    config, log, out = settings_file(tmp_path), str(tmp_path / "long.parquet"), str(tmp_path / "out")
    short = tmp_path / "short.toml"
    text = Path(config).read_text(encoding="utf-8")
    for key in ("layout", "display", "item", "slot"):
        text = "\n".join(line for line in text.splitlines() if not line.startswith(f"{key} ="))
    short.write_text(text, encoding="utf-8")
    for arguments, what in (
        (("wide", log, "-o", out), "unknown format 'wide'. Known: long, open-bandit, dsjson."),
        (("long", log, "-o", out), "convert long needs --config or -c"),
        (("long", log, "-c", str(short), "-o", out), '[log] layout is not "long": there is nothing to convert.'),
        (("open-bandit", log, log, "-o", out), "convert open-bandit takes one file or folder"),
    ):
        assert exit_code_of(monkeypatch, "convert", *arguments) == 2
        assert what in capsys.readouterr().err
    broken = ROWS.set_column(0, "view", ROWS["view"].take([*range(len(ROWS) - 1), 0]))
    pq.write_table(broken, tmp_path / "broken.parquet")
    assert exit_code_of(monkeypatch, "convert", "long", str(tmp_path / "broken.parquet"), "-c", config, "-o", out) == 2
    assert not (tmp_path / "out").exists()

"""A packed log gives the answers of the log it was made from, and reads less."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.aggregation import fold_start
from foretest.log.unit_columns import NO_UNIT
from foretest.sources import ROW_NUMBER, open_source
from foretest.storage.packed import writing
from foretest.storage.packed.reading import BASE, REST, REWARDED
from tests.storage.saved.support import SETTINGS, assert_same_result
from tests.support import SCORES, SmallLog

pytestmark = pytest.mark.slow  # whole runs, of packed logs and of the same logs as they were

LINEAR = ["is", "cis", "point-ncis", "point-ncis-adaptive"]
FULL = ["nis", "ncis", "piece-ncis", "dr"]


def offline_test(
    estimators: list[Any] | None, *, unit: str | None = "user", identity: str | None = "id", **analysis: Any
) -> ft.OfflineTest:
    columns = ft.LogColumns(rewards=["click", "revenue"], unit=unit, ranking="ranking", id=identity)
    settings = {"cap": 2.0, "weight_bound": 3.0, "strata": "stratum", "value": "v", "buckets": 128}
    settings |= {"n_resamples": 200, **analysis}
    return ft.OfflineTest(log=columns, **SCORES, estimators=estimators, **settings)


@pytest.fixture(scope="module")
def log() -> pa.Table:
    """Clicks in one row of ten, revenue without a click in a few others."""
    small = SmallLog(1500, units=300, seed=3)
    g = np.random.default_rng(1)
    small.click *= g.random(small.rows) < 0.3
    small.revenue = small.click * 2.5 + (g.random(small.rows) < 0.02) * 0.5
    return small.table()


@pytest.fixture
def plain(log: pa.Table, tmp_path: Path) -> str:
    path = tmp_path / "log.parquet"
    pq.write_table(log, path, row_group_size=400)
    return str(path)


def packed(test: ft.OfflineTest, path: Any, tmp_path: Path, name: str = "packed") -> str:
    test.pack(path, tmp_path / name)
    return str(tmp_path / name)


def blind(folder: str) -> str:
    """Make the rows without a reward unreadable: whoever answers did not read them."""
    path = Path(folder) / REST
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4 : len(content) - footer] = bytes(len(content) - footer - 4)
    path.write_bytes(content)
    return folder


def notes_of(result: ft.Result) -> list[str]:
    """The notes but for the one that asks whether the log's column `user` is the unit."""
    return [note for note in result.notes if NO_UNIT not in note]


KEYS = [("user", "id"), ("user", None), (None, "id"), (None, None)]


@pytest.mark.parametrize(("unit", "identity"), KEYS)
@pytest.mark.parametrize("capping", ["max", "zero"])
def test_linear_estimators_read_only_the_rewarded_rows(
    plain: str, tmp_path: Path, unit: str | None, identity: str | None, capping: str
) -> None:
    estimators = [key for key in LINEAR if capping == "max" or key != "point-ncis-adaptive"]
    test = offline_test(estimators, unit=unit, identity=identity, capping=capping)
    result = test.run(blind(packed(test, plain, tmp_path)))
    assert_same_result(result, test.run(plain))
    assert notes_of(result) == []


@pytest.mark.parametrize("estimator", [*LINEAR, *FULL])
@pytest.mark.parametrize(("unit", "identity"), [KEYS[1], KEYS[3]])
def test_each_estimator_alone(
    plain: str, tmp_path: Path, estimator: str, unit: str | None, identity: str | None
) -> None:
    test = offline_test([estimator], unit=unit, identity=identity)
    folder = packed(test, plain, tmp_path)
    result = test.run(folder)
    assert_same_result(result, test.run(plain))
    said = [f"{folder}: packed, but all rows were read: {estimator} needs them."]
    assert notes_of(result) == (said if estimator in FULL else [])


def test_all_that_can_run(plain: str, tmp_path: Path) -> None:
    test = offline_test(None)
    folder = packed(test, plain, tmp_path)
    result = test.run(folder)
    assert_same_result(result, test.run(plain))
    assert result.notes[-1].startswith(f"{folder}: packed, but all rows were read: nis, dr, ncis, piece-ncis need them")


def test_an_estimator_of_ones_own_reads_all_rows(plain: str, tmp_path: Path) -> None:
    """Only it knows what its value needs."""

    class Own(ft.CIS):
        key = "own"

    test = offline_test([Own()])
    folder = packed(test, plain, tmp_path)
    assert_same_result(test.run(folder), test.run(plain))
    assert "own needs them" in test.run(folder).notes[0]


@pytest.mark.parametrize("interval", ["delta", "bernstein"])
def test_other_intervals(plain: str, tmp_path: Path, interval: str) -> None:
    packed_with = offline_test(LINEAR)
    test = packed_with.replace(
        interval=interval, estimators=["cis", "point-ncis-adaptive"], r_max=9.0, confidence_level=0.8, n_resamples=50
    )
    assert_same_result(test.run(blind(packed(packed_with, plain, tmp_path))), test.run(plain))


# -- packed for other settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"buckets": 64}, "the log was packed with buckets = 128, not with buckets = 64"),
        ({"seed": 5}, "the log was packed with seed = 0, not with seed = 5"),
        ({"unit": None}, 'the log was packed with [log] unit = "user", not without [log] unit'),
        ({"identity": None}, 'the log was packed with [log] id = "id", not without [log] id'),
        ({"unit": None, "identity": None}, 'the log was packed with [log] unit = "user", not without [log] unit'),
    ],
    ids=str,
)
def test_other_settings_read_all_rows(plain: str, tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    folder = packed(offline_test(LINEAR), plain, tmp_path)
    test = offline_test(LINEAR, **changes)
    result = test.run(folder)
    assert_same_result(result, test.run(plain))
    assert notes_of(result) == [f"{folder}: packed, but all rows were read: {reason}."]


def test_other_policies_and_rewards_read_all_rows(plain: str, tmp_path: Path) -> None:
    folder = packed(offline_test(LINEAR), plain, tmp_path)
    other = {"control": SCORES["control"], "treatment": ft.PlackettLuce("treatment_scores", temperature=2.0)}
    columns = ft.LogColumns(rewards=["click", "revenue"], unit="user", ranking="ranking", id="id")
    test = ft.OfflineTest(log=columns, **other, estimators=LINEAR, cap=2.0, weight_bound=20.0, buckets=128)
    assert_same_result(test.run(folder), test.run(plain))
    assert "packed with [treatment] temperature = 1, not with [treatment] temperature = 2" in test.run(folder).notes[0]
    few = ft.OfflineTest(
        log=ft.LogColumns(rewards=["revenue"], unit="user", ranking="ranking", id="id"), **SCORES, estimators=LINEAR
    )
    assert_same_result(few.run(folder), few.run(plain))


@pytest.mark.parametrize(
    "changes", [{"weight_bound": 2.0}, {"normaliser": "two-sided", "draws": 8}, {"strata": "user"}]
)
def test_what_only_rewarded_rows_need_may_change(plain: str, tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = blind(packed(offline_test(None), plain, tmp_path))
    test = offline_test(LINEAR, **changes)
    assert_same_result(test.run(folder), test.run(plain))


@pytest.mark.parametrize("capping", ["max", "zero"])
def test_at_another_cap_health_comes_from_the_sample(
    plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capping: str
) -> None:
    monkeypatch.setattr(fold_start, "SAMPLED_DISPLAYS", 600)
    folder = blind(packed(offline_test(LINEAR), plain, tmp_path))
    test = offline_test(["is", "cis", "point-ncis"], cap=4.0, capping=capping)
    result, whole = test.run(folder), test.run(plain)
    approximate = ("effective_sample_size", "capped_share", "treatment_mass_kept", "support", "/health/approximate")
    assert_same_result(result, whole, leave_out=approximate)
    assert result.health["approximate"] is True
    assert "approximate" not in whole.health
    assert result.notes == [
        "health at cap 4 is estimated from a sample of 600 displays: the log was packed with another cap."
    ]
    # means over 600 of 1 500 displays: within four standard errors of all of them
    sample = np.exp(test.aggregate(folder)[0].sample.columns()["log_w"])
    kept = np.minimum(sample, 4.0) if capping == "max" else np.where(sample < 4.0, sample, 0.0)
    assert result.health["treatment_mass_kept"] == pytest.approx(kept.mean(), rel=1e-12)
    assert result.health["effective_sample_size"] == pytest.approx(2.5 * kept.sum() ** 2 / (kept**2).sum(), rel=1e-12)
    assert abs(kept.mean() - whole.health["treatment_mass_kept"]) < 4 * kept.std() / np.sqrt(600)
    assert abs(result.health["capped_share"] - whole.health["capped_share"]) < 4 * np.sqrt(0.05 / 600)
    assert result.health["support"]["mean_q"] == pytest.approx(whole.health["support"]["mean_q"], abs=0.02)


def test_bernstein_at_another_cap_reads_all_rows(plain: str, tmp_path: Path) -> None:
    """Its bound for cis needs the mean weight of all rows; that of the adaptive cap does not."""
    folder = packed(offline_test(LINEAR), plain, tmp_path)
    test = offline_test(["cis"], cap=4.0, interval="bernstein", r_max=9.0)
    assert_same_result(test.run(folder), test.run(plain))
    assert 'interval = "bernstein" needs the mean weight of all rows for cis' in test.run(folder).notes[0]
    adaptive = test.replace(estimators=["point-ncis-adaptive"])
    health = ("effective_sample_size", "capped_share", "treatment_mass_kept", "support", "/health/approximate")
    assert_same_result(adaptive.run(blind(folder)), adaptive.run(plain), leave_out=health)
    # sums saved from a packed log carry the mark with them
    saved = tmp_path / "a.parquet"
    test.replace(interval="bootstrap").save_aggregates(folder, saved)
    assert test.replace(interval="bootstrap").run(saved).health["approximate"] is True
    with pytest.raises(ft.BadInput, match="needs the mean weight of all rows for cis; these sums have an estimate"):
        test.run(saved)


# -- several, and with others -----------------------------------------------------------------------------------------


def test_several_packed_logs(log: pa.Table, tmp_path: Path) -> None:
    test = offline_test(LINEAR)
    folders = [packed(test, log.slice(begin, 500), tmp_path, f"p{begin}") for begin in (0, 500, 1000)]
    result = test.run([blind(folder) for folder in folders])
    assert_same_result(result, test.run(log))
    assert notes_of(result) == []


def test_numbered_rows_of_several_logs(log: pa.Table, tmp_path: Path) -> None:
    """Without unit and id the second log's rows follow the first's, as if they had never been packed."""
    test = offline_test(LINEAR, unit=None, identity=None)
    folders = [packed(test, log.slice(begin, 500), tmp_path, f"p{begin}") for begin in (0, 500, 1000)]
    result = test.run(folders)
    assert_same_result(result, test.run(log))
    assert "distinguished by their numbers" in notes_of(result)[0]


def test_a_packed_log_beside_a_plain_one(log: pa.Table, tmp_path: Path) -> None:
    for unit in ("user", None):
        test = offline_test(LINEAR, unit=unit, identity=None)
        first = packed(test, log.slice(0, 900), tmp_path, f"packed-{unit}")
        pq.write_table(log.slice(900), tmp_path / "rest-of-it.parquet")
        assert_same_result(test.run([first, str(tmp_path / "rest-of-it.parquet")]), test.run(log))


# -- the folder -------------------------------------------------------------------------------------------------------


def test_all_rows_and_columns_are_kept_in_order(log: pa.Table, plain: str, tmp_path: Path) -> None:
    folder = packed(offline_test(LINEAR), plain, tmp_path)
    rewarded, rest = (pq.read_table(Path(folder) / name) for name in (REWARDED, REST))
    earns = (log["click"].to_numpy() > 0) | (log["revenue"].to_numpy() > 0)
    assert rewarded[ROW_NUMBER].to_pylist() == np.flatnonzero(earns).tolist()
    assert rest[ROW_NUMBER].to_pylist() == np.flatnonzero(~earns).tolist()
    both = pa.concat_tables([rewarded, rest]).sort_by(ROW_NUMBER).drop_columns(ROW_NUMBER)
    assert both.schema.remove_metadata() == log.schema
    assert both.equals(log)


def test_row_groups_are_bounded(log: pa.Table, plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "REST_ROWS", 300)
    monkeypatch.setattr(writing, "REWARDED_ROWS", 40)
    folder = packed(offline_test(LINEAR), plain, tmp_path)
    for name, most in ((REST, 300), (REWARDED, 40)):
        metadata = pq.ParquetFile(Path(folder) / name).metadata
        assert metadata.num_row_groups > 2
        assert max(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)) <= most


def test_check_reads_all_rows(plain: str, tmp_path: Path) -> None:
    test = offline_test(LINEAR)
    folder = packed(test, plain, tmp_path)
    assert_same_result(test.check(folder), test.check(plain))
    with pytest.raises(ft.BadInput, match=REST):
        test.check(blind(folder))


def test_packed_again_for_another_treatment(plain: str, tmp_path: Path) -> None:
    columns = ft.LogColumns(rewards=["click", "revenue"], ranking="ranking")
    other = ft.OfflineTest(
        log=columns, control=SCORES["control"], treatment=ft.PlackettLuce("treatment_scores", temperature=2.0),
        estimators=LINEAR, cap=2.0, weight_bound=20.0,
    )  # fmt: skip
    first = packed(offline_test(LINEAR, unit=None, identity=None), plain, tmp_path)
    second = packed(other, first, tmp_path, "again")
    assert_same_result(other.run(blind(second)), other.run(plain))


@pytest.mark.parametrize("kind", ["nothing earned", "everything earned", "empty"])
def test_halves_without_rows(log: pa.Table, tmp_path: Path, kind: str) -> None:
    earned = float(kind == "everything earned")
    table = log.slice(0, 0 if kind == "empty" else 200)
    for i, name in enumerate(("click", "revenue")):
        table = table.set_column(i, name, pa.array(np.full(table.num_rows, earned)))
    test = offline_test(LINEAR)
    folder = packed(test, table, tmp_path)
    assert_same_result(test.run(folder), test.run(table))


def test_files_of_several_types(log: pa.Table, tmp_path: Path) -> None:
    """Types of unequal width, a column that one file lacks, text with a dictionary."""
    first, second = log.slice(0, 700), log.slice(700)
    first = first.set_column(2, "user", first["user"].cast(pa.int16()))
    first = first.append_column("note", pa.array(["a"] * 700).dictionary_encode())
    second = second.set_column(0, "click", second["click"].cast(pa.int8()))
    for name, part in (("a", first), ("b", second)):
        pq.write_table(part, tmp_path / f"{name}.parquet")
    logs = [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    test = offline_test(LINEAR)
    folder = packed(test, logs, tmp_path)
    assert_same_result(test.run(folder), test.run(log))
    kept = pq.read_table(Path(folder) / REST)
    assert kept.schema.field("user").type == pa.int64()
    assert set(kept["note"].to_pylist()) == {"a", None}


def test_streams_and_list_views(log: pa.Table, tmp_path: Path) -> None:
    test = offline_test(LINEAR)
    lists = log.set_column(
        log.schema.get_field_index("control_scores"), "control_scores",
        pa.array(log["control_scores"].to_pylist(), pa.list_view(pa.float64())),
    )  # fmt: skip
    folder = packed(test, pa.RecordBatchReader.from_batches(lists.schema, lists.to_batches(200)), tmp_path)
    assert_same_result(test.run(folder), test.run(log))


# -- refused ----------------------------------------------------------------------------------------------------------


def refused(test: ft.OfflineTest, *paths: Any) -> str:
    with pytest.raises(ft.BadInput) as caught:
        test.run([str(path) for path in paths])
    return str(caught.value)


def test_a_part_of_a_packed_log_is_not_taken_for_the_whole(plain: str, tmp_path: Path) -> None:
    test = offline_test(LINEAR)
    folder = Path(packed(test, plain, tmp_path))
    for name in (REST, REWARDED):
        said = f"{folder / name}: one of the two files of a packed log. Give its folder, {folder}."
        assert refused(test, folder / name) == said
        assert refused(test, folder / name, plain) == said
    assert refused(test, folder / BASE) == f"{folder / BASE}: a part of a packed log. Give its folder, {folder}."
    assert "cannot be mixed" in refused(test, *folder.glob("*.parquet"))  # as a shell expands it
    other = Path(packed(test, plain, tmp_path, "other"))
    shutil.copy(other / REST, folder / REST)
    assert "one of the two files" in refused(test, folder)
    shutil.copy(other / REWARDED, folder / REWARDED)
    assert refused(test, folder) == f"{folder}: its files are of two packed logs. Pack the log again."


def test_damaged_and_missing_files(plain: str, tmp_path: Path) -> None:
    test = offline_test(LINEAR)
    folder = Path(packed(test, plain, tmp_path))
    content = {name: (folder / name).read_bytes() for name in (BASE, REST, REWARDED)}
    for name in content:
        (folder / name).write_bytes(content[name][: len(content[name]) // 2])
        said = refused(test, folder)
        assert said.startswith(f"{folder / name}: ")
        (folder / name).write_bytes(content[name])
    for name in (BASE, REWARDED):
        (folder / name).unlink()
        assert str(folder) in refused(test, folder)
        (folder / name).write_bytes(content[name])
    flipped = bytearray(content[BASE])
    flipped[1000] ^= 1
    (folder / BASE).write_bytes(flipped)
    assert "Pack the log again." in refused(test, folder)
    (folder / BASE).write_bytes(content[BASE])
    assert_same_result(test.run(folder), test.run(plain))


def test_another_versions_sums_are_left_alone(plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = offline_test(LINEAR)
    folder = packed(test, plain, tmp_path)
    monkeypatch.setattr("foretest.storage.saved.recipe.READ_LAYOUTS", (99,))
    result = test.run(folder)
    assert_same_result(result, test.run(plain))
    assert result.notes == [f"{folder}: packed, but all rows were read: another version of Foretest packed them."]


def test_a_place_that_is_taken(plain: str, tmp_path: Path) -> None:
    test = offline_test(LINEAR)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine.txt").write_text("keep")
    with pytest.raises(ft.BadInput, match="exists already, and is no packed log"):
        test.pack(plain, taken)
    assert (taken / "mine.txt").read_text() == "keep"
    with pytest.raises(ft.BadInput, match="the log itself is in this folder"):
        test.pack(plain, plain)
    folder = packed(test, plain, tmp_path)
    before = (Path(folder) / BASE).stat().st_ino
    test.pack(plain, folder)  # a packed log gives way to a new one
    assert (Path(folder) / BASE).stat().st_ino != before
    with pytest.raises(ft.BadInput, match="the log itself is in this folder"):
        test.pack(folder, folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet", "packed", "taken"]


def test_what_else_is_in_the_folder_stays(plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what came while the log was packed again, and the mode of the folder and of its files."""
    test = offline_test(LINEAR)
    folder = Path(packed(test, plain, tmp_path))
    (folder / "notes.txt").write_text("mine")
    (folder / "old").mkdir()
    (folder / "old" / "a.txt").write_text("mine")
    folder.chmod(0o750)
    (folder / REST).chmod(0o640)
    before = {name: (folder / name).stat().st_ino for name in (REST, REWARDED, BASE)}
    write = writing.write_aggregates

    def meanwhile(*arguments: Any, **options: Any) -> None:
        (folder / "came.txt").write_text("mine too")
        write(*arguments, **options)

    monkeypatch.setattr(writing, "write_aggregates", meanwhile)
    test.pack(plain, folder)
    assert all((folder / name).stat().st_ino != number for name, number in before.items())
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert names == {REST, REWARDED, BASE, "notes.txt", "came.txt", "old", "old/a.txt"}
    assert (folder / "came.txt").read_text() == "mine too"
    assert folder.stat().st_mode & 0o777 == 0o750
    assert (folder / REST).stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet", "packed"]
    assert_same_result(test.run(str(folder)), test.run(plain))


def test_a_part_that_was_edited_is_not_replaced(plain: str, tmp_path: Path) -> None:
    """Nor one of an earlier version, which has no mark, nor the sums by aggregate."""
    test = offline_test(LINEAR)
    folder = Path(packed(test, plain, tmp_path))
    pq.write_table(pq.read_table(folder / REST), folder / REST)
    before = (folder / REST).read_bytes()
    with pytest.raises(ft.BadInput, match=r"rest\.parquet: already there, and edited since Foretest made it"):
        test.pack(plain, folder)
    with pytest.raises(ft.BadInput, match=r"_packed\.parquet: the file exists already"):
        test.save_aggregates(plain, folder / BASE)
    assert (folder / REST).read_bytes() == before
    test.pack(plain, folder, replace=True)
    assert_same_result(test.run(str(folder)), test.run(plain))


def test_a_bad_row_leaves_nothing(log: pa.Table, tmp_path: Path) -> None:
    clicks = log["click"].to_numpy().copy()
    clicks[1234] = -1.0
    pq.write_table(log.set_column(0, "click", pa.array(clicks)), tmp_path / "bad.parquet")
    with pytest.raises(ft.BadInput, match=r"bad.parquet: column 'click', row 1234 .* the reward is negative"):
        offline_test(LINEAR).pack(str(tmp_path / "bad.parquet"), tmp_path / "packed")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.parquet"]


def test_columns_that_cannot_be_packed(log: pa.Table, tmp_path: Path) -> None:
    test = offline_test(LINEAR)

    def pack_of(*tables: pa.Table) -> str:
        for i, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"{i}.parquet")
        with pytest.raises(ft.BadInput) as caught:
            test.pack([str(tmp_path / f"{i}.parquet") for i in range(len(tables))], tmp_path / "packed")
        return str(caught.value)

    numbered = log.append_column(ROW_NUMBER, pa.array(np.arange(log.num_rows)))
    assert f"the column '{ROW_NUMBER}' has the name of one that packing adds" in pack_of(numbered)
    one, two = (log.append_column("x", pa.array(column)) for column in (["a"] * 1500, [[1]] * 1500))
    assert f"{tmp_path / '1.parquet'}: column 'x' is list<" in pack_of(one, two)
    large, half = (log.append_column("x", pa.array(column)) for column in ([2**60 + 1] * 1500, [0.5] * 1500))
    assert "has values that do not fit in double" in pack_of(large, half)
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_the_command(plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from foretest import cli

    (tmp_path / "test.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["foretest", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0), *capsys.readouterr()

    code, out, _ = said("pack", "log.parquet", "-c", "test.toml", "-o", "packed")
    assert (code, out.splitlines()[0]) == (
        0, "Written: packed. Next: foretest run packed -c test.toml --estimators point-ncis-adaptive",
    )  # fmt: skip
    adaptive = ("-c", "test.toml", "--estimators", "point-ncis-adaptive")
    assert said("run", "packed", *adaptive)[:2] == said("run", "log.parquet", *adaptive)[:2]
    assert said("check", "packed", "-c", "test.toml")[1] == said("check", "log.parquet", "-c", "test.toml")[1]
    assert said("pack", "log.parquet", "-c", "test.toml", "-o", "log.parquet")[0] == 2


def test_a_source_knows_the_place_of_each_row(plain: str, tmp_path: Path) -> None:
    folder = packed(offline_test(LINEAR), plain, tmp_path)
    chunks = [chunk for part in open_source(folder).parts(["click"]) for chunk in part()]
    assert sorted(int(p) for chunk in chunks for p in chunk.positions()) == list(range(1500))
    # the sums beside them are not among the files read
    assert {Path(chunk.source).name for chunk in chunks} == {REST, REWARDED}


KILLED = """
import os, signal, sys
import pyarrow.parquet as pq
from foretest import cli
from foretest.storage.packed import writing

writing.REST_ROWS = 300
left = 3
write_table = pq.ParquetWriter.write_table

def table(self, *args, **options):
    global left
    write_table(self, *args, **options)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

pq.ParquetWriter.write_table = table
sys.argv = ["foretest", *sys.argv[1:]]
cli.main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_and_packed_again(plain: str, tmp_path: Path) -> None:
    """A real process, ended by kill -9 in the middle: nothing that could be taken for a log is left."""
    (tmp_path / "test.toml").write_text(SETTINGS)
    (tmp_path / "killed.py").write_text(KILLED)
    (tmp_path / "logs").mkdir()
    shutil.copy(plain, tmp_path / "logs/log.parquet")
    words = [sys.executable, "killed.py", "pack", "logs/log.parquet", "-c", "test.toml", "-o", "logs/packed"]
    source = Path(ft.__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    killed = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "logs/packed").exists()
    test = ft.OfflineTest.from_toml(tmp_path / "test.toml").replace(estimators=["cis", "point-ncis-adaptive"])
    assert_same_result(test.run(str(tmp_path / "logs")), test.run(plain))
    assert_same_result(test.run(packed(test, plain, tmp_path, "logs/packed")), test.run(plain))


# -- the audit --------------------------------------------------------------------------------------------------------


def audited(features: list[str], temperature: float = 1.0, **analysis: Any) -> ft.OfflineTest:
    return ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=features),
        control=ft.PlackettLuce("control_scores", temperature), treatment=ft.PlackettLuce("treatment_scores", 1.0),
        estimators=["point-ncis-adaptive"], weight_bound=20.0, **{"cap": 2.0, **analysis},
    )  # fmt: skip


def outcomes(result: ft.Result) -> dict[str, str]:
    assert result.audit is not None
    return {finding.name: finding.outcome for finding in result.audit.findings}


def test_a_broken_log_fails_the_same_audit(log: pa.Table, tmp_path: Path) -> None:
    pq.write_table(pa.concat_tables([log, log.slice(0, 60)]), tmp_path / "log.parquet")
    test = audited(["v", "stratum"], temperature=1.6)
    plain, found = (
        test.run(path)
        for path in (str(tmp_path / "log.parquet"), blind(packed(test, str(tmp_path / "log.parquet"), tmp_path)))
    )
    assert found.audit == plain.audit
    assert outcomes(found)["log-likelihood"] == outcomes(found)["repeated rows"] == "fail"
    assert outcomes(found)["balance"] != "not made"
    assert found.metrics["click"].verdict == "insufficient"


def test_the_audit_at_another_cap_is_that_of_the_log(plain: str, tmp_path: Path) -> None:
    """The sample holds draws, not their weights at a cap."""
    folder = blind(packed(audited(["v"]), plain, tmp_path))
    other = audited(["v"], cap=1.5)
    assert other.run(folder).audit == other.run(plain).audit


def test_features_that_the_sample_lacks_are_named(plain: str, tmp_path: Path) -> None:
    folder = blind(packed(audited(["v"]), plain, tmp_path))
    fewer, more = audited([]).run(folder), audited(["v", "stratum"]).run(folder)
    assert fewer.audit == audited([]).run(plain).audit
    assert more.audit is not None
    [balance] = [finding for finding in more.audit.findings if finding.name == "balance"]
    assert balance.meaning == "not made: the saved sample of displays lacks stratum; pack or fold the log again"

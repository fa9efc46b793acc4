"""Every command that reads a log or writes a result, with all of it in a store; and no credential in what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.calibration.file import Calibration
from foretest.cli.options import log_source
from foretest.report.pictures import write_pictures
from tests.commands import exit_code_of
from tests.long_log import long_log, short_log
from tests.stores.server import BUCKET, KEY, SECRET, Store

DISPLAYS = short_log(rows=200)
Run = Callable[..., str]
SETTINGS = """
[log]
rewards = ["click"]
unit = "user"
id = "view"
ranking = "ranking"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = "plackett-luce"
scores = "treatment_scores"
[analysis]
estimators = ["cis", "ncis", "point-ncis-adaptive"]
n_resamples = 20
draws = 32
"""
LONG_SETTINGS = SETTINGS.replace(
    'id = "view"\nranking = "ranking"', 'layout = "long"\ndisplay = "view"\nitem = "sku"\nslot = "place"'
)


@pytest.fixture
def bucket(store: Store) -> str:
    store.put("c/log.parquet", _parquet(DISPLAYS))
    store.put("c/test.toml", SETTINGS.encode())
    return f"s3://{BUCKET}/c"


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs a command that must succeed; what it printed, in which no credential is."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        code = exit_code_of(monkeypatch, *words)
        out, err = capsys.readouterr()
        assert code == 0, err
        assert KEY not in out + err
        assert SECRET not in out + err
        return out

    return run


def _without_origin(document: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if key != "provenance"}


def test_run_reads_and_writes_in_the_store(run: Run, bucket: str, store: Store, tmp_path: Path) -> None:
    printed = run("run", f"{bucket}/log.parquet", "-c", f"{bucket}/test.toml", "-o", f"{bucket}/out")
    assert f"Written: {bucket}/out/result.json, {bucket}/out/report.html" in printed
    keys = store.keys("c/out")
    assert keys == ["c/out/report.html", "c/out/result.json"]
    for key in keys:
        assert KEY.encode() not in store.get(key)
        assert SECRET.encode() not in store.get(key)
    pq.write_table(DISPLAYS, tmp_path / "log.parquet")
    (tmp_path / "test.toml").write_text(SETTINGS)
    local = json.loads(run("run", "log.parquet", "-c", "test.toml", "--json"))
    remote = json.loads(store.get("c/out/result.json"))
    assert _without_origin(remote) == _without_origin(local)
    assert remote["provenance"]["command"] == f"foretest run {bucket}/log.parquet -c {bucket}/test.toml"
    (one,), (other,) = (d["provenance"]["inputs"]["log"]["files"] for d in (remote, local))
    assert one["name"] == other["name"] == "log.parquet"


def test_a_board_of_results_in_the_store(
    run: Run, bucket: str, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found in all folders, linked within the bucket; a damaged object is a sentence, nothing at all a refusal."""
    run("run", f"{bucket}/log.parquet", "-c", f"{bucket}/test.toml", "-o", f"{bucket}/tests/a b/offline")
    store.put("c/tests/broken/result.json", b"{")
    store.put("c/tests/.hidden/result.json", b"{")
    assert exit_code_of(monkeypatch, "board", f"{bucket}/tests/", "-o", f"{bucket}/pages/board.html") == 0
    out, err = capsys.readouterr()
    assert out == f"1 offline result.\n\nWritten: {bucket}/pages/board.html\n"
    assert err == "foretest: broken/result.json: damaged or cut short: it is not JSON after line 1.\n"
    page = store.get("c/pages/board.html").decode()
    assert 'href="./../tests/a%20b/offline/report.html"' in page
    [row] = json.loads(run("board", f"{bucket}/tests", "--json", "-o", "board.html"))["rows"]
    assert row["name"] == "a b/offline"
    assert "report.html" not in Path("board.html").read_text(encoding="utf-8")  # no relative address leads there
    for folder, sentence in (("nowhere", "no such folder"), ("test.toml", "is a file, expected a folder of results")):
        assert exit_code_of(monkeypatch, "board", f"{bucket}/{folder}", "-o", "b.html") == 2
        assert f"{bucket}/{folder}: {sentence}." in capsys.readouterr().err


def test_check_and_plan(run: Run, bucket: str, store: Store) -> None:
    assert "Every row is readable" in run("check", f"{bucket}/*.parquet", "-c", f"{bucket}/test.toml")
    run("plan", f"{bucket}/log.parquet", "-c", f"{bucket}/test.toml", "-o", f"{bucket}/plan")
    assert json.loads(store.get("c/plan/plan.json"))["schema"] == 1


def test_aggregates_are_written_and_read(run: Run, bucket: str, store: Store) -> None:
    for day in (1, 2):
        store.put(f"c/days/{day}.parquet", _parquet(DISPLAYS.slice(100 * (day - 1), 100)))
        run(
            "aggregate",
            f"{bucket}/days/{day}.parquet",
            "-c",
            f"{bucket}/test.toml",
            "-o",
            f"{bucket}/sums/{day}.parquet",
        )
    assert store.keys("c/sums") == ["c/sums/1.parquet", "c/sums/2.parquet"]
    merged = json.loads(run("run", f"{bucket}/sums", "--json"))
    whole = json.loads(run("run", f"{bucket}/days", "-c", f"{bucket}/test.toml", "--json"))
    for key, estimate in whole["metrics"]["click"]["estimates"].items():
        other = merged["metrics"]["click"]["estimates"][key]
        assert other["treatment"] == pytest.approx(estimate["treatment"], rel=1e-9)


def test_a_long_fold_leaves_no_parts_behind(bucket: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several files the sums so far are saved beside the output, and removed when it is complete."""
    from foretest.storage.saved import resume

    monkeypatch.setattr(resume, "FEWEST_ROWS", 1)
    for day in (1, 2):
        store.put(f"c/parts/{day}.parquet", _parquet(DISPLAYS.slice(100 * (day - 1), 100)))
    written: list[str] = []
    whole = resume.write_aggregates
    monkeypatch.setattr(
        resume, "write_aggregates", lambda place, *a, **k: (written.append(str(place)), whole(place, *a, **k))
    )
    test = ft.OfflineTest.from_toml(f"{bucket}/test.toml")
    test.save_aggregates(f"{bucket}/parts", f"{bucket}/summed.parquet")
    assert len(written) == 1
    assert written[0].startswith(f"{bucket}/summed.parquet.parts/")
    assert store.keys("c/summed.parquet.parts") == []


def test_a_packed_log(run: Run, bucket: str, store: Store) -> None:
    for _ in range(2):  # the second time it is replaced
        run("pack", f"{bucket}/log.parquet", "-c", f"{bucket}/test.toml", "-o", f"{bucket}/packed")
    assert store.keys("c/packed") == [f"c/packed/{n}.parquet" for n in ("_packed", "rest", "rewarded")]
    words = ("-c", f"{bucket}/test.toml", "--estimators", "point-ncis-adaptive", "--json")
    packed, plain = (json.loads(run("run", log, *words)) for log in (f"{bucket}/packed", f"{bucket}/log.parquet"))
    one, other = (d["metrics"]["click"]["estimates"]["point-ncis-adaptive"] for d in (packed, plain))
    assert one["treatment"] == pytest.approx(other["treatment"], rel=1e-9)
    assert not any("all rows were read" in note for note in packed["log"].get("notes", []))


def test_init_and_convert(run: Run, bucket: str, store: Store) -> None:
    store.put("c/long.parquet", _parquet(long_log(DISPLAYS)))
    store.put("c/long.toml", LONG_SETTINGS.encode())
    run("convert", "long", f"{bucket}/long.parquet", "-c", f"{bucket}/long.toml", "-o", f"{bucket}/converted")
    assert store.keys("c/converted") == ["c/converted/log.parquet", "c/converted/settings.toml"]
    run("run", f"{bucket}/converted/log.parquet", "-c", f"{bucket}/converted/settings.toml")
    run("init", f"{bucket}/log.parquet", "-o", f"{bucket}/started.toml")
    assert b"plackett-luce" in store.get("c/started.toml")
    header = "item_id,position,click,propensity_score,user-item_affinity_0,user-item_affinity_1,user_feature_0"
    store.put("c/bandit/men.csv", f"{header}\n1,1,0,0.5,0.1,0.2,a\n0,2,1,0.5,0.3,0.1,b\n".encode())
    assert "(2 displays)" in run("convert", "open-bandit", f"{bucket}/bandit", "-o", f"{bucket}/bandit-displays")


@pytest.mark.slow
def test_online_and_history(run: Run, bucket: str, store: Store) -> None:
    """A remote manifest's paths are relative to it; measurements are kept, and reused, in the store."""
    for test in (1, 2):
        rows = short_log(rows=200, seed=test)
        store.put(f"c/tests/{test}/control.parquet", _parquet(rows))
        store.put(f"c/tests/{test}/treatment.parquet", _parquet(_with_other_units(short_log(rows=200, seed=10 + test))))
    store.put("c/tests/manifest.toml", f"""
        settings = "../test.toml"
        truth = "truth.json"
        [[test]]
        name = "one"
        control = "1/control.parquet"
        treatment = "1/treatment.parquet"
        [[test]]
        name = "two"
        control = "{bucket}/tests/2/control.parquet"
        treatment = "2/*treatment.parquet"
    """.encode())  # fmt: skip
    store.put("c/tests/truth.json", b'{"one": {"rel_uplift": 0.1}, "two": {"rel_uplift": 0.0}}')
    arms = [f"{bucket}/tests/1/{arm}.parquet" for arm in ("control", "treatment")]
    run("online", *arms, "-c", f"{bucket}/test.toml", "-o", f"{bucket}/online")
    assert store.keys("c/online") == ["c/online/report.html", "c/online/result.json"]
    words = ("history", f"{bucket}/tests/manifest.toml", "-o", f"{bucket}/history")
    run(*words)
    assert {"c/history/agreement.json", "c/history/report.html"} < set(store.keys("c/history"))
    assert "2 of 2 tests were known already" in run(*words)


def _with_other_units(table: pa.Table) -> pa.Table:
    place = table.schema.get_field_index("user")
    return table.set_column(place, "user", pa.compute.add(table["user"], 1000))


def test_python(bucket: str, store: Store) -> None:
    test = ft.OfflineTest.from_toml(f"{bucket}/test.toml")
    result = test.run([f"{bucket}/log.parquet"])
    result.to_json(f"{bucket}/python/result.json")
    result.to_html(f"{bucket}/python/page.html")
    write_pictures(f"{bucket}/python", {"one": {"description": "one", "mark": "point", "data": {"values": [{"x": 1}]}}})
    pictures = [f"c/python/one.{ending}" for ending in ("png", "svg", "vl.json")]
    assert store.keys("c/python") == [*pictures, "c/python/page.html", "c/python/result.json"]


def test_a_query_reads_no_address(
    bucket: str, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pq.write_table(DISPLAYS, tmp_path / "log.parquet")
    (tmp_path / "test.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    for table in (f"'{bucket}/log.parquet'", f"read_parquet(['{bucket}/log.parquet'])"):
        assert exit_code_of(monkeypatch, "run", "--sql", f"SELECT * FROM {table}", "-c", "test.toml") == 2
        assert capsys.readouterr().err == (
            f"foretest: the SQL query: it reads {bucket}/log.parquet, and a query reads local files only. Give the"
            " address as LOG, or in [log.tables], without a query; or copy the file here.\n"
        )
    # an address that is only compared is no table
    query = "SELECT * FROM 'log.parquet' WHERE view <> 'https://shop.example'"
    assert exit_code_of(monkeypatch, "run", "--sql", query, "-c", "test.toml") == 0


@pytest.mark.parametrize(
    "address",
    [
        f"s3://{KEY}:{SECRET}@shop/c/log.parquet",
        f"s3://{KEY}@shop/c/log.parquet",
        f"s3://shop/c/log.parquet?access_key={KEY}&secret_key={SECRET}",
        f"https://shop.example/log.parquet?X-Amz-Signature={SECRET}",
        f"abfss://box:{SECRET}@account.dfs.core.windows.net/log.parquet",
    ],
)
@pytest.mark.parametrize("place", ["log", "config", "out", "table", "extra"])
def test_a_credential_in_an_address_is_refused_and_not_repeated(
    address: str,
    place: str,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "test.toml").write_text(SETTINGS)
    (tmp_path / "long.toml").write_text(f'{LONG_SETTINGS}[log.tables]\nimpressions = "{address}"\n')
    pq.write_table(DISPLAYS, tmp_path / "log.parquet")
    monkeypatch.chdir(tmp_path)
    words = {
        "log": [address, "-c", "test.toml"],
        "config": ["log.parquet", "-c", address],
        "out": ["log.parquet", "-c", "test.toml", "-o", address],
        "table": ["-c", "long.toml"],
        "extra": ["log.parquet", "-c", "test.toml", "--draws", address],
    }[place]
    assert exit_code_of(monkeypatch, "run", *words) == 2
    out, err = capsys.readouterr()
    assert err.startswith("foretest: ")
    assert KEY not in out + err
    assert SECRET not in out + err


def test_commands_that_write_here_alone(bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(monkeypatch, "simulate", "log", "-o", f"{bucket}/world") == 2
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_stores_and_lakes_is_loaded_at_the_start() -> None:
    names = ("pyarrow.fs", "deltalake", "pyiceberg")
    code = f"import sys, foretest.cli; print([m for m in {names} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_log_to_fit_the_value_model_on_and_a_calibration(bucket: str, store: Store) -> None:
    """What settings name lies beside them, in the store."""
    text = SETTINGS.replace('"ncis", "point-ncis-adaptive"', '"piece-ncis"').replace('id = "view"', 'features = ["v"]')
    store.put("c/valued.toml", f'{text}value_log = "log.parquet"\n'.encode())
    result = ft.OfflineTest.from_toml(f"{bucket}/valued.toml").run(f"{bucket}/log.parquet")
    assert result.settings["analysis"]["value_log"] == f"{bucket}/log.parquet"
    assert result.provenance["inputs"]["value_log"]["count"] == 1
    Calibration({}, {}).to_json(f"{bucket}/calibration.json")
    assert Calibration.read(f"{bucket}/calibration.json").name == f"{bucket}/calibration.json"


def test_spark_is_given_an_address_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foretest.engines.spark.read", lambda paths, sql: (paths, sql))
    given = ["s3a://shop/logs/*.parquet", "hdfs://cluster//a", "./here/"]
    assert log_source("run", given, None, None, "spark") == (
        ["s3a://shop/logs/*.parquet", "hdfs://cluster//a", "here"],
        None,
    )

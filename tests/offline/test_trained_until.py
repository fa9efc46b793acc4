"""`[treatment] trained_until`: a run on a log is a run on its later rows, whatever is fitted and however it is read."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import foretest as ft
from foretest.errors import BadInput
from foretest.planning import plan_log
from foretest.settings.file import read_settings
from tests.support import SmallLog

LOG = SmallLog(rows=900, units=300)
DAY = np.arange(LOG.rows) // 300 + 2  # of March 2024: three days
LATER = np.flatnonzero(DAY > 2)
UNTIL = "2024-03-02"
REST = {  # what runs over all rows and is fitted before the fold
    "control": {"control": ft.PlackettLuce("control_scores", temperature="fit"), "interval": "delta"},
    "cap": {"cap": "auto"},
    "value model": {"estimators": ["piece-ncis"], "columns": {"features": ["v"]}},
    "winsorised": {"metrics": {"revenue": {"winsorise": 0.9}}},
    "examination": {
        "examination": "fit", "estimators": ["exposure-ncis-adaptive"],
        "columns": {"slot_rewards": {"click": "slot_click", "revenue": "slot_revenue"}},
    },
    "loggers": {
        "control": {"a": ft.PlackettLuce("control_scores"), "b": ft.PlackettLuce("control_scores", 0.9)},
        "baseline": "a", "columns": {"logger": "logger"},
    },
    "window": {"window": "1h", "columns": {"time": "time", "reward_age": "age", "read_at": "2024-03-04T18:00"}},
    "thinned": {"columns": {"keep": "keep"}},
    "segments": {"columns": {"segments": ["stratum"]}},
}  # fmt: skip


def table(**extra: Any) -> pa.Table:
    days = np.datetime64("2024-03-01") + (DAY - 1)
    return LOG.table(
        day=days, time=pa.array(days.astype("datetime64[us]") + np.arange(LOG.rows) * np.timedelta64(60, "s")),
        age=np.full(LOG.rows, 30.0), logger=np.where(np.arange(LOG.rows) % 3, "a", "b"),
        keep=np.where(LOG.click > 0.0, 1.0, 0.5), **extra,
    )  # fmt: skip


def build(until: Any = UNTIL, *, columns: dict[str, Any] | None = None, **settings: Any) -> ft.OfflineTest:
    roles: dict[str, Any] = {"rewards": ["click", "revenue"], "unit": "user", "ranking": "ranking", "id": "id"}
    rest: dict[str, Any] = {"control": ft.PlackettLuce("control_scores"), "n_resamples": 50, "r_max": 50.0}
    treatment = ft.PlackettLuce("treatment_scores", trained_until=until)
    return ft.OfflineTest(
        log=ft.LogColumns(**{**roles, "date": "day", **(columns or {})}), treatment=treatment, **{**rest, **settings}
    )


def same(result: ft.Result, wanted: ft.Result) -> None:
    """The numbers of both, without what says which rows were left out."""
    for part in ("metrics", "health", "audit", "control_fit", "winsorised"):
        assert _close(result.to_dict().get(part), wanted.to_dict().get(part)), part
    assert {**result.log, "trained_until": None} == {**wanted.log, "trained_until": None}


BY_DAY = {"days", "heterogeneity"}


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, dict):  # files have no uplifts by day
        keys = a.keys() - BY_DAY
        return keys == b.keys() - BY_DAY and all(_close(a[key], b[key]) for key in keys)
    if isinstance(a, list):
        return len(a) == len(b) and all(_close(*pair) for pair in zip(a, b, strict=True))
    return bool(a == pytest.approx(b, rel=1e-9, abs=1e-12)) if isinstance(a, float) and b is not None else bool(a == b)


@pytest.mark.parametrize("name", list(REST))
def test_whatever_is_fitted_sees_the_later_rows_alone(name: str) -> None:
    result = build(**REST[name]).run(table())
    same(result, build(None, **REST[name]).run(table().take(LATER)))
    assert result.log["trained_until"] == {"day": UNTIL, "left_out": 300}
    assert "300 rows up to 2024-03-02 were left out: the treatment was trained until then." in result.notes


@pytest.mark.parametrize("estimators", [["cis", "point-ncis"], ["ncis"]])
def test_a_packed_log_is_read_whole(estimators: list[str], tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "log.parquet")
    for until in (None, UNTIL):
        build(until).pack(tmp_path / "log.parquet", tmp_path / "packed")
        same(build(estimators=estimators).run(tmp_path / "packed"), build(estimators=estimators).run(table()))


def test_a_long_log() -> None:
    rows = [
        {"id": i, "day": f"2024-03-0{DAY[i]}", "item": j, "slot": slot, "click": float(LOG.click[i] * (slot == 1)),
         "control_scores": LOG.control[i, j], "treatment_scores": LOG.treatment[i, j], "user": int(LOG.unit[i])}
        for i in range(LOG.rows) for j in range(LOG.m)
        for slot in [dict(zip(LOG.rankings[LOG.shown[i]].tolist(), (1, 2), strict=True)).get(j)]
    ]  # fmt: skip

    def offline(until: str | None) -> ft.OfflineTest:
        long = {"layout": "long", "display": "id", "item": "item", "slot": "slot", "rewards": ["click"], "id": None}
        return build(until, columns={**long, "ranking": None}, estimators=["ncis"], r_max=None)

    later = [row for row in rows if row["day"] > UNTIL]
    same(offline(UNTIL).run(pa.Table.from_pylist(rows)), offline(None).run(pa.Table.from_pylist(later)))


def test_the_latest_day_of_all_treatments_counts_for_all() -> None:
    def offline(*until: str | None) -> ft.OfflineTest:
        names = ("a", "b")
        treatments = {
            name: ft.PlackettLuce("treatment_scores", temperature, trained_until=day)
            for name, day, temperature in zip(names, until, (1.0, 2.0), strict=True)
        }
        return ft.OfflineTest(
            log=ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", date="day"),
            control=ft.PlackettLuce("control_scores"), treatment=treatments, estimators=["ncis"], n_resamples=50,
        )  # fmt: skip

    result = offline("2024-03-01", UNTIL).run(table())
    same(result, offline(None, None).run(table().take(LATER)))
    assert result.log["trained_until"] == {"day": UNTIL, "left_out": 300}
    assert any("a treatment was trained until then" in note for note in result.notes)


def test_a_check_a_plan_and_the_day_by_time() -> None:
    checked = build().check(table())
    assert checked.log["rows"] == 600
    assert checked.log["trained_until"]["left_out"] == 300
    assert plan_log(build(), table()).to_dict()["log"]["rows"] == 600
    by_time = build(columns={"date": None, "time": "time"}, estimators=["ncis"]).run(table())
    assert by_time.log["rows"] == 600


@pytest.mark.parametrize(
    "days", [DAY + 20240300, [f"2024-03-0{day}" for day in DAY], [f"2024-03-0{d} 11:00" for d in DAY]]
)
def test_days_of_other_types(days: Any) -> None:
    log = LOG.table(day=days)
    assert build(datetime.date(2024, 3, 2), estimators=["ncis"]).run(log).log["rows"] == 600


def test_sums_of_days_add_up_also_of_those_before(tmp_path: Path) -> None:
    offline = build(estimators=["ncis"])
    for day in (2, 3, 4):
        offline.save_aggregates(table().take(np.flatnonzero(day == DAY)), tmp_path / f"{day}.parquet")
    files = [str(tmp_path / f"{day}.parquet") for day in (2, 3, 4)]
    same(offline.run(files), offline.run(table()))
    recorded = ft.OfflineTest.from_aggregates(files).run(files)
    assert recorded.log["trained_until"] == {"day": UNTIL, "left_out": 300}
    with pytest.raises(BadInput, match="trained_until"):
        build("2024-03-03", estimators=["ncis"]).run(files)


@pytest.mark.parametrize(("until", "columns", "message"), [
    ("2024-03-09", {}, "trained_until = 2024-03-09 leaves out all 900 rows"),
    (UNTIL, {"date": None}, r"no column says of which day a row is: name one in \[log\] date \(or time\)"),
    ("March", {}, "trained_until = 'March': expected a day, as in trained_until = 2024-03-03"),
    (datetime.datetime(2024, 3, 2, 4), {}, "expected a day"),
    (UNTIL, {"date": "stratum"}, "the day '[012]' is no date as 2024-03-03"),
    (UNTIL, {"date": "v"}, "expected a date, timestamp, string or integer column"),
])  # fmt: skip
def test_what_is_refused(until: Any, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        build(until, columns=columns, estimators=["ncis"]).run(table())


def test_a_null_day_is_refused() -> None:
    days = pa.array([None if i == 7 else f"2024-03-0{day}" for i, day in enumerate(DAY)])
    with pytest.raises(BadInput, match="the day is null; no other row"):
        build(estimators=["ncis"]).run(LOG.table(day=days))


def test_it_is_for_treatments() -> None:
    control = ft.PlackettLuce("control_scores", trained_until=UNTIL)
    with pytest.raises(BadInput, match=r"trained_until is a key of \[treatment\]"):
        build(control=control)
    with pytest.raises(BadInput, match=r"trained_until is a key of \[treatment\]"):
        build(control=ft.Mixture([(1, control)]))


FILE = """
[log]
rewards = ["click"]
unit = "user"
ranking = "ranking"
date = "day"
[control]
policy = "plackett-luce"
scores = "control_scores"
[treatment]
policy = {policy}
scores = "treatment_scores"
trained_until = 2024-03-02
"""


@pytest.mark.parametrize(("policy", "columns"), [
    ('"plackett-luce"', None), ('"own_module:Own"', None), ('"own_module:Knows"', "2024-03-02"),
])  # fmt: skip
def test_a_settings_file(policy: str, columns: str | None, tmp_path: Path) -> None:
    """An own class whose signature has the key gets it; of any other it is Foretest's."""
    (tmp_path / "own_module.py").write_text(
        "import foretest as ft\n"
        "class Own(ft.PlackettLuce):\n    def __init__(self, scores):\n        super().__init__(scores)\n"
        "class Knows:\n    def __init__(self, scores, trained_until):\n"
        "        self.inner, self.seen = ft.PlackettLuce(scores), str(trained_until)\n"
        "    columns = score_columns = ('treatment_scores',)\n"
        "    def log_prob(self, displays, rankings): return self.inner.log_prob(displays, rankings)\n"
        "    def sample(self, displays, uniforms): return self.inner.sample(displays, uniforms)\n"
    )
    (tmp_path / "test.toml").write_text(FILE.format(policy=policy))
    settings = read_settings(tmp_path / "test.toml")
    assert settings.trained_until == (UNTIL if columns is None else None)
    assert getattr(settings.treatment, "seen", None) == columns
    assert settings.treatment.settings().get("trained_until") == (UNTIL if columns is None else None)


def test_online_it_is_ignored() -> None:
    online = ft.OnlineTest.from_settings(build().settings)
    arms = [table().set_column(2, "user", pa.array(LOG.unit + shift)) for shift in (0, 1000)]
    assert online.run(*arms).to_dict()["log"]["rows"] == LOG.rows

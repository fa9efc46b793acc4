"""A control that was changed in the middle of a log: seen by day, with the date, and right once both are described."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.diagnostics.audit.redeployed import NAME, days_in_order, likelihood_by_day

ROWS, DAYS = 6000, 10
RNG = np.random.default_rng(4)
DAY = np.sort(RNG.integers(0, DAYS, ROWS))
DATE = np.datetime64("2026-03-01") + DAY
SCORES = RNG.normal(size=(ROWS, 6))
LATER = DAY >= 6


def shown(temperature: Any) -> np.ndarray:
    noise = RNG.gumbel(size=SCORES.shape)
    return np.argsort(-(SCORES / np.asarray(temperature).reshape(-1, 1) + noise), axis=1)[:, :2]


def table(ranking: np.ndarray, **columns: Any) -> pa.Table:
    treatment = SCORES + RNG.normal(size=SCORES.shape)
    plain = {
        "click": (RNG.random(ROWS) < 0.1).astype(float), "user": RNG.integers(0, 3000, ROWS), "c": list(SCORES),
        "t": list(treatment), "ranking": list(ranking), "day": DATE,
    }  # fmt: skip
    return pa.table(plain | columns)


def findings(log: pa.Table, control: Any = None, **roles: Any) -> dict[str, Any]:
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", **({"date": "day"} | roles))
    test = ft.OfflineTest(log=columns, control=control or ft.PlackettLuce("c"), treatment=ft.PlackettLuce("t", 1.0))
    audit = test.check(log, threads=1).audit
    assert audit is not None
    return {f.name: f for f in audit.findings}


def test_a_control_that_was_changed_fails_with_the_date_where_its_fit_passes_the_rest() -> None:
    log = table(shown(np.where(LATER, 1.25, 0.8)))
    fitted = findings(log, ft.PlackettLuce("c", "fit"))
    assert fitted["log-likelihood"].outcome == "pass"
    assert fitted[NAME].outcome == "fail"
    assert fitted[NAME].meaning.startswith("from 2026-03-07 on what was shown is less likely than before;")
    assert "The control was probably changed on 2026-03-07" in fitted[NAME].remedy
    assert "[log] logger" in fitted[NAME].remedy
    # either part alone is right, and so are both as loggers
    after = findings(log.filter(pa.array(LATER)), ft.PlackettLuce("c", 1.25))
    assert after[NAME].outcome == after["log-likelihood"].outcome == "pass"
    loggers = {"old": ft.PlackettLuce("c", 0.8), "new": ft.PlackettLuce("c", 1.25)}
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", logger="version")
    test = ft.OfflineTest(log=columns, control=loggers, treatment=ft.PlackettLuce("t", 1.0), baseline="new")
    both = test.check(log.append_column("version", pa.array(np.where(LATER, "new", "old"))), threads=1).audit
    assert both is not None
    assert both.outcome == "pass"


def test_times_give_the_day_and_logs_without_either_are_not_asked() -> None:
    time = DATE.astype("datetime64[s]") + RNG.integers(0, 86_400, ROWS)
    log = table(shown(np.where(LATER, 1.25, 0.8)), at=time)
    assert "changed on 2026-03-07" in findings(log, ft.PlackettLuce("c", "fit"), date=None, time="at")[NAME].remedy
    assert NAME not in findings(log, date=None)


def test_the_right_control_passes() -> None:
    finding = findings(table(shown(1.0)))[NAME]
    assert finding.outcome == "pass"
    assert finding.meaning == "what was shown is as likely before every day as from it on (of 9 days)"


def test_right_logs_fail_as_rarely_as_they_should() -> None:
    """The search over days is paid for: p is not smaller than uniform, over units whose rows are alike."""
    values = []
    for seed in range(400):
        rng = np.random.default_rng([7, seed])
        unit = np.sort(rng.integers(0, 400, 1200)).astype(np.uint64)
        apart = rng.exponential(size=400)[unit.astype(int)] - 1.0 + 0.3 * rng.normal(size=1200)
        day = rng.integers(0, 20, 1200)
        finding = likelihood_by_day(apart, unit, [str(k) for k in range(20)], day)
        assert finding is not None
        values.append(finding.p_value)
    assert np.mean(np.array(values) < 0.05) < 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / 400)
    assert np.mean(np.array(values) < 0.001) < 0.01


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["2026-03-10", "2026-03-09", "2026-02-28"], ["2026-02-28", "2026-03-09", "2026-03-10"]),
        (["10", "9", "-1"], ["-1", "9", "10"]),
        (["Monday", "Friday", "Sunday"], []),
    ],
)
def test_days_are_in_their_order_or_none(names: list[str], ordered: list[str]) -> None:
    column = np.array([list(name.encode().ljust(24, b"\0")) for name in names], np.uint8).view(np.uint64)
    days, day = days_in_order(column)
    assert days == ordered
    if ordered:
        assert [days[i] for i in day] == names
    assert likelihood_by_day(np.zeros(3), np.arange(3).astype(np.uint64), ["1", "2", "3"], np.arange(3)) is None

"""Rows of another policy in a log: the remedy says so before any temperature, and cures it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.diagnostics.audit.other_policy import other_rows
from foretest.special import gammaln

ROWS, ITEMS, SLOTS = 5000, 10, 3
RNG = np.random.default_rng(11)
SCORES = RNG.normal(size=(ROWS, ITEMS))
COUNTRY = RNG.choice(["DE", "FR", "IT"], ROWS, p=[0.6, 0.35, 0.05])
RANDOM = RNG.random(ROWS) < 0.03


def shown(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-(scores + RNG.gumbel(size=scores.shape)), axis=1)[:, :SLOTS]


def log_of(some: np.ndarray, temperature: float = 0.4) -> pa.Table:
    """Some rows at random, the others at a temperature."""
    return pa.table({
        "click": (RNG.random(ROWS) < 0.1).astype(float), "user": RNG.integers(0, 2500, ROWS), "id": np.arange(ROWS),
        "p": list(SCORES), "t": list(SCORES + 0.5 * RNG.normal(size=SCORES.shape)), "country": COUNTRY,
        "ranking": list(shown(np.where(some[:, None], 0.0, SCORES / temperature))),
    })  # fmt: skip


def findings(log: pa.Table, control: Any = None) -> tuple[str, dict[str, Any]]:
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id", features=["country"])
    control = control or ft.PlackettLuce("p", 0.4)
    audit = (
        ft.OfflineTest(log=columns, control=control, treatment=ft.PlackettLuce("t", 0.4)).check(log, threads=1).audit
    )
    assert audit is not None
    return audit.outcome, {f.name: f for f in audit.findings}


def test_a_share_of_random_rows_is_named_before_a_temperature() -> None:
    log = log_of(RANDOM)
    outcome, by_name = findings(log)
    remedy = by_name["log-likelihood"].remedy
    assert outcome == "fail"
    assert remedy.startswith("About ")
    share = float(remedy.removeprefix("About ").split(" %")[0]) / 100.0
    assert share == pytest.approx(RANDOM.mean(), abs=0.008)
    names = [int(name) for name in remedy.split("first ids ")[1].split(")")[0].split(", ")]
    assert RANDOM[names].mean() >= 2 / 3
    assert "temperature" not in remedy
    # what is said cures it
    mixture = ft.Mixture([(0.97, ft.PlackettLuce("p", 0.4)), (0.03, ft.EpsilonGreedy("p", 1.0))])
    assert findings(log, mixture)[0] == "pass"


def test_the_remedy_names_the_value_that_marks_the_rows_also_where_a_temperature_was_fitted() -> None:
    log = log_of(COUNTRY == "IT")
    assert "nearly all where country = 'IT')" in findings(log)[1]["log-likelihood"].remedy
    _, fitted = findings(log, ft.PlackettLuce("p", "fit"))
    first = next(f for f in fitted.values() if f.outcome == "fail")
    assert first.remedy.startswith("About ")
    assert "come from another policy" in first.remedy


@pytest.mark.parametrize("temperature", [0.3, 0.44, 0.6, 1.0])
def test_a_wrong_temperature_is_still_called_one(temperature: float) -> None:
    _, by_name = findings(log_of(np.zeros(ROWS, bool), temperature))
    assert "another policy" not in " ".join(f.remedy or "" for f in by_name.values())
    assert by_name["log-likelihood"].remedy.startswith("The log looks as if drawn at temperature ")


def test_the_share_is_the_most_likely_one() -> None:
    """A share of rows with a uniform ranking of 720, the others certain or of a probability that differs by row."""
    rng = np.random.default_rng(3)
    rankings = np.full(20_000, gammaln(11.0) - gammaln(8.0))
    likely = rng.random(20_000)
    log_p = np.where(rng.random(20_000) < 0.1, -30.0, np.log(likely))
    other = other_rows(log_p, rankings)
    assert other is not None
    grid = np.linspace(0.05, 0.15, 101)
    total = [np.logaddexp(np.log1p(-e) + log_p, np.log(e) - rankings).sum() for e in grid]
    assert other.share == pytest.approx(grid[int(np.argmax(total))], abs=0.001)
    assert (other.rows == (log_p == -30.0)).mean() > 0.99
    assert other_rows(np.log(likely), rankings) is None
    assert other_rows(np.where(likely < 0.1, -np.inf, -0.5), rankings) is not None
    assert other_rows(np.where(likely < 0.6, -np.inf, -0.5), rankings) is None  # most rows: the control is wrong
    assert other_rows(log_p, rankings, gain_of_number=2.0) is None
    assert other_rows(log_p, np.full(20_000, np.nan)) is None

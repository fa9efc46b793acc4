"""The share of reward by age: Kaplan and Meier by hand, how much is still to come, and the window that is proposed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.aggregation.age_sums import EDGES, age_bins
from foretest.diagnostics.late_rewards import age_curve


def kaplan_meier(age: np.ndarray, has_reward: np.ndarray, at: np.ndarray) -> np.ndarray:
    """1 − S at some ages, one event at a time, in plain NumPy."""
    survival, shares = 1.0, []
    order = np.argsort(age)
    age, has_reward = age[order], has_reward[order]
    times = np.unique(age[has_reward])
    steps = {}
    for t in times:
        survival *= 1.0 - np.sum((age == t) & has_reward) / np.sum(age >= t)
        steps[t] = survival
    for t in at:
        before = [s for when, s in steps.items() if when <= t]
        shares.append(1.0 - (before[-1] if before else 1.0))
    return np.array(shares)


def test_the_curve_is_that_of_kaplan_and_meier() -> None:
    # ages at the upper ends of bins, so that binning loses nothing
    rng = np.random.default_rng(2)
    rows = 900
    own = EDGES[rng.integers(80, 150, rows)]
    reward = EDGES[np.minimum(rng.geometric(0.03, rows) + 70, 200)]
    has_reward = (rng.random(rows) < 0.4) & (reward <= own)
    seen = np.where(has_reward, reward, own)
    bins = age_bins((seen * 1e6).astype(np.int64))
    rewarded, waiting = (
        np.bincount(bins[which], minlength=len(EDGES) + 1).astype(float) for which in (has_reward, ~has_reward)
    )
    curve = age_curve(rewarded, waiting)
    assert curve is not None
    expected = kaplan_meier(seen, has_reward, curve.ages)
    assert curve.share == pytest.approx(expected / expected[-1], abs=1e-12)
    # what each display without a reward is expected to earn later, from its own age to the horizon
    horizon = expected[-1]
    within = ~has_reward & (seen <= curve.horizon)
    mine = kaplan_meier(seen, has_reward, seen[within])
    later = ((horizon - mine) / (1.0 - mine)).sum()
    come = (has_reward & (seen <= curve.horizon)).sum()
    assert curve.still_to_come == pytest.approx(later / (come + later), rel=1e-9)
    assert curve.displays[0] == np.sum(seen >= curve.ages[0])


def test_a_curve_ends_where_too_few_displays_are_as_old() -> None:
    rewarded, waiting = np.zeros(len(EDGES) + 1), np.zeros(len(EDGES) + 1)
    rewarded[100], waiting[120], waiting[200] = 100.0, 800.0, 100.0
    curve = age_curve(rewarded, waiting)  # 10 rewards are expected of the 100 oldest
    assert curve is not None
    assert curve.horizon == EDGES[120]
    rewarded[100] = 49.0
    assert age_curve(rewarded, waiting) is None


def test_displays_that_all_earned_leave_nothing_to_come() -> None:
    rewarded, waiting = np.zeros(len(EDGES) + 1), np.zeros(len(EDGES) + 1)
    rewarded[50], rewarded[60], rewarded[61] = 100.0, 100.0, 30.0
    curve = age_curve(rewarded, waiting)
    assert curve is not None
    assert curve.still_to_come == 0.0
    assert curve.share[-1] == 1.0


def test_what_is_still_to_come_is_found_and_said() -> None:
    """Rewards come after an exponential time of a day, displays are evenly spread over ten: 10 % are still to come."""
    rng = np.random.default_rng(0)
    rows, day = 20_000, 86_400.0
    own, age = rng.random(rows) * 10 * day, rng.exponential(day, rows)
    click = (rng.random(rows) < 0.1) & (age <= own)
    read = np.datetime64("2026-03-11", "us")
    log = pa.table({
        "click": click.astype(float), "ts": read - (own * 1e6).astype("timedelta64[us]"),
        "age": pa.array(age, mask=~click), "p": np.full(rows, 0.5),
    })  # fmt: skip
    columns = {"rewards": ["click"], "time": "ts", "reward_age": "age", "read_at": "2026-03-11"}
    rest = {"control": ft.Logged(prob="p"), "treatment": ft.Logged(prob="p"), "estimators": ["ncis"], "n_resamples": 10}
    result = ft.OfflineTest(log=ft.LogColumns(**columns), **rest).run(log)
    assert result.late_rewards is not None
    curve = result.late_rewards["ages"]["click"]
    # 1 900 clicks: the share has a standard error of about .007
    assert curve["still_to_come"] == pytest.approx(0.1, abs=0.02)
    at_three_days = curve["share"][int(np.searchsorted(curve["age"], 3 * day)) - 1]
    assert at_three_days == pytest.approx(1.0 - np.exp(-3.0), abs=0.03)
    assert curve["window"] in ("3d", "5d")
    [note] = [note for note in result.notes if "is still to come" in note]
    assert note.startswith(f"about {round(100 * curve['still_to_come'])} % of the reward 'click' of these displays")
    assert f'set [analysis] window = "{curve["window"]}", by which 95 % of it has come.' in note
    old = ft.OfflineTest(log=ft.LogColumns(**{**columns, "read_at": "2026-12-31"}), **rest).run(log)
    assert old.late_rewards is not None
    assert old.late_rewards["ages"]["click"]["still_to_come"] < 0.01
    assert "still to come" not in " ".join(old.notes)

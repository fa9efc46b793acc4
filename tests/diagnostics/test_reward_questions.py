"""Questions about rewards: the counts against plain NumPy, and when nothing is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.diagnostics.reward_questions import CONSTANT_IN_UNITS, EVERY_ROW, ONE_SLOT, constant_in_units

ROWS = 3000


def kinds_of(click: np.ndarray, user: Any = None, slots: Any = None) -> list[str]:
    """The questions of a log of two slots with these rewards."""
    rng = np.random.default_rng(9)
    rows = len(click)
    control = rng.normal(size=(rows, 5))
    shown = np.argsort(-(control + rng.gumbel(size=control.shape)), axis=1)[:, :2]
    columns = {
        "click": click, "who": np.arange(rows) if user is None else user, "ranking": pa.array(list(shown)),
        "c": pa.array(list(control)), "t": pa.array(list(control + 0.3 * rng.normal(size=control.shape))),
    }  # fmt: skip
    if slots is not None:
        columns["slots"] = pa.array(list(slots))
    log = ft.LogColumns(
        rewards=["click"], unit="who", ranking="ranking", slot_rewards=None if slots is None else {"click": "slots"}
    )
    test = ft.OfflineTest(log=log, control=ft.PlackettLuce("c"), treatment=ft.PlackettLuce("t"))
    return list(test.check(pa.table(columns), threads=1).health["questions"])


def test_units_are_counted_as_they_are() -> None:
    rng = np.random.default_rng(0)
    unit = np.sort(rng.integers(0, 400, 1000)).astype(np.uint64)
    rewards = rng.choice([0.0, 1.0, 2.0], size=1000, p=[0.6, 0.3, 0.1])
    rewarded = constant = 0
    for u in np.unique(unit):
        r = rewards[unit == u]
        if len(r) > 1 and r.max() > 0:
            rewarded += 1
            constant += r.min() == r.max()
    found = constant_in_units(unit, rewards)
    assert (found.rewarded, found.constant) == (rewarded, constant)
    # dealt at random many times, as many units are constant as `by_chance` says
    dealt = [constant_in_units(unit, rng.permutation(rewards)) for _ in range(300)]
    shares = np.array([d.constant / d.rewarded for d in dealt])
    assert found.by_chance == pytest.approx(shares.mean(), abs=4 * shares.std() / np.sqrt(300) + 0.003)


def test_a_total_joined_to_every_display_is_questioned() -> None:
    rng = np.random.default_rng(1)
    user = rng.integers(0, 1000, ROWS)
    click = (rng.random(ROWS) < 0.05).astype(float)
    total = np.bincount(user, click, minlength=1000)[user]
    assert kinds_of(click, user) == []
    assert kinds_of(total, user) == [CONSTANT_IN_UNITS]
    assert kinds_of(total, np.arange(ROWS)) == []  # no unit has two rows
    assert kinds_of((rng.random(ROWS) < 0.9).astype(float), user) == []  # constant by chance


def test_one_slot_that_earns_everything_is_questioned() -> None:
    rng = np.random.default_rng(2)
    click = (rng.random(ROWS) < 0.1).astype(float)
    second = np.column_stack([np.zeros(ROWS), click])
    first_mostly = np.where(rng.random(ROWS)[:, None] < 0.9, second[:, ::-1], second)
    assert kinds_of(click, slots=second) == [ONE_SLOT]
    assert kinds_of(click, slots=first_mostly) == []
    few = np.where(np.cumsum(click) <= 50, click, 0.0)
    assert kinds_of(few, slots=np.column_stack([few, np.zeros(ROWS)])) == []


@pytest.mark.parametrize(
    ("rewards", "asked"),
    [
        (np.ones(ROWS), True),  # clicked rows only
        (np.where(np.arange(ROWS) % 10 == 0, 2.0, 1.0), True),  # counts
        (1.0 + np.arange(ROWS) % 5, False),  # ratings
        (np.random.default_rng(3).exponential(size=ROWS) + 0.1, False),  # minutes
        (np.where(np.arange(ROWS) == 7, 0.0, 1.0), False),  # a row without
    ],
)
def test_rewards_in_every_row(rewards: np.ndarray, asked: bool) -> None:
    assert kinds_of(rewards) == ([EVERY_ROW] if asked else [])

"""Displays per unit of both arms: the test by ranks, what is said where they differ, thinned logs, samples of units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import mannwhitneyu

import foretest as ft
from foretest.displays.merging import merged
from foretest.online import unit_days
from foretest.online.displays_per_unit import rank_p_value
from foretest.online.unit_days import DisplaysOfUnits, UnitDays
from foretest.report.result_page import result_page
from tests.online.support import SCHEMA, answer, online
from tests.schemas import validate


def units(displays: Any) -> DisplaysOfUnits:
    return DisplaysOfUnits(np.asarray(displays, np.float64), np.ones(len(displays)))


def shown(seed: int, mean: float, first: int, users: int = 2000, **more: Any) -> pa.Table:
    """Displays of users of unequal activity, .4 clicks a user on average however many displays they have."""
    g = np.random.default_rng(seed)
    size = 1 + g.poisson((mean - 1.0) * g.gamma(1.0, size=users))
    user = np.repeat(np.arange(users), size)
    click = g.random(len(user)) < 0.4 / size[user]
    columns = {name: values(user) for name, values in more.items()}
    return pa.table({"user": first + user, "click": click.astype(float), **columns})


def test_the_p_value_is_that_of_ranks() -> None:
    g = np.random.default_rng(3)
    control, treatment = g.geometric(0.4, 300), g.geometric(0.33, 170)
    expected = mannwhitneyu(control, treatment, method="asymptotic", use_continuity=False).pvalue
    assert rank_p_value(units(control), units(treatment)) == pytest.approx(expected, rel=1e-9)
    assert rank_p_value(units(np.ones(50)), units(np.ones(40))) is None


def test_a_log_that_was_thinned_evenly_is_as_one_that_was_not() -> None:
    """With m = 2 everywhere as with m = 1."""
    g = np.random.default_rng(4)
    control, treatment = g.geometric(0.4, 200).astype(float), g.geometric(0.3, 150).astype(float)
    plain = rank_p_value(units(control), units(treatment))
    twice = rank_p_value(DisplaysOfUnits(control, np.full(200, 2.0)), DisplaysOfUnits(treatment, np.full(150, 2.0)))
    assert twice == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize(("users", "small"), [(300, 0.5), (600, 0.1)])
def test_right_tests_rarely_differ(users: int, small: float) -> None:
    """p < .001 in about .001 of tests without any difference, also with the tails of a Pareto distribution and where
    one arm is small; of 3 000 at most 9 (with a rate of .001: 3 expected, 10 or more in .1 % of such series)."""
    g = np.random.default_rng(11)
    first = int(users * (1.0 - small))
    alarms = 0
    for _ in range(3000):
        displays = np.ceil(g.pareto(1.2, users) + 1.0)
        p = rank_p_value(units(displays[:first]), units(displays[first:]))
        alarms += p is not None and p < 0.001
    assert alarms <= 9


def test_more_displays_make_a_reward_per_display_lean() -> None:
    """40 % more displays and as many clicks per user."""
    logs = shown(1, 5.0, 0), shown(2, 7.0, 10_000)
    result = online().run(*logs)
    estimate = answer(result)
    assert estimate.verdict == "negative"  # by noise alone
    assert estimate.word == "leans negative"
    check = result.health["displays_per_unit"]
    assert check["alert"]
    assert check["means"] == pytest.approx([len(log) / 2000 for log in logs])
    validate(result.to_dict(), SCHEMA)

    text = str(result)
    assert text.startswith("The arms differ in displays per user (p < 0.0001)")
    assert '[metrics.click_per_user] with per = "unit" and of = "click"' in " ".join(text.split())
    assert "leans negative" in text
    assert result.to_markdown().startswith("**The arms differ in displays per user")
    page = result_page(result)
    assert "The arms differ in displays per user" in page
    assert "Leans negative: clicks changed by" in page

    named = online(metrics={"clicks": {"per": "unit", "of": "click"}}).run(*logs)
    assert named.metrics["clicks"].estimates["online"].word == "neutral"
    assert "by what is per user: clicks." in " ".join(str(named).split())


def test_arms_that_are_alike_are_as_they_were() -> None:
    result = online().run(shown(1, 5.0, 0), shown(2, 5.0, 10_000))
    assert result.health["displays_per_unit"]["alert"] is False
    assert answer(result).word == answer(result).verdict
    assert "displays per user" not in str(result)
    rows = online(unit=None).run(shown(1, 5.0, 0), shown(2, 7.0, 10_000))
    assert "displays_per_unit" not in rows.health


def test_of_a_sample_of_units_the_displays_are_all_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, units of smallest hash: their displays are those of the whole log, also by batches and days."""
    monkeypatch.setattr(unit_days, "LIMIT", 100)
    g = np.random.default_rng(5)
    hashes = (g.integers(0, 2**62, 400).astype(np.uint64) * np.uint64(3))[g.integers(0, 400, 5000)]
    counts = dict(zip(*np.unique(hashes, return_counts=True), strict=True))
    for days in (None, g.integers(0, 3, 5000)):
        counted = UnitDays([] if days is None else ["a", "b", "c"])
        for rows in np.array_split(np.arange(5000), 7):
            part = UnitDays([] if days is None else ["a", "b", "c"])
            part.add(hashes[rows], None if days is None else days[rows], np.ones(len(rows)))
            counted = merged([counted, part])
        sample = counted.displays(counted.highest)
        assert sample is not None
        assert len(sample.displays) <= 100
        assert sample.displays.tolist() == [counts[one] for one in counted.units(counted.highest)]


def test_of_a_thinned_log_it_is_known_where_a_unit_has_one_keep() -> None:
    def by_user(user: Any) -> Any:
        return np.where(user % 2, 0.5, 1.0)

    def by_row(user: Any) -> Any:
        return np.where(np.arange(len(user)) % 2, 0.5, 1.0)

    def run(keep: Any) -> ft.Result:
        log = ft.LogColumns(rewards=["click"], unit="user", keep="keep")
        return ft.OnlineTest(log=log).run(shown(1, 5.0, 0, keep=keep), shown(2, 7.0, 10_000, keep=keep))

    by_unit = run(by_user)
    assert by_unit.health["displays_per_unit"]["alert"]
    assert "which needs logs with all rows" in " ".join(str(by_unit).split())
    several = run(by_row)
    check = several.health["displays_per_unit"]
    assert (check["means"], check["p_value"], check["alert"]) == ([None, None], None, False)
    assert "was not tested: rows of one unit were kept with different" in check["obstacle"]
    assert check["obstacle"] in several.notes
    assert answer(several).word == answer(several).verdict
    validate(several.to_dict(), SCHEMA)

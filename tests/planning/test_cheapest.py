"""The cheapest exploration: the search against plain evaluation of every number, and what is recommended of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import foretest as ft
from foretest.planning import cheapest, cheapest_plan
from foretest.planning.cheapest import Candidate, Cheapest, LevelAnswer, cheapest_of, needed, round_numbers
from foretest.planning.cost import UNKNOWN, Cost
from foretest.planning.explored import Explorer
from foretest.planning.exploring_policies import SEARCHED_SWAPS, Way
from foretest.planning.levels import LevelOutlook, SmallestUplift
from foretest.planning.smallest_uplift import NEVER_VARIES
from tests.support import SCORES, SmallLog

LOG = SmallLog(rows=600, units=600, m=5, k=2, spread=3.0, seed=22)
DAYS = np.arange(LOG.rows) % 5
UPLIFT = 0.08


def dated(**rest: Any) -> ft.OfflineTest:
    columns = ft.LogColumns(
        rewards=["click"], unit="user", ranking="ranking", id="id", date="day", slot_rewards={"click": "slot_click"}
    )
    return ft.OfflineTest(log=columns, **{**SCORES, **rest}, examination=[1.0, 0.6])


@pytest.fixture(scope="module")
def searched() -> tuple[dict[str, Any], Explorer, list[Way]]:
    """A searched plan, with the explorer and the ways that it used."""
    seen: dict[str, Any] = {}
    found = cheapest.find_cheapest

    def watched(explorer: Explorer, plan: Any, uplift: float) -> Cheapest:
        seen["explorer"] = explorer
        seen["ways"] = cheapest.ways_to_explore(plan, explorer.sample.displays)
        return found(explorer, plan, uplift)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cheapest_plan, "find_cheapest", watched)
        document = ft.plan_log(dated(), LOG.table(day=DAYS), uplift=UPLIFT, days=20).to_dict()
    return document, seen["explorer"], seen["ways"]


def total(explorer: Explorer, way: Way, value: float, level: str) -> float:
    policy = way.at(value).policy
    assert policy is not None
    return explorer.look_at(level, policy).total


@pytest.mark.slow
def test_the_least_number_that_shows_the_uplift(searched: tuple[dict[str, Any], Explorer, list[Way]]) -> None:
    """Of all round numbers up to the first of the searched ones that shows it, evaluated one by one."""
    document, explorer, ways = searched
    reached = 0
    for level, answer in document["explore"]["levels"].items():
        by_kind = {row["kind"]: row["value"] for row in answer["ways"]}
        for way in ways:
            first = next((v for v in way.values if total(explorer, way, v, level) <= UPLIFT), None)
            if first is None:
                assert way.kind not in by_kind
                continue
            reached += 1
            place = way.values.index(first)
            between = round_numbers(way.values[place - 1], first) if place else []
            numbers = [*between, first]
            shows = [total(explorer, way, value, level) <= UPLIFT for value in numbers]
            at = numbers.index(by_kind[way.kind])
            assert shows[at]
            assert at == 0 or not shows[at - 1]
    assert reached >= 3


def test_days_shrink_sampling_alone(searched: tuple[dict[str, Any], Explorer, list[Way]]) -> None:
    """The control as it is, at four times the log's days, beside the plan's own row of it."""
    document, _, _ = searched
    asked, row = document["explore"]["frontier"][0], document["metrics"]["click"]["exploration"][0]
    for level, outlook in asked["levels"].items():
        now, then = row["levels"][level]["smallest_uplift"], outlook["smallest_uplift"]
        assert then["sampling"] == pytest.approx(now["sampling"] / 2.0)
        assert then["identification"] == pytest.approx(now["identification"])
    assert document["explore"]["displays"] == 4 * LOG.rows
    assert document["explore"]["reward"] == pytest.approx(4 * LOG.click.sum())


def test_rewards_lost(searched: tuple[dict[str, Any], Explorer, list[Way]]) -> None:
    explore = searched[0]["explore"]
    for row in explore["frontier"]:
        assert row["lost"] == pytest.approx(row["cost"] * 4 * LOG.click.sum(), abs=1e-9)
        assert row["lost_per_display"] == pytest.approx(row["cost"] * LOG.click.mean(), abs=1e-12)
        assert row["lost_at_most"] == pytest.approx(row["cost_at_most"] * 4 * LOG.click.sum())
    choice = explore["recommended"]
    prices = [max(0.0, row["cost"]) for level in explore["levels"].values() for row in level["ways"]]
    assert choice["cost"] <= max((1.0 + cheapest.TOLERANCE) * min(prices), min(prices) + cheapest.LEAST_DIFFERENCE)


def test_shares_are_written_in_few_digits(searched: tuple[dict[str, Any], Explorer, list[Way]]) -> None:
    settings = searched[2][0].at(0.32).settings
    assert settings is not None
    assert [part["share"] for part in settings["components"]] == [0.68, 0.32]


def candidate(cost: float, upper: float = math.nan, at_most: float = 0.9, **levels: SmallestUplift) -> Candidate:
    price = UNKNOWN if math.isnan(cost) else Cost(cost, 0.01, cost - 0.02, upper, "slot")
    outlooks = {name: LevelOutlook(parts, 0.01, 0.9, 0.0) for name, parts in levels.items()}
    return Candidate("swap-neighbours", "swap", 0.1, {}, None, price, at_most, outlooks)


def test_of_costs_that_are_nearly_the_same_the_better_known_one() -> None:
    vague, known, dear = candidate(0.010, 0.06), candidate(0.0108, 0.02), candidate(0.012, 0.013)
    assert cheapest_of([vague, known, dear]) is known
    assert cheapest_of([vague, dear]) is vague
    gains, small = candidate(-0.03, 0.06), candidate(0.0009, 0.002)
    assert cheapest_of([gains, small]) is small
    unknown = candidate(math.nan, at_most=0.005)
    assert cheapest_of([vague, unknown]) is unknown
    assert cheapest_of([]) is None


def test_the_control_as_it_is_comes_first() -> None:
    """Another one that earns more changes nothing where nothing has to be explored."""
    parts = {"slot": SmallestUplift(0.02, 0.01), "exposure": SmallestUplift(0.02, 0.0), "ranking": SmallestUplift(0, 0)}
    present, gains = candidate(0.0, 0.0, **parts), candidate(-0.02, -0.01, **parts)
    enough = LevelAnswer([present], present, None)
    levels = {"ranking": LevelAnswer([gains], gains, None), "slot": enough}
    assert Cheapest(levels, [present, gains]).level == "slot"
    assert Cheapest({**levels, "exposure": enough}, [present, gains]).level == "exposure"  # it shows less
    levels = {"ranking": LevelAnswer([gains], gains, None), "slot": LevelAnswer([], None, None)}
    assert Cheapest(levels, [present, gains]).level == "ranking"
    assert Cheapest({"slot": LevelAnswer([], None, None)}, [present]).level is None


def test_how_much_more_log_would_do() -> None:
    """S/√f + I = uplift; the second has the larger sum and the smaller floor."""
    quick = candidate(0.0, slot=SmallestUplift(0.03, 0.015))
    slow = candidate(0.0, slot=SmallestUplift(0.10, 0.001))
    need = needed([slow, quick], "slot", 0.02)
    assert need is not None
    assert need.candidate is slow
    assert 0.10 / math.sqrt(need.times) + 0.001 == pytest.approx(0.02)
    assert needed([quick], "slot", 0.015) is None


def test_ways_end_where_exploration_does() -> None:
    assert max(SEARCHED_SWAPS) == 0.5
    assert round_numbers(0.2, 0.25) == [0.21, 0.22, 0.23, 0.24]


def test_a_control_that_never_varies_shows_nothing_as_it_is_but_by_exposure() -> None:
    log = SmallLog(rows=600, units=600, m=3, k=3, spread=1.0, seed=5)
    shown = pa.array(np.argsort(-log.control, axis=1).tolist(), pa.list_(pa.int32()))
    columns = ft.LogColumns(rewards=["click"], id="id", ranking="ranking", slot_rewards={"click": "slot_click"})
    best = {name: ft.TopK(scores=f"{name}_scores") for name in ("control", "treatment")}
    test = ft.OfflineTest(log=columns, **best, examination=[1.0, 0.6, 0.4])
    explore = ft.plan_log(test, log.table(ranking=shown), uplift=0.3).to_dict()["explore"]
    present = explore["frontier"][0]["levels"]
    assert present["ranking"]["reason"] == present["slot"]["reason"] == NEVER_VARIES
    assert present["exposure"]["reason"] is None
    for level, answer in explore["levels"].items():
        assert all(row["levels"][level]["smallest_uplift"]["total"] <= 0.3 for row in answer["ways"])


def test_the_error_of_a_promise_is_a_jackknife_over_users() -> None:
    """Of one tenth of the users left out after the other, by plans of these logs, the scale being that of all."""
    log = SmallLog(rows=500, units=60, m=4, k=2, spread=2.0, seed=3)
    columns = ft.LogColumns(rewards=["click"], unit="user", ranking="ranking", id="id")
    test = ft.OfflineTest(log=columns, **SCORES, estimators=["point-ncis-adaptive"], weight_bound=4.0)
    totals: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        look = Explorer.look_at

        def watched(explorer: Explorer, level: str, policy: Any) -> LevelOutlook:
            outlook = look(explorer, level, policy)
            users = np.unique(explorer.sample.unit)
            totals.append(outlook.smallest_uplift.total)
            left.append(len(users))
            return outlook

        left: list[int] = []
        patch.setattr(Explorer, "look_at", watched)
        choice = ft.plan_log(test, log.table(), uplift=0.9).to_dict()["explore"]["recommended"]
    assert choice["value"] is None
    users = len(np.unique(log.unit[log.click > 0]))
    assert sum(users - count for count in left) == users  # each user is left out once
    spread = math.sqrt(0.9 * sum((t - np.mean(totals)) ** 2 for t in totals))
    assert choice["smallest_uplift_std_error"] == pytest.approx(spread)
    assert len(totals) == 10

"""Which way to explore is recommended: the cheapest within a tenth of the least sum of smallest uplift and cost."""

from __future__ import annotations

import math
from typing import Any

import pytest

from foretest.planning.cost import UNKNOWN, Cost
from foretest.planning.explored import Explored
from foretest.planning.levels import NOTHING, LevelOutlook, SmallestUplift
from foretest.planning.recommendation import Recommended, recommend


def row(cost: float, at_most: float = 0.5, swap: float | None = None, **totals: float) -> Explored:
    """A row with a smallest uplift by level; the control as it is where nothing is swapped."""
    settings: dict[str, Any] = {"policy": "top-k"} if swap is None else {"policy": "swap-neighbours", "swap": swap}
    levels = {name: LevelOutlook(SmallestUplift(total, 0.0), 0.01, 0.9, 0.0) for name, total in totals.items()}
    price = UNKNOWN if math.isnan(cost) else Cost(cost, 0.01, cost - 0.02, cost + 0.02, "exposure")
    return Explored(
        kind="uniform" if swap is None else "swap-neighbours", epsilon=0.0 if swap is None else None, settings=settings,
        cost=price, cost_at_most=at_most, treatment_mass_kept=0.9, std_error=0.01, largest_weight=math.nan,
        weight_bound=math.nan, smallest_uplift=NOTHING, levels=levels,
    )  # fmt: skip


def chosen(*rows: Explored) -> Recommended:
    choice = recommend("click", rows)
    assert choice is not None
    return choice


def test_the_cheapest_within_a_tenth() -> None:
    now = row(0.0, ranking=0.3)
    best, cheaper = row(0.02, swap=0.5, slot=0.10, ranking=0.4), row(0.01, swap=0.25, slot=0.12)
    choice = chosen(now, best, cheaper)
    assert choice.row is cheaper  # .13 against .12
    assert choice.level == "slot"
    assert choice.to_dict()["smallest_uplift"]["total"] == 0.12
    assert choice.sentence == (
        "Swap neighbours with probability 0.25: the log could then show 12.0 % (by slot), instead of 30.0 %, at a cost"
        " of about 1.0 % of the reward."
    )
    assert chosen(now, best, row(0.01, swap=0.25, slot=0.13)).row is best


def test_a_cost_beyond_what_it_shows_is_not_paid() -> None:
    now, dear = row(0.0, ranking=0.1), row(0.2, swap=0.5, ranking=0.01)
    assert chosen(now, dear).row is now
    assert chosen(now, dear).sentence.startswith("Leave the control as it is: the log could show 10.0 % (by ranking)")


def test_a_cost_that_is_not_known_counts_as_the_most_that_it_could_be() -> None:
    now = row(0.0, ranking=math.nan)
    small, large = row(math.nan, 0.1, swap=0.05, slot=0.2), row(math.nan, 0.6, swap=0.5, slot=0.1)
    choice = chosen(now, large, small)
    assert choice.row is small
    assert choice.sentence.endswith(
        "instead of nothing, at a cost that this log does not tell (at most 10.0 % of the reward)."
    )
    assert choice.to_dict()["cost"] is None


def test_less_exploration_may_earn_more() -> None:
    choice = chosen(row(0.0, ranking=0.100), row(-0.02, swap=0.05, ranking=0.105))
    assert choice.sentence.endswith("and earns about 2.0 % more.")
    assert choice.to_dict()["cost"] == pytest.approx(-0.02)


def test_nothing_shows_anything() -> None:
    assert recommend("click", [row(0.0, ranking=math.nan), row(0.1, swap=0.1)]) is None

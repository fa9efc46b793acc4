"""The ways to explore that a plan compares: their policies, and the settings that make them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foretest as ft
from foretest.aggregation.fold_plan import FoldPlan
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.planning.exploring_policies import Exploration, explorations, usual_gap
from tests.planning.explored_worlds import policy_of

SCORES = Ragged.of([[3.0, 1.0, 2.0, 0.0], [0.0, 4.0, 8.0, 9.0]])
DISPLAYS = Displays(
    {"s": SCORES, "t": SCORES},
    Ragged.packed(np.array([0, 2, 3, 2], np.int32), np.array([2, 2])),
    np.array([4, 4]),
    np.arange(2, dtype=np.uint64),
)


def of_control(control: Any, treatment: Any = None) -> list[Exploration]:
    test = ft.OfflineTest(
        log=ft.LogColumns(rewards=["click"], ranking="ranking"), control=control,
        treatment=treatment or ft.PlackettLuce(scores="t", temperature=1.0),
    )  # fmt: skip
    return explorations(FoldPlan(test.settings), DISPLAYS)


def parameters(rows: list[Exploration], kind: str) -> list[float]:
    return [list((row.settings or {}).values())[-1] for row in rows if row.kind == kind]


def test_around_the_present_temperature() -> None:
    rows = of_control(ft.PlackettLuce(scores="s", temperature=0.5))
    assert [row.epsilon for row in rows if row.kind == "uniform"] == [0.0, 0.01, 0.02, 0.05, 0.1, 0.2]
    assert parameters(rows, "plackett-luce") == [0.25, 1.0, 2.0]  # .5 is what it does now
    assert parameters(rows, "swap-neighbours") == [0.05, 0.1, 0.25, 0.5]
    assert parameters(rows, "epsilon-greedy") == [0.01, 0.05, 0.1, 0.2]
    assert rows[0].settings == {"policy": "plackett-luce", "scores": "s", "temperature": 0.5}


def test_around_the_gap_between_neighbours() -> None:
    """Gaps of the three best of each display: 1, 1 and 1, 4."""
    assert usual_gap(SCORES, DISPLAYS) == 1.0
    assert parameters(of_control(ft.TopK(scores="s")), "plackett-luce") == [0.25, 0.5, 1.0, 2.0]
    flat = Ragged.of([[2.0] * 4, [2.0] * 4])
    assert usual_gap(flat, DISPLAYS) is None
    assert usual_gap(Ragged.of([[1.0], [2.0]]), DISPLAYS) is None


def test_what_the_control_does_already_is_no_further_row() -> None:
    for control, kind, left in (
        (ft.SwapNeighbours(scores="s", swap=0.1, prob="p"), "swap-neighbours", [0.05, 0.25, 0.5]),
        (ft.EpsilonGreedy(scores="s", epsilon=0.05), "epsilon-greedy", [0.01, 0.1, 0.2]),
    ):
        assert parameters(of_control(control), kind) == left


def test_settings_make_the_policies() -> None:
    shown = DISPLAYS.ranking
    for control in (
        ft.TopK(scores="s"),
        ft.Mixture([(0.3, ft.TopK(scores="t")), (0.7, ft.Mallows(scores="s", dispersion=0.4))]),
    ):
        for row in of_control(control):
            assert row.policy is not None
            assert row.settings is not None
            made = policy_of(row.settings)
            np.testing.assert_allclose(made.log_prob(DISPLAYS, shown), row.policy.log_prob(DISPLAYS, shown))


def test_a_control_without_scores() -> None:
    """Random rankings need a list of items, of any policy; nothing else can be made of a ranking alone."""
    rows = of_control(ft.Fixed(ranking="ranking"))
    assert {row.kind for row in rows} == {"uniform"}
    assert rows[-1].settings is not None
    assert rows[-1].settings["components"][1] == {
        "share": 0.2,
        "policy": "epsilon-greedy",
        "scores": "t",
        "epsilon": 1.0,
    }
    rows = of_control(ft.Fixed(ranking="ranking"), ft.Fixed(ranking="other"))
    assert [row.policy is None for row in rows] == [False, *[True] * 5]
    assert rows[-1].settings is None


@pytest.mark.parametrize("huge", [1e38, 1e307])
def test_huge_scores_make_no_warning(huge: float) -> None:
    scores = Ragged.of([[huge, -huge, 0.0, 1.0], [0.0, huge, 1.0, 2.0]])
    gap = usual_gap(scores, DISPLAYS)
    assert gap is None or np.isfinite(gap)

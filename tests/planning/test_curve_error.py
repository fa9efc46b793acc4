"""How an examination curve moves an uplift, and what its fit adds to the error."""

from __future__ import annotations

import numpy as np
import pytest

import foretest as ft
from foretest.planning.curve_error import ExposedSlots
from foretest.weights.examination import Curves
from tests.planning.test_levels import BOUND, MOST, THETA, Enumerated, hotter


def exposed(theta: tuple[float, ...] = THETA) -> ExposedSlots:
    world = Enumerated()
    lists = world.lists
    object.__setattr__(lists, "curves", Curves((theta,)))
    return lists.of(hotter(0.6)[0]).exposed_slots(MOST)


def test_slopes_against_small_steps() -> None:
    """∂w̃/∂log θ of every item that is not at a kink."""
    step = 1e-6
    at = exposed()
    slopes = at.slopes(at.lists.capped(BOUND))
    for slot in range(2):
        up, down = (
            exposed(tuple(x * np.exp(sign * step * (k == slot)) for k, x in enumerate(THETA))) for sign in (1, -1)
        )
        moved = (up.lists.capped(BOUND).weight - down.lists.capped(BOUND).weight) / (2 * step)
        close = np.isclose(moved, slopes[slot], rtol=1e-4, atol=1e-5)
        assert close.mean() > 0.999
    np.testing.assert_allclose(slopes.sum(axis=0), 0.0, atol=1e-9)  # a curve in another unit is the same curve


def test_how_far_other_curves_move_the_value() -> None:
    """To first order: at curves a tenth as far the sums themselves move as much."""
    at = exposed()
    reach = at.half_range(at.lists.capped(BOUND))

    def value(power: float, tilt: float) -> float:
        other = exposed(tuple(x ** (1.0 + (power - 1.0) / 10) * k ** (tilt / 10) for k, x in enumerate(THETA, start=1)))
        return at.lists.expected(other.lists.capped(BOUND).weight)

    shifts = [value(*variant) - value(1.0, 0.0) for variant in ((0.8, 0), (1.25, 0), (1, 0.15), (1, -0.15))]
    assert reach == pytest.approx(0.5 * 10 * (max(0.0, *shifts) - min(0.0, *shifts)), rel=0.02)


def test_the_sums_of_a_fit_and_its_error() -> None:
    """F_kl from P(item in slot), and the error of log θ_2 by the delta method, for two slots in closed form."""
    at = exposed()
    sums, squares = at.pairs
    lists, p = at.lists, at.explored
    ratio = p / (p[0] + p[1])
    for k, other in ((0, 1), (1, 0)):
        of_item = at.share[k] * p[k] / lists.explored
        assert sums[k, other] == pytest.approx(lists.expected(of_item * ratio[other]), rel=1e-9)
        assert squares[k, other] == pytest.approx(lists.expected(of_item * ratio[other] ** 2, power=2), rel=1e-9)
    assert sums[1, 0] / sums[0, 1] == pytest.approx(THETA[1] / THETA[0])  # whatever items are worth
    capped = lists.capped(BOUND)
    slope = lists.expected(at.slopes(capped)[1])
    total = 0.0
    for k, sign in ((0, -1.0), (1, 1.0)):  # log θ_2 = log B/A: a reward in slot 1 lowers it, one in slot 2 raises it
        z = slope * sign * ratio[1 - k] / sums[k, 1 - k]
        total += lists.expected(at.share[k] * p[k] / lists.explored * (capped.weight - 1.0 + z) ** 2, power=2)
    assert at.fitted(capped, 100.0) == pytest.approx(total, rel=1e-9)


def test_no_fit_where_few_rewards_connect_the_slots() -> None:
    at = exposed()
    capped = at.lists.capped(BOUND)
    sums, squares = at.pairs
    effective = min(sums[0, 1] ** 2 / squares[0, 1], sums[1, 0] ** 2 / squares[1, 0])
    assert at.fitted(capped, 30.1 / effective) is not None
    assert at.fitted(capped, 29.9 / effective) is None
    fixed = Enumerated().lists.of(ft.TopK(scores="control_scores")).exposed_slots(MOST)
    assert fixed.fitted(fixed.lists.capped(BOUND), 1e9) is None


def test_weights_of_one_need_no_curve() -> None:
    world = Enumerated()
    same = world.lists.of(ft.PlackettLuce(scores="treatment_scores")).exposed_slots(MOST)
    capped = same.lists.capped(BOUND)
    assert same.half_range(capped) == pytest.approx(0.0, abs=1e-9)
    assert same.fitted(capped, 100.0) == pytest.approx(0.0, abs=1e-9)

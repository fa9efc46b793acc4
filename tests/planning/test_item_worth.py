"""What items that the log hardly shows are worth, by their scores."""

from __future__ import annotations

import numpy as np
import pytest

import foretest as ft
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.planning.item_lists import ItemLists
from foretest.planning.item_worth import relative_worth, standard_scores

ROWS, M = 4000, 6


def lists_of(control: np.ndarray, item: np.ndarray) -> ItemLists:
    """Lists of M items, one reward each."""
    rows = len(control)
    flat, at = control.ravel(), np.arange(rows)
    return ItemLists(flat, flat, flat, np.full(rows, M), at, at * M + item, np.ones(rows), at, 5.0)


def test_scores_that_tell_worth_are_found() -> None:
    """log γ = .5 z_1 − .3 z_2, of rewards drawn in proportion to ρ·γ."""
    g = np.random.default_rng(3)
    z, b = g.normal(size=(2, ROWS, M)), np.array([0.5, -0.3])
    control = g.dirichlet(np.ones(M), ROWS)
    gamma = np.exp(np.einsum("j,jri->ri", b, z))
    chance = control * gamma / (control * gamma).sum(axis=1, keepdims=True)
    item = (chance.cumsum(axis=1) < g.random((ROWS, 1))).sum(axis=1).clip(max=M - 1)
    worth = relative_worth(lists_of(control, item), z.reshape(2, -1))
    truth = gamma / (control * gamma).sum(axis=1, keepdims=True)
    inside = (truth > 0.25) & (truth < 4.0)  # beyond a factor of 5 worth is cut off
    error = np.log(worth.reshape(ROWS, M)[inside]) - np.log(truth[inside])
    assert np.abs(error).mean() < 0.05  # the standard error of b is about .02


def test_lists_that_show_one_item_say_nothing() -> None:
    control = np.eye(M)[np.arange(ROWS) % M]
    z = np.random.default_rng(1).normal(size=(1, ROWS * M))
    np.testing.assert_allclose(relative_worth(lists_of(control, np.arange(ROWS) % M), z), 1.0)
    np.testing.assert_allclose(relative_worth(lists_of(control, np.arange(ROWS) % M), np.empty((0, ROWS * M))), 1.0)


def test_standard_scores() -> None:
    lists = {
        "s": Ragged.of([[1.0, 2.0, 3.0], [5.0, 5.0], [0.0, 1e200]]),
        "t": Ragged.of([[1.0, 0.0, 0.0], [1.0, 3.0], [0.0, 1.0]]),
    }
    displays = Displays(lists, Ragged.of([[0], [0], [0]]), np.array([3, 2, 2]), np.arange(3, dtype=np.uint64))
    policies = (ft.PlackettLuce(scores="s"), ft.Fixed(ranking="r"), ft.TopK(scores="t"))
    z = standard_scores(policies, displays)
    assert z.shape == (2, 7)
    np.testing.assert_allclose(z[0], [-np.sqrt(1.5), 0.0, np.sqrt(1.5), 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(z[1], [np.sqrt(2.0), -np.sqrt(0.5), -np.sqrt(0.5), -1.0, 1.0, -1.0, 1.0])
    assert standard_scores((ft.Fixed(ranking="r"),), displays).shape == (0, 7)


@pytest.mark.parametrize("scores", [[[3.0, 3.0, 3.0]], [[1e300, -1e300, 0.0]]])
def test_equal_or_huge_scores_make_no_warning(scores: list[list[float]]) -> None:
    displays = Displays({"s": Ragged.of(scores)}, Ragged.of([[0]]), np.array([3]), np.zeros(1, np.uint64))
    assert np.isfinite(standard_scores((ft.TopK(scores="s"),), displays)).all()

"""What the treatment's scores say of the shown items, against plain NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import foretest as ft
from foretest.aggregation.audit_draws import draw_rankings
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.shown_scores import COLUMNS, RESIDUAL, SCORED, SIZE, residual_at_one_slope, shown_scores
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.policies.own_candidates import places_column
from foretest.weights.policy_pair import PolicyPair
from tests.support import SCORES, SmallLog

LOG = SmallLog(rows=200, m=6, k=2)
CONTROL, TREATMENT = SCORES["control"], SCORES["treatment"]


def displays(scores: Mapping[str, np.ndarray] | None = None) -> Displays:
    lists = {"control_scores": LOG.control, "treatment_scores": LOG.treatment} | dict(scores or {})
    return Displays(
        {name: Ragged.of(values) for name, values in lists.items()},
        Ragged.of(LOG.rankings[LOG.shown].astype(np.int32)),
        np.full(LOG.rows, LOG.m), np.arange(LOG.rows).astype(np.uint64),
    )  # fmt: skip


def rankings(few: Displays) -> np.ndarray:
    """The ranking shown, then five drawn."""
    drawn = draw_rankings(PolicyPair(TREATMENT, CONTROL, 1), few, 5, weigh=False).positions
    shown = np.full((len(few), 1, drawn.shape[2]), -1, np.int32)
    shown[:, 0, : LOG.k] = few.ranking.padded(-1)
    return np.concatenate([shown, drawn], axis=1)


def columns_of(few: Displays) -> Columns:
    return shown_scores(CONTROL, TREATMENT, few, rankings(few))


def plain(treatment: np.ndarray, positions: np.ndarray, *, one_slope: bool) -> np.ndarray:
    """ρ of every display's candidates, summed over what was shown, less the mean of the sums over draws."""
    a, b = (scores - scores.mean(axis=1, keepdims=True) for scores in (treatment, LOG.control))
    slope = (
        (a * b).sum() / (b * b).sum()
        if one_slope
        else (a * b).sum(axis=1, keepdims=True) / (b * b).sum(axis=1, keepdims=True)
    )
    rho = a - slope * b
    rho /= np.sqrt(np.square(rho).mean(axis=1, keepdims=True))
    if not one_slope:
        rho = np.abs(rho) - np.abs(rho).mean(axis=1, keepdims=True)
    of_slots = np.take_along_axis(rho[:, None, :], positions[:, :, : LOG.k], axis=2).sum(axis=2)
    return np.asarray(of_slots[:, 0] - of_slots[:, 1:].mean(axis=1))


def test_both_sums_are_those_of_the_definition() -> None:
    few = displays()
    positions, columns = rankings(few), columns_of(few)
    residual, size = (plain(LOG.treatment, positions, one_slope=one) for one in (True, False))
    np.testing.assert_allclose(residual_at_one_slope(columns), residual, atol=2e-5)
    np.testing.assert_allclose(columns[SIZE], size, atol=2e-6)


@pytest.mark.parametrize("factor", [1.0, 3.7, -0.2, 0.0])
def test_a_treatment_that_follows_the_control_has_no_residual(factor: float) -> None:
    columns = columns_of(displays({"treatment_scores": (factor * LOG.control).astype(np.float32).astype(float)}))
    columns |= columns_of(displays({"treatment_scores": factor * LOG.control}))
    assert not columns[RESIDUAL].any()
    assert not columns[SIZE].any()
    assert not residual_at_one_slope(columns).any()


def test_single_precision_is_no_residual() -> None:
    columns = columns_of(displays({"treatment_scores": (50.0 + LOG.control).astype(np.float32)}))
    assert not columns[SIZE].any()


def test_a_small_leak_counts_as_much_as_a_large_one() -> None:
    """ρ has one size whatever the treatment's scores differ by."""
    other = np.random.default_rng(1).normal(size=LOG.control.shape)
    small, large = (columns_of(displays({"treatment_scores": LOG.control + w * other})) for w in (1e-3, 1e3))
    np.testing.assert_allclose(small[SIZE], large[SIZE], atol=1e-3)


def test_scores_beyond_all_bounds_count_as_none() -> None:
    columns = columns_of(displays({"treatment_scores": 1e200 * LOG.treatment}))
    assert not any(columns[name].any() for name in COLUMNS)


def test_a_list_of_its_own_counts_the_items_it_scores() -> None:
    """The treatment scores the first four of six items, and two that are new."""
    own = ft.OwnCandidates(TREATMENT, candidates="own")
    few = displays({
        "treatment_scores": LOG.treatment, places_column("own"): np.tile([0, 1, 2, 3, 6, 7], (LOG.rows, 1)),
    })  # fmt: skip
    few = Displays(few.columns, few.ranking, np.full(LOG.rows, 8), few.identity)
    control = ft.OwnCandidates(CONTROL, candidates="all")
    few.columns[places_column("all")] = Ragged.of(np.tile(np.arange(6), (LOG.rows, 1)))
    positions = rankings(displays())
    columns = shown_scores(control, own, few, positions)
    scored = ((positions >= 0) & (positions < 4)).sum(axis=2)
    np.testing.assert_allclose(columns[SCORED], scored[:, 0] - scored[:, 1:].mean(axis=1), atol=1e-6)
    a, b = LOG.treatment[:, :4], LOG.control[:, :4]
    a, b = (scores - scores.mean(axis=1, keepdims=True) for scores in (a, b))
    rho = a - (a * b).sum(axis=1, keepdims=True) / (b * b).sum(axis=1, keepdims=True) * b
    sizes = np.abs(rho) / np.sqrt(np.square(rho).mean(axis=1, keepdims=True))
    sizes = np.hstack([sizes - sizes.mean(axis=1, keepdims=True), np.zeros((LOG.rows, 2))])
    sums = np.take_along_axis(sizes[:, None, :], positions[:, :, : LOG.k], axis=2).sum(axis=2)
    np.testing.assert_allclose(columns[SIZE], sums[:, 0] - sums[:, 1:].mean(axis=1), atol=2e-6)


def test_policies_without_scores_have_no_columns() -> None:
    few = displays()
    assert shown_scores(CONTROL, ft.Logged(prob="p"), few, rankings(few)) == {}

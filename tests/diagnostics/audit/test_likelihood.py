"""The log-likelihood tests against enumeration, SciPy and plain NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from foretest.aggregation.audit_draws import shares_below
from foretest.diagnostics.audit.by_unit import first_of_units, z_by_unit
from foretest.diagnostics.audit.likelihood import calibration, kolmogorov_smirnov, ranks


@pytest.mark.parametrize("p", [(0.5, 0.3, 0.2), (0.9, 0.05, 0.05), (1.0, 0.0, 0.0)])
def test_the_place_among_draws_is_uniform_however_many_are_equal(p: tuple[float, ...]) -> None:
    """Over all (shown, draws) of three values: given the values, u is uniform between its ends at V = 0 and V = 1."""
    values, draws = np.array([-1.0, -2.0, -2.5]), 3
    combinations = np.array(list(product(range(3), repeat=draws + 1)))
    weight = np.prod(np.array(p)[combinations], axis=1)
    shown, drawn = values[combinations[:, 0]], values[combinations[:, 1:]]
    low, high = (shares_below(shown, drawn, np.full(len(shown), v)) for v in (0.0, 1.0))
    for t in (0.01, 0.2, 0.25, 0.5, 0.77, 0.99):
        inside = np.clip((t - low) / (high - low), 0.0, 1.0)
        assert (weight * inside).sum() == pytest.approx(t, abs=1e-12)


def test_equal_probabilities_found_in_two_ways_are_equal() -> None:
    shown = np.array([-30.0])
    noisy = shown + np.array([[1e-12, -1e-12, 1e-3]])
    assert shares_below(shown, noisy, np.array([0.0]))[0] == 0.0
    assert shares_below(shown, noisy, np.array([1.0]))[0] == pytest.approx(3 / 4)


@pytest.mark.parametrize("power", [1.0, 1.05, 1.3])
def test_kolmogorov_smirnov_is_scipys(power: float) -> None:
    u = np.random.default_rng(5).random(800) ** power
    distance, p = kolmogorov_smirnov(u)
    theirs = stats.kstest(u, "uniform")
    assert distance == pytest.approx(theirs.statistic, rel=1e-12)
    assert p == pytest.approx(theirs.pvalue, rel=0.05, abs=1e-4)


def test_z_by_unit_is_a_sum_over_units() -> None:
    rng = np.random.default_rng(2)
    unit = np.sort(rng.integers(0, 40, 200)).astype(np.uint64)
    terms = rng.normal(size=(200, 2))
    sums = np.array([terms[unit == u].sum(axis=0) for u in np.unique(unit)])
    np.testing.assert_allclose(
        z_by_unit(terms, first_of_units(unit)), sums.sum(axis=0) / np.sqrt((sums**2).sum(axis=0)), rtol=1e-12
    )


def test_copies_of_a_units_rows_leave_z_as_it_is() -> None:
    terms = np.random.default_rng(3).normal(0.1, 1.0, (50, 1))
    once = z_by_unit(terms, np.arange(50))
    again = z_by_unit(np.repeat(terms, 10, axis=0), np.arange(0, 500, 10))
    np.testing.assert_allclose(again, once, rtol=1e-12)


@pytest.mark.parametrize(("shift", "outcome", "word"), [(0.0, "pass", "as likely"), (-0.2, "fail", "less likely")])
def test_calibration_says_which_way(shift: float, outcome: str, word: str) -> None:
    rng = np.random.default_rng(4)
    log_p = rng.normal(-5.0 + shift, 1.0, 2000)
    finding = calibration(log_p, np.full(2000, -5.0), np.arange(2000))
    assert finding.outcome == outcome
    assert word in finding.meaning
    difference = log_p + 5.0
    assert finding.statistic == pytest.approx(difference.sum() / np.sqrt((difference**2).sum()), rel=1e-12)
    assert finding.p_value == pytest.approx(2 * stats.norm.sf(abs(finding.statistic)), rel=1e-9)
    assert (finding.remedy is None) == (outcome == "pass")
    if outcome == "fail":
        assert "too low" in (finding.remedy or "")


def test_equally_likely_rankings_differ_by_rounding_alone() -> None:
    """A control that shows all rankings evenly: log π is one number, and its mean over draws that number but for
    rounding, the same in every display."""
    log_p = np.full(5000, -np.log(3.0))
    finding = calibration(log_p, log_p - 2.2e-16, np.arange(5000))
    assert (finding.outcome, finding.statistic) == ("pass", 0.0)


def test_a_ranking_that_the_scores_cannot_give_fails() -> None:
    log_p = np.full(300, -2.0)
    log_p[7] = -np.inf
    finding = calibration(log_p, np.full(300, -2.0), np.arange(300))
    assert finding.outcome == "fail"
    assert "1 of 300" in finding.meaning


@pytest.mark.parametrize(
    ("a", "b", "where"), [(2, 1, "likely"), (1, 2, "unlikely"), (2, 2, "middle"), (0.5, 0.5, "both ends")]
)
def test_ranks_say_where_the_shown_stand(a: float, b: float, where: str) -> None:
    u = stats.beta(a, b).ppf((np.arange(2000) + 0.5) / 2000)
    finding = ranks(u)
    assert finding.outcome == "fail"
    assert where in finding.meaning

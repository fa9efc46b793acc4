"""Thurstone against closed forms, plain quadrature, and draws."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import uniforms
from foretest.policies import Thurstone


def log_prob(scores: list[float], ranking: list[int], sigma: float = 1.0, kind: type = np.float64) -> float:
    lists = Ragged.of([np.array(scores, kind)])
    shown = Ragged.of([np.array(ranking, np.int32)])
    rows = Displays({"s": lists}, shown, lists.lengths, hash_integers(np.arange(1)))
    return float(Thurstone("s", sigma).log_prob(rows, shown)[0])


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("gap", [0.0, 0.5, 3.0, 10.0, 25.0, -0.5, -3.0, -10.0, -25.0])
def test_one_of_two_is_a_normal_tail(gap: float, sigma: float) -> None:
    """P(the first beats the second) = Φ((μ1 − μ2)/(σ√2)), from near 1 to 1e-138."""
    expected = log_ndtr(gap / np.sqrt(2))
    assert log_prob([gap * sigma, 0.0], [0], sigma) == pytest.approx(expected, rel=1e-10, abs=1e-14)
    assert log_prob([gap * sigma, 0.0], [0, 1], sigma) == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_equal_scores_are_uniform(k: int) -> None:
    expected = -np.log(np.arange(5, 5 - k, -1)).sum()
    assert log_prob([2.0] * 5, list(range(k)), 0.7) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("scores", [[0.0, 1.0, -0.5, 0.3], [10.0, 0.0, 5.0, 9.0], [0.0, 0.0, 10.0, -10.0]])
def test_one_of_many_against_plain_quadrature(scores: list[float]) -> None:
    for item, own in enumerate(scores):
        others = np.delete(scores, item)

        def density(u: float, own: float = own, others: np.ndarray = others) -> float:
            return float(np.exp(-0.5 * (u - own) ** 2) / np.sqrt(2 * np.pi) * np.prod(ndtr(u - others)))

        nodes = np.linspace(min(scores) - 10, max(scores) + 10, 41)
        parts = [quad(density, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pairwise(nodes)]
        assert log_prob(scores, [item]) == pytest.approx(np.log(sum(parts)), rel=1e-9, abs=1e-13)


def test_a_whole_order_of_three_against_the_orthant_formula() -> None:
    """P(X1 > X2 > X3) is a bivariate orthant of the differences, of correlation −1/2."""
    from scipy.stats import multivariate_normal

    for scores in ([0.5, 0.0, -0.5], [0.0, 1.0, 0.4]):
        gaps = np.array([scores[0] - scores[1], scores[1] - scores[2]]) / np.sqrt(2)
        expected = multivariate_normal.cdf(gaps, cov=[[1.0, -0.5], [-0.5, 1.0]])
        assert np.exp(log_prob(scores, [0, 1, 2])) == pytest.approx(expected, abs=1e-7)


def test_scores_far_apart_still_sum_to_one_over_the_rankings() -> None:
    scores = [0.0, 10.0, 20.0, 10.5]
    for k in (1, 2, 4):
        total = sum(np.exp(log_prob(scores, list(r))) for r in permutations(range(4), k))
        assert total == pytest.approx(1.0, abs=1e-10)


def test_an_order_against_both_gaps_of_ten_sigma() -> None:
    """X1 > X2 > X3 with means 0, 10, 20: Var of the two differences and their covariance give the exponent."""
    # the most likely point has all three at 10, density exponent −(10² + 0 + 10²)/2, times a factor of order 1
    assert -115 < log_prob([0.0, 10.0, 20.0], [0, 1, 2]) < -100
    # it is the same problem turned upside down
    mirrored = log_prob([0.0, -10.0, -20.0], [2, 1, 0])
    assert log_prob([0.0, 10.0, 20.0], [0, 1, 2]) == pytest.approx(mirrored, rel=1e-9)


def test_draws_against_log_prob() -> None:
    count, scores, sigma = 200_000, np.array([0.0, 0.8, -0.4, 1.0]), 0.9
    lists = Ragged(scores, np.zeros(count, np.int64), np.full(count, 4))
    shown = Ragged(np.arange(2, dtype=np.int32), np.zeros(count, np.int64), np.full(count, 2))
    rows = Displays({"s": lists}, shown, lists.lengths, np.zeros(count, np.uint64))
    u = uniforms(3, 0, np.arange(count, dtype=np.uint64), 0, 1, 5)[:, 0]
    drawn = Thurstone("s", sigma).sample(rows, u).padded(-1)
    for ranking in permutations(range(4), 2):
        p = np.exp(log_prob(scores.tolist(), list(ranking), sigma))
        share = (drawn == ranking).all(axis=1).mean()
        assert abs(share - p) <= 4 * np.sqrt(p * (1 - p) / count)


def test_a_shift_changes_nothing_and_a_scale_is_sigma() -> None:
    base = log_prob([0.2, 1.0, -0.7, 0.0], [3, 1])
    assert log_prob([5.2, 6.0, 4.3, 5.0], [3, 1]) == pytest.approx(base, rel=1e-10)
    assert log_prob([0.6, 3.0, -2.1, 0.0], [3, 1], 3.0) == pytest.approx(base, rel=1e-10)


def test_single_precision_columns() -> None:
    assert log_prob([0.5, 1.0, -0.25], [0, 1], kind=np.float32) == log_prob([0.5, 1.0, -0.25], [0, 1])


@pytest.mark.parametrize("sigma", [0, -1.0, np.nan, True, "wide"])
def test_a_wrong_sigma_is_refused(sigma: object) -> None:
    with pytest.raises(BadInput, match=r"^sigma = .*: expected a number above 0\.$"):
        Thurstone("s", sigma)  # type: ignore[arg-type]


@pytest.mark.parametrize("gap", [60.0, 100.0, 400.0])
def test_rankings_against_all_odds(gap: float) -> None:
    """Scores (0, gap), the lower first: the tail of one Gaussian difference, far below the smallest double."""
    assert log_prob([0.0, gap], [0, 1]) == pytest.approx(log_ndtr(-gap / np.sqrt(2)), rel=1e-9)


def test_three_against_all_odds() -> None:
    """Scores (0, g, g/2), ranking (0, 1): by Laplace's method about −g²/4, from all three meeting at g/2."""
    for gap in (100.0, 200.0):
        assert log_prob([0.0, gap, gap / 2], [0, 1]) == pytest.approx(-(gap**2) / 4, rel=0.02)


def test_scores_too_far_apart_give_no_number() -> None:
    assert np.isnan(log_prob([0.0, 1e6], [0]))

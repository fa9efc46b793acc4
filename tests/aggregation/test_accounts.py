"""Sums of weights from 1e-300 to 1e300, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.aggregation.ledger import Account, Ledger
from foretest.aggregation.quantities import DISPLAYS, SQUARED_WEIGHTS, WEIGHTS, Quantity
from foretest.weights.weightings import Uncapped

LOG_10_300 = 690.7755278982137


W = Uncapped()


def folded(batches: list[list[float]]) -> Account:
    """Σh and Σh² of weights given by their logarithms, batch by batch."""
    account = Account(W)
    for batch in batches:
        h = account.scaled(np.array(batch, float))
        account.put(WEIGHTS, h.sum())
        account.put(SQUARED_WEIGHTS, h @ h)
    return account


def merged(*accounts: Account) -> Account:
    return Ledger.total([Ledger(1, {(W, None): account}) for account in accounts]).account(W)


def relative_error(account: Account, quantity: Quantity, exact: Fraction) -> float:
    unit = Fraction(2) ** ((account.exponent or 0) * quantity.power)
    return float(abs(Fraction(account.total(quantity)) * unit / exact - 1))


def exact_sum(batches: list[list[float]], power: int) -> Fraction:
    """Σ e^(power·x), each term correct to 2^-120: e^x = 2^k·e^r with a Taylor series of e^r."""
    ln2 = Fraction(6931471805599453094172321214581765680755001343602552, 10**52)
    total = Fraction(0)
    for x in (Fraction(x) * power for batch in batches for x in batch):
        k = round(x / ln2)
        r, term, series = x - k * ln2, Fraction(1), Fraction(1)
        for i in range(1, 32):
            term = Fraction(int(term * r * 2**140), 2**140) / i
            series += term
        total += series * Fraction(2) ** k
    return total


@pytest.mark.parametrize(
    "batches",
    [
        [[0.0, 1.0, -1.0]],
        [[-LOG_10_300], [LOG_10_300]],
        [[LOG_10_300], [-LOG_10_300]],
        [[-LOG_10_300, -LOG_10_300 + 1.0], [-600.0], [-500.5]],
        [[LOG_10_300] * 3, [LOG_10_300 - 2.0]],
        [[-40.0], [-1.0], [30.0], [60.0], [100.0], [160.0]],
    ],
)
def test_weights_of_any_size(batches: list[list[float]]) -> None:
    sums = folded(batches)
    for quantity in (WEIGHTS, SQUARED_WEIGHTS):
        # exp(x − log unit) sees x with a relative rounding of 2^-53
        assert relative_error(sums, quantity, exact_sum(batches, quantity.power)) < 1e-12


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(-690, 690), min_size=1, max_size=4), min_size=1, max_size=5))
def test_batches_in_any_order_and_merged(batches: list[list[float]]) -> None:
    whole = folded(batches)
    for quantity in (WEIGHTS, SQUARED_WEIGHTS):
        exact = exact_sum(batches, quantity.power)
        for sums in (whole, folded(batches[::-1]), merged(folded(batches[:1]), folded(batches[1:]))):
            assert relative_error(sums, quantity, exact) < 1e-12


def test_merging_leaves_both_sides_as_they_were() -> None:
    small, large = folded([[-600.0]]), folded([[600.0]])
    before = [(s.exponent, {k: v.copy() for k, v in s.sums.items()}) for s in (small, large)]
    for both in (merged(small, large), merged(large, small)):
        assert both.exponent == large.exponent
        assert relative_error(both, WEIGHTS, exact_sum([[-600.0], [600.0]], 1)) < 1e-12
    for sums, (exponent, arrays) in zip((small, large), before, strict=True):
        assert sums.exponent == exponent
        assert {k: v.tolist() for k, v in sums.sums.items()} == {k: v.tolist() for k, v in arrays.items()}


def test_nothing_but_weights_of_zero() -> None:
    sums = Account(W)
    assert sums.scaled(np.array([-np.inf, -np.inf])).tolist() == [0.0, 0.0]
    assert sums.scaled(np.empty(0)).tolist() == []
    assert sums.exponent is None
    assert sums.log_unit == 0.0
    assert sums.get(WEIGHTS, size=3).tolist() == [0.0, 0.0, 0.0]
    one = folded([[1.0]])
    assert merged(sums, one).total(WEIGHTS) == one.total(WEIGHTS)
    assert merged(one, sums).exponent == one.exponent


def test_the_scale_is_a_power_of_two_that_holds_the_largest() -> None:
    sums = Account(W)
    for log_h in (-300.0, 0.0, 44.0, 45.0, 700.0):
        h = sums.scaled(np.array([log_h]))
        assert 0.0 < h[0] <= 1.0
        assert h[0] * 2.0**0 == pytest.approx(np.exp(log_h - sums.log_unit), rel=1e-12)
        assert sums.exponent is not None
        assert sums.exponent % 64 == 0


def test_short_sums_end_in_zeros() -> None:
    account = Account()
    account.put(DISPLAYS, np.array([1.0, 2.0]))
    account.put(DISPLAYS, np.array([1.0, 1.0, 1.0]))
    account.put(DISPLAYS, np.array([5.0]))
    assert account.get(DISPLAYS).tolist() == [7.0, 3.0, 1.0]


def test_sums_without_a_weight_stay_when_the_unit_moves() -> None:
    account = Account(W)
    account.put(DISPLAYS, 3.0)
    account.put(WEIGHTS, account.scaled(np.array([0.0])).sum())
    account.scaled(np.array([690.0]))
    assert account.total(DISPLAYS) == 3.0
    assert account.total(WEIGHTS) * np.exp(account.log_unit) == pytest.approx(1.0, rel=1e-12)

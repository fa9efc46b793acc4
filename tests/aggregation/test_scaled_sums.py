"""Sums of weights from 1e-300 to 1e300, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.aggregation.scaled_sums import ScaledSums, add_padded

LOG_10_300 = 690.7755278982137


def folded(batches: list[list[float]]) -> ScaledSums:
    """Σh and Σh² of weights given by their logarithms, batch by batch."""
    sums = ScaledSums()
    for batch in batches:
        h = sums.scaled(np.array(batch, float))
        sums.add("h", h.sum())
        sums.add("h2", h @ h)
    return sums


def relative_error(sums: ScaledSums, name: str, exact: Fraction) -> float:
    power = 2 if name.endswith("2") else 1
    unit = Fraction(2) ** ((sums.exponent or 0) * power)
    return float(abs(Fraction(float(sums.get(name)[0])) * unit / exact - 1))


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
    for name, power in (("h", 1), ("h2", 2)):
        # exp(x − log unit) sees x with a relative rounding of 2^-53
        assert relative_error(sums, name, exact_sum(batches, power)) < 1e-12


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(-690, 690), min_size=1, max_size=4), min_size=1, max_size=5))
def test_batches_in_any_order_and_merged(batches: list[list[float]]) -> None:
    whole = folded(batches)
    for name, power in (("h", 1), ("h2", 2)):
        exact = exact_sum(batches, power)
        for sums in (whole, folded(batches[::-1]), folded(batches[:1]) + folded(batches[1:])):
            assert relative_error(sums, name, exact) < 1e-12


def test_merging_leaves_both_sides_as_they_were() -> None:
    small, large = folded([[-600.0]]), folded([[600.0]])
    before = [(s.exponent, {k: v.copy() for k, v in s.arrays.items()}) for s in (small, large)]
    for both in (small + large, large + small):
        assert both.exponent == large.exponent
        assert relative_error(both, "h", exact_sum([[-600.0], [600.0]], 1)) < 1e-12
    for sums, (exponent, arrays) in zip((small, large), before, strict=True):
        assert sums.exponent == exponent
        assert {k: v.tolist() for k, v in sums.arrays.items()} == {k: v.tolist() for k, v in arrays.items()}


def test_nothing_but_weights_of_zero() -> None:
    sums = ScaledSums()
    assert sums.scaled(np.array([-np.inf, -np.inf])).tolist() == [0.0, 0.0]
    assert sums.scaled(np.empty(0)).tolist() == []
    assert sums.exponent is None
    assert sums.log_unit == 0.0
    assert sums.get("h", 3).tolist() == [0.0, 0.0, 0.0]
    assert (sums + folded([[1.0]])).get("h")[0] == folded([[1.0]]).get("h")[0]
    assert (folded([[1.0]]) + sums).exponent == folded([[1.0]]).exponent


def test_the_scale_is_a_power_of_two_that_holds_the_largest() -> None:
    sums = ScaledSums()
    for log_h in (-300.0, 0.0, 44.0, 45.0, 700.0):
        h = sums.scaled(np.array([log_h]))
        assert 0.0 < h[0] <= 1.0
        assert h[0] * 2.0**0 == pytest.approx(np.exp(log_h - sums.log_unit), rel=1e-12)
        assert sums.exponent is not None
        assert sums.exponent % 64 == 0


def test_short_arrays_end_in_zeros() -> None:
    left = np.array([1.0, 2.0])
    assert add_padded(None, left).tolist() == [1.0, 2.0]
    assert add_padded(left, np.array([1.0, 1.0, 1.0])).tolist() == [2.0, 3.0, 1.0]
    assert left.tolist() == [1.0, 2.0]
    same = add_padded(left, np.array([5.0]))
    assert same is left
    assert left.tolist() == [6.0, 2.0]
    sums = ScaledSums()
    sums.add("h", np.array([1.0]))
    sums.add("h", np.array([1.0, 4.0]))
    assert sums.get("h").tolist() == [2.0, 4.0]


@pytest.mark.parametrize("name", ["hv:dr:2", "h:click2", "hr:r2"])
def test_a_name_that_ends_in_2_is_no_square(name: str) -> None:
    sums = ScaledSums()
    for x in (0.0, 1.0, 300.0):
        sums.add(name, sums.scaled(np.array([x])).sum())
    expected = np.exp(0.0 - 300.0) + np.exp(1.0 - 300.0) + 1.0
    assert sums.get(name)[0] * np.exp(sums.log_unit - 300.0) == pytest.approx(expected, rel=1e-12)

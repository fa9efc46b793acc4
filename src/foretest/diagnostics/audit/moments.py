"""Do the weights have the means they must have? The capped moment, and the balance of context features.

Both take one display per unit (all where units are few), and compare the shown ranking's capped weight w̄_0 with
those of rankings drawn from the control, w̄_1..w̄_S, whose mean is q(x) = E_p[w̄ | x] on average. Where the control
is right, the shown one is one more draw: given the S + 1 weights, each may have been the shown one. That gives Σ
f·(w̄_0 − mean of all) its mean 0, its variance and its third and fourth moments exactly, heavy weights that were
drawn and not shown included. A variance from the shown weights alone misses those, and takes their absence for a
fault.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.audit_context import Feature
from foretest.displays.batch import Floats
from foretest.kernels.exchange import exchange_moments
from foretest.results.audit import Finding, not_made, tested
from foretest.special import gammainc, gammaincc, ndtr, stdtr
from foretest.weights.capping import capped

MOMENT, BALANCE = "capped moment", "balance"
FEWEST_AT_CAP = 100.0  # n·q̄/c: below, the mean of weights up to c is not yet normal
MOMENT_CAPS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_ROUNDING = 1e-10  # of a weight
_LEAST_MASS = 0.1  # of q̂ in a denominator: any function of the context is a good factor


class Standing(NamedTuple):
    """Where sums are in the distribution of all that they might have been: one entry per factor."""

    z: Floats
    skewness: Floats
    kurtosis: Floats  # beyond that of a normal distribution

    def of_fit(self, information_ratio: float) -> Standing:
        """The same where the control was fitted: z² over 1 + I_audit/I_fit, as its error adds no more to any sum."""
        return self._replace(z=self.z / np.sqrt(1.0 + information_ratio))

    def p_values(self) -> Floats:
        """The two-sided p-value of each factor's sum."""
        return np.array([two_sided(*entry) for entry in zip(*(column.tolist() for column in self), strict=True)])


def exchangeable(shown: Floats, drawn: Floats, factors: Floats) -> Standing:
    """Σ f·(shown − mean of shown and drawn) for each factor f, a column of `factors`, as its distribution over which of
    them was shown has it.

    >>> standing = exchangeable(np.array([1.0, 0.0]), np.array([[0.0], [1.0]]), np.ones((2, 1)))
    >>> [column.round(9).tolist() for column in standing]
    [[0.0], [0.0], [-1.0]]
    """
    apart, second, third, fourth = exchange_moments(*map(np.ascontiguousarray, (shown, drawn)))
    squares = np.square(factors)
    variance, cubes = squares.T @ second, (squares * factors).T @ third
    fourths = np.square(squares).T @ (fourth - 3.0 * np.square(second))
    # where all weights of a display are one number, what is left of its variance is rounding
    some = variance > _ROUNDING**2 * (squares.T @ np.square(shown))
    size = np.sqrt(np.where(some, variance, 1.0))
    sums = (factors.T @ apart, cubes, fourths)
    return Standing(*(np.where(some, s, 0.0) / size**power for s, power in zip(sums, (1, 3, 4), strict=True)))


def two_sided(z: float, skewness: float, kurtosis: float) -> float:
    """The two-sided p-value of z: the larger of those of two distributions with its moments.

    A sum in which few displays have most of the variance is skewed, or has heavy tails where factors of both signs hide
    that. A gamma distribution has its skewness: twice the smaller tail; Student's t with 4 + 6/κ degrees has its
    kurtosis.

    >>> round(two_sided(1.96, 0.0, 0.0), 4), round(two_sided(3.0, 1.0, 1.5), 4), round(two_sided(3.0, 0.0, 3.0), 4)
    (0.05, 0.0207, 0.0104)
    """
    return max(_gamma_tails(z, skewness), _t_tails(z, kurtosis))


def _gamma_tails(z: float, skewness: float) -> float:
    if abs(skewness) < 1e-4:
        return float(2.0 * ndtr(-abs(z)))
    shape = 4.0 / skewness**2
    at = max(0.0, shape + np.copysign(1.0, skewness) * z * np.sqrt(shape))
    return float(min(1.0, 2.0 * gammainc(shape, at), 2.0 * gammaincc(shape, at)))


def _t_tails(z: float, kurtosis: float) -> float:
    if kurtosis < 1e-4:
        return float(2.0 * ndtr(-abs(z)))
    degrees = 4.0 + 6.0 / kurtosis
    return float(2.0 * stdtr(degrees, -abs(z) * np.sqrt(degrees / (degrees - 2.0))))


def _too_few(name: str, rows: int, q: float, cap: float) -> Finding | None:
    """The finding that a test was not run, where the sample has too few independent displays for weights up to the cap;
    else None."""
    if rows * q / cap > FEWEST_AT_CAP:
        return None
    many = f"{FEWEST_AT_CAP * cap / q:,.0f}" if q > 1e-3 else "far more"
    needed = f"weights up to {cap:.3g} need more than {many} independent displays in the sample"
    return not_made(name, f"{needed}, and it has {rows:,}")


def capped_moment(
    log_w: Floats, drawn_log_w: Floats, cap: float, capping: str, information_ratio: float = 0.0
) -> Finding:
    """mean(w̄ − q(x)) = 0 at every cap that the sample bears: the test that mean(w) = 1 would be if weights had no tail.

    The caps are those of `MOMENT_CAPS`, and the analysis' own, whose n·q̄/c is above 100; Bonferroni over them.
    """
    caps = sorted({*MOMENT_CAPS, cap})
    expected = [_weights(drawn_log_w, c, capping).mean() for c in caps]
    able = [c for c, q in zip(caps, expected, strict=True) if len(log_w) * q / c > FEWEST_AT_CAP]
    if not able:
        few = _too_few(MOMENT, len(log_w), float(expected[0]), caps[0])
        assert few is not None
        return few
    largest = max(log_w.max(), drawn_log_w.max())
    beyond = [c for c in able if np.log(c) > largest]  # the first of them says what all say: no weight is cut
    different = able[: len(able) - len(beyond[1:])]
    moments = [moment_at(log_w, drawn_log_w, c, capping, information_ratio) for c in different]
    worst = min(moments, key=lambda m: m.p_value)
    z = worst.z
    numbers = f"mean {worst.mean:.4f}, expected {worst.expected:.4f} at cap {worst.cap:g} (z = {z:+.1f})"
    return tested(
        MOMENT, min(1.0, worst.p_value * len(able)), z,
        f"capped weights have the mean they should have: {numbers}",
        f"capped weights are on average too {'small' if z < 0 else 'large'}: {numbers}",
        "Rankings that the treatment likes were shown "
        f"{'less' if z < 0 else 'more'} often than [control] says. Check its parameters, and that its scores and the"
        " treatment's belong to the same display and the same list of items.",
    )  # fmt: skip


class CappedMoment(NamedTuple):
    """The mean capped weight of what was shown, and of the control's draws."""

    cap: float
    mean: float
    expected: float
    z: float
    p_value: float


def moment_at(
    log_w: Floats, drawn_log_w: Floats, cap: float, capping: str, information_ratio: float = 0.0
) -> CappedMoment:
    """The moment at one cap, with the p-value of its being as far from what was expected."""
    w, drawn = _weights(log_w, cap, capping), _weights(drawn_log_w, cap, capping)
    standing = exchangeable(w, drawn, np.ones((len(w), 1))).of_fit(information_ratio)
    return CappedMoment(cap, float(w.mean()), float(drawn.mean()), float(standing.z[0]), float(standing.p_values()[0]))


def _weights(log_w: Floats, cap: float, capping: str) -> Floats:
    """w̄ at a cap, infinite where there is none and w is beyond doubles."""
    with np.errstate(over="ignore"):
        return np.exp(capped(log_w, cap, capping))


def balance(
    features: list[Feature], log_w: Floats, drawn_log_w: Floats, treatment_log_w: Floats, cap: float,
    information_ratio: float = 0.0,
) -> Finding:  # fmt: skip
    """(mean(w̃ f) − mean f)/sd f = 0 for every context feature f, Bonferroni over features.

    w̃ − 1 = (w̄ − q)/q. The q in the denominator is the mean of w̄/w over draws from the treatment, which are no part
    of what is compared, so that its error moves nothing away from 0.
    """
    w, drawn = _weights(log_w, cap, "max"), _weights(drawn_log_w, cap, "max")
    largest = float(max(w.max(initial=0.0), drawn.max(initial=0.0)))  # far below the cap where policies are near
    few = _too_few(BALANCE, len(w), float(drawn.mean()), min(cap, max(largest, 1.0)))
    if few is not None:
        return few
    if not features:
        return not_made(BALANCE, "no feature varies")
    q = np.exp(np.minimum(0.0, np.log(cap) - treatment_log_w)).mean(axis=1)
    scaled = np.column_stack([(f.values - f.values.mean()) / f.values.std() for f in features])
    factors = scaled / np.maximum(q, _LEAST_MASS)[:, None]
    standing = exchangeable(w, drawn, factors).of_fit(information_ratio)
    z, p, count = standing.z, standing.p_values(), len(features)
    worst = int(p.argmin())
    shift = float((factors[:, worst] * (w - drawn.mean(axis=1))).mean())
    moved = f"{features[worst].name} by {shift:+.3f} standard deviations (z = {z[worst]:+.1f}, {count} compared)"
    return tested(
        BALANCE, min(1.0, count * float(p[worst])), float(z[worst]),
        f"weights leave the contexts unchanged; the largest shift is {moved}",
        f"weights move the contexts, which no ranking can change: {moved}",
        "The probabilities are wrong for some of the contexts: look at that feature's values one by one. Perhaps a part"
        " of the traffic was served by another policy; leave it out, or describe it.",
    )  # fmt: skip

"""Always-valid intervals: asymptotic confidence sequences by Robbins' normal mixture.

A fixed interval holds at one look that was planned. An always-valid one holds at all looks at once: the chance that it
ever leaves out the truth is at most α, however often the test is looked at and whenever it is stopped. Robbins (1970);
Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas: Time-uniform central limit theory and asymptotic confidence sequences
(Annals of Statistics 2024). With n independent units and se the standard error of the estimate from them it is

    estimate ± se·√[(1 + 1/(n ρ²))·(log(1 + n ρ²) − 2 log α)].

ρ² is the variance of the mixture, in units of the variance of one unit. It must be chosen before the test. The interval
is tightest, compared with the standard error, at n* units if v = n*·ρ² solves v − log(1 + v) = −2 log α; that is
v = −W₋₁(−α²/e) − 1, with Lambert's W.
"""

from __future__ import annotations

import numpy as np

from foretest.inference.buckets import NO_INTERVAL, Interval


def mixture_variance(units: int, level: float) -> float:
    """ρ² of the interval that is tightest at this number of units.

    >>> round(10_000 * mixture_variance(10_000, 0.9), 3)
    6.638
    """
    alpha = 1.0 - level
    from scipy.special import lambertw

    return float((-lambertw(-(alpha**2) / np.e, -1).real - 1.0) / units)


def always_valid_quantile(units: int, variance: float, level: float) -> float:
    """How many standard errors each way at this number of units, with the mixture's variance ρ².

    >>> round(always_valid_quantile(10_000, mixture_variance(10_000, 0.9), 0.9), 3)  # 1.645 for a fixed interval
    2.764
    """
    if units <= 0:
        return float("nan")
    v = units * variance
    return float(np.sqrt((1.0 + 1.0 / v) * (np.log1p(v) - 2.0 * np.log(1.0 - level))))


def always_valid_interval(estimate: float, error: float, quantile: float) -> Interval:
    """estimate ± quantile·se; no interval without an error."""
    half = quantile * error
    return Interval(estimate - half, estimate + half) if np.isfinite(half) else NO_INTERVAL

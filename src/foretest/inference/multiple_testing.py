"""Several uplifts from the same rows: p-values, Holm's adjustment, and intervals that hold for all at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foretest.displays.batch import Floats
from foretest.inference.delta import FEW_UNITS
from foretest.special import ndtr, stdtr

_DRAWS = 100_000  # of the largest of several normal numbers: its 90 % quantile is accurate to 0.3 %
_ROUNDING = 1e-12  # of the control's value: an uplift within it is 0


def two_sided_p(estimate: float, error: float, units: int, control: float = 0.0) -> float:
    """How often chance alone shows an uplift as large, 2·Φ(−|Δ|/se); Student's distribution under 30 units.

    >>> round(two_sided_p(1.959964, 1.0, 1000), 4), round(two_sided_p(2.0, 1.0, 10), 4), two_sided_p(0.0, 0.0, 10)
    (0.05, 0.0766, 1.0)
    """
    if abs(estimate) <= _ROUNDING * abs(control):
        return 1.0
    if not (np.isfinite(estimate) and np.isfinite(error)) or units < 2:
        return float("nan")
    distance = -abs(estimate) / error if error > 0.0 else -np.inf
    return float(2.0 * (stdtr(units - 1.0, distance) if units < FEW_UNITS else ndtr(distance)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values after Holm (1979): with p sorted, max over j ≤ i of min(1, (m − j + 1)·p_j).

    Rejecting where they are at most α keeps the chance of any false rejection at α, whatever the dependence. One that
    is not known counts as 1, and stays unknown.

    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(np.where(np.isnan(p), 1.0, p), kind="stable")
    stepped = np.minimum(1.0, np.where(np.isnan(p), 1.0, p)[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(stepped)
    return [float(value) for value in np.where(np.isnan(p), np.nan, adjusted)]


def resampled_quantile(deviations: Floats, errors: Floats, level: float) -> float:
    """The level-quantile of max_j |Δ*_j − Δ_j|/se_j over resamples (rows) of several uplifts (columns).

    All uplifts are resampled by the same counts, so that their dependence is kept: two of the same treatment count as
    one. Uplifts without spread (se = 0) have no part in it.
    """
    some = errors > 0.0
    if not some.any():
        return 0.0
    largest = np.abs(deviations[:, some] / errors[some]).max(axis=1)
    largest = largest[np.isfinite(largest)]
    return float(np.quantile(largest, level)) if len(largest) else float("nan")


def normal_quantile(influences: Floats, level: float, units: int, seed: int) -> float:
    """The level-quantile of max_j |Z_j|, Z normal with the correlations of the uplifts, from a seeded draw.

    Correlations come from the influence of each bucket of units (rows) on each uplift (columns). Under 30 units Z is
    divided by √(χ²/ν) with ν = units − 1: the multivariate t of one shared error of scale.
    """
    sizes = np.sqrt((influences**2).sum(axis=0))
    scaled = influences[:, sizes > 0.0] / sizes[sizes > 0.0]
    if not scaled.shape[1]:
        return 0.0
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    generator = np.random.Generator(np.random.Philox(seed))
    largest = np.abs(generator.standard_normal((_DRAWS, len(values))) @ root.T).max(axis=1)
    if 2 <= units < FEW_UNITS:
        largest /= np.sqrt(generator.chisquare(units - 1.0, _DRAWS) / (units - 1.0))
    return float(np.quantile(largest, level))

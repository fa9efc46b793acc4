"""Is the relative uplift the same on all days? Cochran's Q with the covariance of the days.

One unit may be there on several days, so that their uplifts are not independent. Their covariance is that of the
influences by bucket of units: with x_d the influence of bucket b on day d's uplift u_d, V = C/(C−1)·Σ_b x_b x_bᵀ, and

    Q = min_μ (u − μ1)ᵀ V⁻¹ (u − μ1) = uᵀV⁻¹u − (1ᵀV⁻¹u)²/(1ᵀV⁻¹1),

which is Cochran's Q where days are independent. V is estimated from C buckets (of units, where these are fewer), so
that (C − D + 1)/((D − 1)(C − 1))·Q has, nearly, Hotelling's F distribution with D − 1 and C − D + 1 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foretest.displays.batch import Floats
from foretest.files import finite_or_none
from foretest.results.days import Heterogeneity
from foretest.special import fdtrc

BUCKETS_PER_DAY = 4  # fewer buckets say little about the covariance of so many days


ROUNDING = 1e-12  # of a relative uplift: what varies by less does not vary


class DayEstimate(NamedTuple):
    """A day's relative uplift, and by bucket of units its influence on it."""

    uplift: float
    influence: Floats


def heterogeneity(days: Sequence[DayEstimate], units: int) -> Heterogeneity | None:
    """The test of the days that have an uplift; None where there are fewer than two, or too many for the buckets."""
    known = [day for day in days if np.isfinite(day.uplift) and np.isfinite(day.influence).all()]
    varying = [day for day in known if np.linalg.norm(day.influence) > ROUNDING]
    if len(varying) < 2:
        return None
    uplift, influence = np.array([day.uplift for day in varying]), np.stack([day.influence for day in varying])
    count, df = min(influence.shape[1], units), len(varying) - 1
    if count < BUCKETS_PER_DAY * len(varying):
        return None
    scale = np.sqrt(np.square(influence).sum(axis=1))
    influence, weight = influence / scale[:, None], 1.0 / scale  # of correlation, which is well scaled
    covariance = count / (count - 1.0) * (influence @ influence.T)
    try:
        solved = np.linalg.solve(covariance, np.stack([uplift * weight, weight], axis=1))
    except np.linalg.LinAlgError:
        return None
    u, one = uplift * weight, weight
    q = float(max(0.0, u @ solved[:, 0] - (one @ solved[:, 0]) ** 2 / (one @ solved[:, 1])))
    statistic = (count - df) / (df * (count - 1.0)) * q
    return Heterogeneity(finite_or_none(q), df, finite_or_none(float(fdtrc(df, count - df, statistic))), len(varying))

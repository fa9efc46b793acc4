"""How well a promise is known: the error of a predicted smallest uplift, which is made from one sample of rewards.

By a jackknife over groups of units: with θ_g the prediction without the g-th of G groups, worth of items fitted again,
the standard error is √((G − 1)/G·Σ_g (θ_g − θ̄)²).
"""

from __future__ import annotations

import math

import numpy as np

from foretest.planning.explorer_of_log import explorer_of
from foretest.planning.levels import Scale
from foretest.planning.log_to_plan import LogToPlan
from foretest.planning.rewarded_sample import RewardedSample
from foretest.policies import Policy

GROUPS = 10


def promise_error(
    log: LogToPlan, sample: RewardedSample, m: int, scale: Scale, level: str, policy: Policy
) -> float | None:
    """The standard error of the smallest uplift of a policy at a level; None where a part of the sample has none."""
    [rewarded] = np.nonzero(sample.rewards[:, m])
    _, code = np.unique(sample.unit[rewarded], return_inverse=True)
    totals = []
    for group in range(GROUPS):
        explorer = explorer_of(log, sample.take(rewarded[code % GROUPS != group]), m, scale)
        if explorer is None:
            return None
        totals.append(explorer.look_at(level, policy).smallest_uplift.total)
    error = math.sqrt((GROUPS - 1.0) * float(np.var(totals)))
    return error if math.isfinite(error) else None

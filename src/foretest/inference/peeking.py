"""What looking at a test again and again does to a fixed interval."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from foretest.special import ndtri

PATHS = 1 << 18  # simulated tests: a standard error of at most 0.001
_SEED = 1969  # the answer is a number, not a draw: the same for everyone


def false_alarm(information: Sequence[float], level: float) -> float:
    """The chance that a fixed interval of a test without any effect leaves out 0 at one look or more.

    `information` has how much each look adds, as in units or displays: only proportions matter. At look k the estimate
    over its standard error is z_k = S_k/√I_k, I_k the information so far and S a sum of independent normal numbers of
    variances `information`: Corr(z_j, z_k) = √(I_j/I_k) (Armitage, McPherson and Rowe 1969). One look gives 1 − level;
    several are simulated, always with the same seed.

    >>> round(false_alarm([1.0], 0.95), 4), round(false_alarm([1.0] * 5, 0.95), 2)
    (0.05, 0.14)
    """
    steps = tuple(float(step) for step in information if step > 0.0)
    return 1.0 - level if len(steps) <= 1 else _simulated(steps, level)


@lru_cache(maxsize=32)
def _simulated(steps: tuple[float, ...], level: float) -> float:
    """The share of simulated tests with an alarm."""
    rng, bound = np.random.default_rng(_SEED), float(ndtri(0.5 + level / 2.0))
    total, alarmed = np.zeros(PATHS), np.zeros(PATHS, bool)
    for step, so_far in zip(np.sqrt(steps), np.sqrt(np.cumsum(steps)), strict=True):
        total += step * rng.standard_normal(PATHS)
        alarmed |= np.abs(total) > bound * so_far
    return float(alarmed.mean())

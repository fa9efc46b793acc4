"""Random estimates of 1/q(x) whose mean is exactly 1/q(x), by rejection.

Midzuno-Sen and Lahiri need z > 0 for every ranking of the treatment, or E = (1 − P(z=0)^S)/q: under zero capping, and
where the control may give probability 0, trials are counted instead. Each estimate comes with the displays that were
past the bound on trials.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.kernels.random import uniforms
from foretest.weights.policy_pair import ACCEPT, FIRST, SETS, TRIALS, PolicyPair

MOST_TRIALS = 100_000
ACCEPTANCES = 64  # m, where trials to the m-th acceptance are counted

Mask = npt.NDArray[np.bool_]


class InverseMass(NamedTuple):
    """An estimate of 1/q(x) for each display."""

    inverse: Floats
    stuck: Mask  # past the bound on trials


def midzuno_sen(pair: PolicyPair, displays: Displays, cap: float, mean_z: Floats, others: int) -> InverseMass:
    """Draw a_1 until u < z_1, then a_2..a_S; S/Σz_i has mean 1/q exactly (the paper's text inverts a ratio).

    `mean_z` is the mean of z over a_2..a_S, and `others` their number, S − 1.
    """
    first, stuck = _first_accepted(pair, displays, cap)
    total = first + others * mean_z
    return InverseMass((1 + others) / np.where(stuck, 1.0, total), stuck)


def _first_accepted(pair: PolicyPair, displays: Displays, cap: float) -> tuple[Floats, Mask]:
    """z of the first trial that passes u < z."""
    z_first = np.zeros(len(displays))
    waiting = np.arange(len(displays))
    done = 0
    while len(waiting) and done < MOST_TRIALS:
        block = min(MOST_TRIALS - done, max(4, (1 << 15) // len(waiting)) if done else 4)
        part = displays.take(waiting)
        z = pair.treatment_z(part, FIRST, done, block, cap)
        u = uniforms(pair.seed, ACCEPT, part.key(), done, block, 1)[:, :, 0]
        passed = u < z
        some = passed.any(axis=1)
        z_first[waiting[some]] = z[some, passed[some].argmax(axis=1)]
        waiting = waiting[~some]
        done += block
    return z_first, np.isin(np.arange(len(displays)), waiting)


def lahiri(pair: PolicyPair, displays: Displays, cap: float, size: int) -> InverseMass:
    """Draw whole sets of S = `size` rankings, accept one with probability mean(z), return 1/mean(z)."""
    inverse = np.ones(len(displays))
    waiting = np.arange(len(displays))
    sets = 0
    while len(waiting) and sets * size < MOST_TRIALS:
        part = displays.take(waiting)
        mean = pair.treatment_z(part, SETS, sets * size, size, cap).mean(axis=1)
        passed = uniforms(pair.seed, ACCEPT, part.key(), sets, 1, 1)[:, 0, 0] < mean
        inverse[waiting[passed]] = 1.0 / mean[passed]
        waiting = waiting[~passed]
        sets += 1
    return InverseMass(inverse, np.isin(np.arange(len(displays)), waiting))


def count_trials(pair: PolicyPair, displays: Displays, cap: float, zero: bool) -> InverseMass:
    """Trials to the m-th acceptance, over m: mean 1/q, also where z may be 0."""
    n = len(displays)
    trials = np.zeros(n)
    accepted = np.zeros(n, np.int64)
    waiting = np.arange(n)
    done = 0
    while len(waiting) and done < MOST_TRIALS:
        block = min(MOST_TRIALS - done, max(128, (1 << 15) // len(waiting)))
        part = displays.take(waiting)
        z = pair.treatment_z(part, TRIALS, done, block, cap, zero)
        passed = uniforms(pair.seed, ACCEPT, part.key(), done, block, 1)[:, :, 0] < z
        running = accepted[waiting, None] + passed.cumsum(axis=1)
        reached = running[:, -1] >= ACCEPTANCES
        trials[waiting[reached]] = done + 1 + (running[reached] >= ACCEPTANCES).argmax(axis=1)
        accepted[waiting] = running[:, -1]
        waiting = waiting[~reached]
        done += block
    return InverseMass(trials / ACCEPTANCES, np.isin(np.arange(n), waiting))

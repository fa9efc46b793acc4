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
from foretest.kernels.peaked_mass import peaked_masses
from foretest.kernels.random import uniforms
from foretest.weights.policy_pair import ACCEPT, FIRST, FROM_TREATMENT, NONE, SETS, TRIALS, PolicyPair

MOST_TRIALS = 100_000
# where a trial is priced through `log_prob`, and costs ten times as much or more: to the first acceptance, to the m-th
MOST_DEAR_TRIALS, MOST_DEAR_COUNTED = 256, 768
HOPELESS = 0.25  # of the acceptances needed: where the most trials promise no more, none are made
LONG_WAIT = 1024  # trials after which a display's few likely rankings are gone through
MOST_BEGINNINGS = 4000  # of rankings, that this may take: no more time than some thousand trials
ACCEPTANCES = 64  # m, where trials to the m-th acceptance are counted
AT_ONCE = 1 << 20  # trials of all displays that wait, in memory
LEAST_MASS = np.finfo(np.float64).tiny  # a smaller q has lost its digits, and 1/q may be beyond all doubles: none

Mask = npt.NDArray[np.bool_]


class InverseMass(NamedTuple):
    """An estimate of 1/q(x) for each display."""

    inverse: Floats
    stuck: Mask  # past the bound on trials


def midzuno_sen(pair: PolicyPair, displays: Displays, cap: float, mean_z: Floats, others: int) -> InverseMass:
    """Draw a_1 until u < z_1, then a_2..a_S; S/Σz_i has mean 1/q exactly (the paper's text inverts a ratio).

    `mean_z` is the mean of z over a_2..a_S, and `others` their number, S − 1.
    """
    first = _first_accepted(pair, displays, cap)
    total = np.where(first.stuck, 1.0, first.z + others * mean_z)
    return InverseMass(np.where(np.isnan(first.q), (1 + others) / total, 1.0 / first.q), first.stuck)


class _FirstAccepted(NamedTuple):
    z: Floats  # of the first trial that passes u < z
    q: Floats  # of displays that waited long and whose q was then found without trials; else NaN
    stuck: Mask


def _first_accepted(pair: PolicyPair, displays: Displays, cap: float) -> _FirstAccepted:
    """z of the first trial that passes u < z.

    A display that waits long has a small q, most often of peaked policies, for which a few rankings give it: that is
    tried before more trials. The estimate has mean 1/q either way, for z does not depend on how long it was waited for.
    """
    z_first, q, stuck = np.zeros(len(displays)), np.full(len(displays), np.nan), np.zeros(len(displays), np.bool_)
    waiting = np.arange(len(displays))
    most = MOST_TRIALS if pair.is_fused else min(MOST_TRIALS, MOST_DEAR_TRIALS)
    done = 0
    while len(waiting) and done < most:
        block = _following(done, len(waiting), 4, most)
        if done < LONG_WAIT:
            block = min(block, LONG_WAIT - done)
        part = displays.take(waiting)
        z = pair.treatment_z(part, FIRST, done, block, cap)
        u = uniforms(pair.seed, ACCEPT, part.key(), done, block, 1)[:, :, 0]
        passed = u < z
        some = passed.any(axis=1)
        z_first[waiting[some]] = z[some, passed[some].argmax(axis=1)]
        waiting = waiting[~some]
        done += block
        if done == LONG_WAIT and len(waiting) and pair.is_fused:
            q[waiting] = peaked_masses(*pair.score_lists(displays.take(waiting)), cap, MOST_BEGINNINGS)
            stuck[waiting] = q[waiting] < LEAST_MASS  # no trial would pass
            waiting = waiting[np.isnan(q[waiting])]
    stuck[waiting] = True
    q[stuck] = np.nan
    return _FirstAccepted(z_first, q, stuck)


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


def count_trials(pair: PolicyPair, displays: Displays, cap: float, zero: bool, known: Floats = NONE) -> InverseMass:
    """Trials to the m-th acceptance, over m: mean 1/q, also where z may be 0.

    `known` may have z of the treatment's first draws of each display: these are then the first trials.
    """
    trials, accepted = np.zeros(len(displays)), np.zeros(len(displays), np.int64)
    stuck, waiting = np.ones(len(displays), np.bool_), np.arange(len(displays))
    most = MOST_TRIALS if pair.is_fused else min(MOST_TRIALS, MOST_DEAR_COUNTED)
    stream = FROM_TREATMENT if known.shape[1] else TRIALS
    if known.shape[1]:
        likely_most = (known.sum(axis=1) + 2.0) / known.shape[1]  # of q; few draws rule nothing out
        waiting = np.flatnonzero(most * likely_most >= HOPELESS * ACCEPTANCES)
    done = 0
    while len(waiting) and done < most:
        part, is_known = displays.take(waiting), done < known.shape[1]
        block = min(most, known.shape[1]) if is_known else _following(done, len(waiting), ACCEPTANCES, most)
        z = known[waiting, :block] if is_known else pair.treatment_z(part, stream, done, block, cap, zero)
        passed = uniforms(pair.seed, ACCEPT, part.key(), done, block, 1)[:, :, 0] < z
        running = accepted[waiting, None] + passed.cumsum(axis=1)
        reached = running[:, -1] >= ACCEPTANCES
        trials[waiting[reached]] = done + 1 + (running[reached] >= ACCEPTANCES).argmax(axis=1)
        accepted[waiting] = running[:, -1]
        stuck[waiting[reached]] = False
        waiting = waiting[~reached]
        done += block
    return InverseMass(trials / ACCEPTANCES, stuck)


def _following(done: int, waiting: int, first: int, most: int) -> int:
    """How many trials follow those done: half as many, so that few are made for nothing."""
    block = first if done == 0 else max(first // 2, done // 2)
    return min(most - done, block, max(4, AT_ONCE // waiting))

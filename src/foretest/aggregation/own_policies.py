"""A user's own policy on a few sampled displays: the sum of its probabilities, and how its draws agree with them.

Computed display by display, so that samples of parts of a log join to the sample of the whole.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.aggregation.bridge import DRAWS as BRIDGE_DRAWS
from foretest.aggregation.bridge import bridge
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Displays, Floats
from foretest.kernels.random import uniforms
from foretest.policies.all_rankings import is_own, over_all_rankings, ranking_counts
from foretest.policies.base import Policy
from foretest.policies.logging_mixture import loggers_of

MOST_DISPLAYS = 16
MOST_RANKINGS = 5_000  # of one display
ALL_RANKINGS = 10_000  # of all that are looked at
DRAWS = 64
STREAM = 102  # of random numbers
ROLES = ("control", "treatment")
#: columns of the sample, each for a role: over all rankings of a display Σ π, Σ log π − E log π of draws and the
#: variance of that sum; where rankings are too many, the two means of a bridge and the variance of their difference
TOTAL, SURPRISE, VARIANCE = "own total", "own surprise", "own variance"
OF_PROPOSAL, OF_POLICY, DOUBT = "own bridge proposal", "own bridge policy", "own bridge variance"
NAMES = (TOTAL, SURPRISE, VARIANCE, OF_PROPOSAL, OF_POLICY, DOUBT)


def own_columns(roles: dict[str, Policy], displays: Displays, seed: int) -> Columns:
    """The columns of each role whose policy is a user's own; NaN for displays that were not looked at."""
    columns: Columns = {}
    for role, policy in roles.items():
        if not policy.can_draw or not is_own(policy) or not len(displays):
            continue
        parts = [part for part in loggers_of(policy).policies if is_own(part)]
        checked = np.stack([_checked(part, displays, seed) for part in parts])
        total = np.where(np.isnan(checked[:, :, 0]), checked[:, :, 3] / checked[:, :, 4], checked[:, :, 0])
        worst = np.argmax(np.nan_to_num(np.abs(total - 1.0), nan=-1.0), axis=0)
        chosen = checked[worst, np.arange(len(displays))]
        columns |= {(name, role): chosen[:, place].copy() for place, name in enumerate(NAMES)}
    return columns


def _with_items(displays: Displays) -> npt.NDArray[np.int64]:
    """The displays whose number of eligible items is known."""
    return np.flatnonzero((displays.slots > 0) & (displays.eligible >= displays.slots))


def _few(displays: Displays) -> npt.NDArray[np.int64]:
    """The first displays with few enough rankings: those of the smallest hashes, which a merge keeps longest."""
    first = _with_items(displays)[:1000]
    able = first[ranking_counts(displays.take(first)) <= MOST_RANKINGS][:MOST_DISPLAYS]
    total = np.cumsum(ranking_counts(displays.take(able)))
    return np.asarray(able[(total <= ALL_RANKINGS) | (np.arange(len(able)) == 0)])


def _checked(policy: Policy, displays: Displays, seed: int) -> Floats:
    """Displays × NAMES."""
    answer = np.full((len(displays), len(NAMES)), np.nan)
    rows = _few(displays)
    if len(rows):
        answer[rows, :3] = _over_all(policy, displays.take(rows), seed)
        return answer
    rows = _with_items(displays)[:MOST_DISPLAYS]
    if len(rows):
        some = displays.take(rows)
        answer[rows, 3:] = np.stack(bridge(policy, some, _uniforms(some, seed, 3 * BRIDGE_DRAWS)), axis=1)
    return answer


def _over_all(policy: Policy, displays: Displays, seed: int) -> Floats:
    """Displays × (total, surprise, variance), over all rankings."""
    part = displays.take(np.repeat(np.arange(len(displays)), DRAWS))
    rankings = policy.sample(part, _uniforms(displays, seed, DRAWS))
    drawn = np.asarray(policy.log_prob(part, rankings), np.float64).reshape(len(displays), DRAWS)
    answer = np.empty((len(displays), 3))
    for of_one in over_all_rankings(policy, displays):
        p = np.exp(of_one.log_prob)
        log_p = np.where(p > 0.0, of_one.log_prob, 0.0)
        expected = float((p * log_p).sum())
        spread = max(float((p * np.square(log_p)).sum()) - expected**2, 0.0)
        answer[of_one.display] = float(p.sum()), float((drawn[of_one.display] - expected).sum()), DRAWS * spread
    return answer


def _uniforms(displays: Displays, seed: int, draws: int) -> Floats:
    width = int(displays.eligible.max(initial=0)) + 1
    return np.asarray(uniforms(seed, STREAM, displays.key(), 0, draws, width)).reshape(-1, width)

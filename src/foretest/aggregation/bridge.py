"""The sum of a policy's probabilities where its rankings are too many to enumerate, from draws.

Let s be the distribution of the policy's draws, π what `log_prob` says, and g another distribution whose density is
known. For a right policy s = π, and E_g[π/(π + g)] = Σ π·g/(π + g) = E_s[g/(π + g)]: two means of values between 0 and
1, which are normal soon. Where π = Z·s, the first is Z times the second (bridge sampling: Meng and Wong 1996). g is
made from other draws of the policy: slot after slot, an item that is left, by how often it was drawn there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.policies.base import Policy
from foretest.special import expit

DRAWS = 128  # from the policy to make g, as many to compare, and as many from g
_SMOOTHING = 0.5  # of each item in each slot, in draws: g gives every ranking a positive probability


class Bridge(NamedTuple):
    """For each display the two means, and the variance of their difference."""

    of_proposal: Floats  # of π/(π + g) under g
    of_policy: Floats  # of g/(π + g) under the policy's draws
    variance: Floats


def bridge(policy: Policy, displays: Displays, uniforms: Floats) -> Bridge:
    """Both means of each display; `uniforms` has 3·DRAWS rows for each, as wide as `sample` needs."""
    count = len(displays)
    part = displays.take(np.repeat(np.arange(count), DRAWS))
    by_purpose = uniforms.reshape(count, 3, DRAWS, -1)
    first, second, third = (np.ascontiguousarray(by_purpose[:, j].reshape(count * DRAWS, -1)) for j in range(3))
    weights = _slot_weights(displays, policy.sample(part, first))
    drawn = policy.sample(part, second)
    proposed = _propose(weights, displays.slots, third)
    log_ratio = [
        (np.asarray(policy.log_prob(part, rankings), np.float64) - _log_density(weights, rankings)).reshape(count, -1)
        for rankings in (proposed, drawn)
    ]
    # what is NaN is as far from a probability as can be
    of_proposal, of_policy = (
        expit(sign * np.nan_to_num(r, nan=np.inf)) for sign, r in zip((1, -1), log_ratio, strict=True)
    )
    variance = (of_proposal.var(axis=1) + of_policy.var(axis=1)) / (DRAWS - 1)
    return Bridge(of_proposal.mean(axis=1), of_policy.mean(axis=1), variance)


def _slot_weights(displays: Displays, drawn: Ragged) -> Floats:
    """How often each item was drawn in each slot, and a little more: displays × slots × items, 0 for no item."""
    count, slots, items = len(displays), int(displays.slots.max()), int(displays.eligible.max())
    weights = np.zeros((count, slots, items))
    display = np.repeat(np.arange(count), DRAWS)
    row = np.repeat(np.arange(len(drawn)), drawn.lengths)
    slot = np.arange(len(row)) - np.repeat(np.cumsum(drawn.lengths) - drawn.lengths, drawn.lengths)
    np.add.at(weights, (display[row], slot, drawn.flat()), 1.0)
    return weights + _SMOOTHING * (np.arange(items) < displays.eligible[:, None])[:, None, :]


def _propose(weights: Floats, slots: npt.NDArray[np.int64], uniforms: Floats) -> Ragged:
    """DRAWS rankings of each display from g."""
    rows = np.arange(len(uniforms))
    lengths = np.repeat(slots, DRAWS)
    left = np.ones((len(uniforms), weights.shape[2]))
    chosen = np.zeros((len(uniforms), weights.shape[1]), np.int32)
    for k in range(weights.shape[1]):
        edges = np.cumsum(np.repeat(weights[:, k], DRAWS, axis=0) * left, axis=1)
        chosen[:, k] = (edges <= uniforms[:, k, None] * edges[:, -1:]).sum(axis=1).clip(max=left.shape[1] - 1)
        left[rows, chosen[:, k]] = np.where(k < lengths, 0.0, left[rows, chosen[:, k]])
    return Ragged.packed(chosen[np.arange(chosen.shape[1]) < lengths[:, None]], lengths)


def _log_density(weights: Floats, rankings: Ragged) -> Floats:
    """log g of DRAWS rankings of each display."""
    rows = np.arange(len(rankings))
    positions = rankings.padded(0)
    left = np.ones((len(rankings), weights.shape[2]))
    log_g = np.zeros(len(rankings))
    for k in range(positions.shape[1]):
        of_slot = np.repeat(weights[:, k], DRAWS, axis=0) * left
        shown, item = k < rankings.lengths, positions[:, k]
        share = of_slot[rows, item] / of_slot.sum(axis=1)
        log_g += np.log(share, where=shown, out=np.zeros(len(rankings)))
        left[rows, item] = np.where(shown, 0.0, left[rows, item])
    return log_g

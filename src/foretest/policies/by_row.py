"""Different policies for different rows of a batch: which policy a row has, and a ranking drawn from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.policies.base import Policy

Ints = npt.NDArray[np.int64]


def sample_by_row(policies: Sequence[Policy], picked: Ints, displays: Displays, uniforms: Floats) -> Ragged:
    """One ranking per display, drawn from the policy whose number is in `picked`."""
    slots = displays.slots
    drawn, starts = np.empty(int(slots.sum()), np.int32), np.cumsum(slots) - slots
    for j, policy in enumerate(policies):
        rows = np.flatnonzero(picked == j)
        if len(rows):
            part = policy.sample(displays.take(rows), uniforms[rows])
            drawn[np.repeat(starts[rows], part.lengths) + places_within(part.lengths)] = part.flat()
    return Ragged.packed(drawn, slots)


def picked_by(uniforms: Floats, shares: Floats) -> tuple[Ints, Floats]:
    """The policy that each display's first uniform picks, by `shares` (displays × policies), and the uniforms to draw
    with: given the policy, the place of u within its share is uniform again, so that no number is used up."""
    edges = np.cumsum(shares, axis=1)
    edges /= edges[:, -1:]  # exactly 1 at the end, also where the last share is 0
    u = uniforms[:, :1]
    picked = np.minimum((edges <= u).sum(axis=1), shares.shape[1] - 1)
    at = np.arange(len(picked)), picked
    left = uniforms.copy()
    left[:, 0] = np.clip((u[:, 0] - (edges - shares)[at]) / shares[at], 2.0**-53, 1.0 - 2.0**-53)
    return picked, left

"""P(item in slot) of a policy: exactly where the policy knows it, else counted over draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.kernels import slot_marginals as kernel
from foretest.policies.base import marginal_places
from foretest.policies.logging_mixture import components_of
from foretest.policies.own_candidates import without_list
from foretest.weights.policy_pair import PolicyPair

#: rankings that are drawn and counted where a policy does not know its marginals
DRAWS = 1024
_STREAM = 100  # of random numbers: one for both policies, so that equal ones count alike
_CELLS = 1 << 20  # marginals in memory at a time


def knows_marginals(policy: Any) -> bool:
    """Has the policy a `slot_marginals(displays)`, and if it is a mixture, have all its components?"""
    policy = without_list(policy)
    if not all(knows_marginals(part) for part in components_of(policy)):
        return False
    return callable(getattr(policy, "slot_marginals", None)) and getattr(policy, "knows_all_slots", True)


def slot_marginals(policy: Any, displays: Displays, pair: PolicyPair, log_w: Floats) -> Ragged:
    """P(item in slot) for each display: K lists of M numbers, one after the other, slot by slot.

    Counted over draws they are (counts + v)/(draws + v): the shown ranking is one more, worth v = exp(log_w). It was
    drawn from the control (v = 1), and with v = w it stands for one of the treatment, so that no item that was shown
    has a control marginal of 0, and equal policies have equal marginals.
    """
    if knows_marginals(policy):
        marginals: Ragged = policy.slot_marginals(displays)
        return marginals
    displays = displays.with_key()
    starts, counts = marginal_places(displays)
    counts[:] = 0.0
    slots, row = displays.slots, np.repeat(np.arange(len(displays)), displays.slots)
    slot = places_within(slots)
    place = starts[row] + slot * displays.eligible[row]  # of the shown slots, with item 0
    step = max(1, (1 << 18) // max(len(row), 1))
    for first in range(0, DRAWS, step):
        count = min(step, DRAWS - first)
        part = displays.take(np.repeat(np.arange(len(displays)), count))
        drawn = policy.sample(part, pair.uniforms(displays, _STREAM, first, count))
        # draws of one display follow one another, and so do the slots of a draw
        owner = np.repeat(np.repeat(np.arange(len(displays)), count), np.repeat(slots, count))
        np.add.at(counts, starts[owner] + places_within(drawn.lengths) * displays.eligible[owner] + drawn.flat(), 1.0)
    weight = np.exp(np.minimum(log_w, np.log(DRAWS)))
    counts[place + displays.ranking.flat()] += weight[row]
    lengths = displays.eligible * slots
    counts /= np.repeat(DRAWS + weight, lengths)
    return Ragged(counts, starts, lengths)


def in_pieces(displays: Displays) -> Iterator[npt.NDArray[np.int64]]:
    """The rows of displays in pieces whose marginals are not too many to be in memory together."""
    cells = np.cumsum(displays.eligible * displays.slots)
    pieces = np.split(np.arange(len(displays)), np.flatnonzero(np.diff(cells // _CELLS)) + 1)
    return (rows for rows in pieces if len(rows))


def marginals_at(table: Ragged, displays: Displays) -> Floats:
    """P(a_k in slot k) of every shown slot, from the marginals of all items."""
    out, ranking = np.empty(int(displays.slots.sum())), displays.ranking
    kernel.shown_marginals(
        table.values, table.starts, displays.eligible, ranking.values, ranking.starts, ranking.lengths, out
    )
    return out


def shown_marginals(policy: Any, displays: Displays) -> Floats:
    """P(a_k in slot k) of every shown slot, under a policy that knows its marginals."""
    parts = [displays.take(rows) for rows in in_pieces(displays)]
    return np.concatenate([np.empty(0), *(marginals_at(policy.slot_marginals(part), part) for part in parts)])


def counted_notes(pair: PolicyPair) -> list[str]:
    """What a reader must know where marginals are counted over draws."""
    return [
        f"the {role} cannot say how likely an item is in a slot: this was counted over {DRAWS:,} draws for each"
        " rewarded row, and weights by slot are noisy."
        for role in ("control", "treatment")
        if not knows_marginals(getattr(pair, role)) and getattr(pair, role).knows_all_slots
    ]

"""P(item in slot) of every eligible item, for expectations over all that a policy may show."""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.policies.base import Policy
from foretest.policies.call_size import rankings_at_once
from foretest.weights.policy_pair import PolicyPair
from foretest.weights.slot_marginals import slot_marginals


def item_probabilities(policy: Any, displays: Displays, pair: PolicyPair, log_w: Floats) -> Floats:
    """P(item in slot), of all displays one after the other, slot by slot; `log_w` as for marginals that are counted.

    Where every display shows one item these are the policy's own probabilities; else the marginals, exact where the
    policy knows them.
    """
    if (displays.slots == 1).all():
        return action_probabilities(policy, displays)
    return np.asarray(slot_marginals(policy, displays, pair, log_w).flat())


def action_probabilities(policy: Policy, displays: Displays) -> Floats:
    """π(a|x) of every eligible item of displays that show one item each, one display after the other."""
    eligible = displays.eligible
    probabilities = np.empty(int(eligible.sum()))
    begin = np.cumsum(eligible) - eligible
    at_once = rankings_at_once(displays)
    pieces = np.split(np.arange(len(displays)), np.flatnonzero(np.diff((begin + eligible) // at_once)) + 1)
    for rows in (piece for piece in pieces if len(piece)):
        part = every_action(displays.take(rows))
        here = slice(int(begin[rows[0]]), int(begin[rows[-1]] + eligible[rows[-1]]))
        probabilities[here] = np.exp(policy.log_prob(part, part.ranking))
    return probabilities


def every_action(displays: Displays) -> Displays:
    """Each display as often as it has eligible items, with these one after the other as what is shown."""
    eligible = displays.eligible
    row = np.repeat(np.arange(len(displays)), eligible)
    item = np.arange(len(row)) - np.repeat(np.cumsum(eligible) - eligible, eligible)
    repeated = displays.take(row)
    return Displays(
        repeated.columns, Ragged.packed(item.astype(np.int32), np.ones(len(row), np.int64)), repeated.eligible,
        repeated.identity, repeated.key_columns,
    )  # fmt: skip

"""How much of what the treatment shows the control could not: items outside the control's own list."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import places_within
from foretest.policies.base import Policy
from foretest.policies.own_candidates import OwnCandidates, items_of
from foretest.weights.policy_pair import PolicyPair
from foretest.weights.slot_marginals import in_pieces, knows_marginals

Ints = npt.NDArray[np.int64]

DISPLAYS = 4096  # of the sample, the first by hash: enough for a mean to a hundredth
DRAWS = 16  # of each, where the treatment does not know its marginals
OUTSIDE = "outside"
_STREAM = 104  # of random numbers


def outside_columns(plan: FoldPlan, displays: Displays) -> Columns:
    """The share of each display's slots in which the treatment shows an item that is not in the control's list, all
    slots alike: exact where the treatment knows its marginals, else over draws. NaN beyond the first displays; no
    column where the log has one list for all."""
    control, treatment = plan.settings.control, plan.settings.treatment
    if not isinstance(control, OwnCandidates) or not isinstance(treatment, OwnCandidates):
        return {}
    share = np.full(len(displays), np.nan)
    first = np.arange(min(DISPLAYS, len(displays)))
    inside = items_of(control, displays)[first]
    share[first] = 0.0
    some = first[displays.eligible[first] > inside]
    for rows in in_pieces(displays.take(some)) if len(some) else ():
        at = some[rows]
        part = displays.take(at)
        outside = _exact if knows_marginals(treatment) else _drawn
        share[at] = outside(treatment, part, inside[at], plan.normaliser.pair)
    return {OUTSIDE: share}


def _exact(treatment: OwnCandidates, displays: Displays, inside: Ints, pair: PolicyPair) -> Floats:
    """1/K Σ_k Σ_i P_t(i in slot k) over the items i outside."""
    marginals = treatment.slot_marginals(displays)
    row = np.repeat(np.arange(len(displays)), marginals.lengths)
    item = places_within(marginals.lengths) % displays.eligible[row]
    mass = np.where(item >= inside[row], marginals.flat(), 0.0)
    return np.asarray(np.bincount(row, weights=mass, minlength=len(displays)) / displays.slots)


def _drawn(treatment: Policy, displays: Displays, inside: Ints, pair: PolicyPair) -> Floats:
    """The same, counted over draws."""
    part = displays.take(np.repeat(np.arange(len(displays)), DRAWS))
    drawn = treatment.sample(part, pair.uniforms(displays, _STREAM, 0, DRAWS))
    row = np.repeat(np.repeat(np.arange(len(displays)), DRAWS), drawn.lengths)
    outside = (drawn.flat() >= inside[row]).astype(np.float64)
    return np.asarray(np.bincount(row, weights=outside, minlength=len(displays)) / (DRAWS * displays.slots))

"""Slots and their company: the worth of what is shown next to a slot's item, less the control's average there.

If what a slot earns depends on its own item and place alone, then given a reward of item i in slot k the other shown
items are a draw of the control's p(· | a_k = i). With S the sum of what they are worth by the control's own scores,
S − E_p[S | a_k = i] has mean 0 over rewards. So it has with any other function of the company in the place of S: some
look for items that help or hinder each other, whatever their scores. They are α(i)·Σ_j β(j) over the items j above slot
k, with PAIRS different signs α and β of the items' positions in the candidate lists. The same and S are also there for
the items below slot k, less their mean given all items down to it: 0 also where rewards depend on what stands above.

Any unbiased estimate of the expectation will do that is independent of the shown ranking: for Plackett-Luce a few
weighted rankings of the others, for any other policy those of its draws that have item i in slot k, and of the items
below those that have the same items above, too. A slot that no draw matches is left out, which does not depend on its
company.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels import company as kernel
from foretest.kernels.random import uniforms
from foretest.kernels.slot_marginals import centre_ranks
from foretest.policies import PlackettLuce, Thurstone
from foretest.policies.base import Policy
from foretest.policies.logging_mixture import loggers_of
from foretest.policies.own_candidates import OwnCandidates
from foretest.weights.slot_marginals import shown_marginals

#: rankings of the others beside a rewarded item, where they are weighted; they add an eighth to the variance
DRAWS = 8
#: rankings of a display, where those are used that have the rewarded item in its slot
DISPLAY_DRAWS = 32
#: functions of the company by pairs of items, of the items above and as many of those below
PAIRS = 8
COLUMNS = 2 * (1 + PAIRS)
#: of an item's score from the centre, in units of the noise
FARTHEST = 2.0
_LOWEST = -700.0  # of a score: below, its odds are 0, and 0 times infinity is no number
_ROUNDING = 1e-9  # sums of the same items in another order differ by less
_STREAM = 103  # of random numbers
_CELLS = 1 << 21  # random numbers in memory at a time

Flags = npt.NDArray[np.bool_]


def has_company(control: Policy) -> bool:
    """Can the company of a rewarded item be compared with what the control puts there? It must be drawn, by scores."""
    return control.can_draw and bool(control.score_columns)


def company_excess(
    control: Policy, displays: Displays, earns: Flags, seed: int, marginals: Floats | None = None
) -> Floats:
    """For each shown slot that earns, unbiased estimates of S − E_p[S | a_k = i] by column: first with the worth by
    scores, then by PAIRS pairs with the items above. As many columns follow with the items below alone, of
    S − E_p[S | a_1..a_k], by scores and by pairs. NaN where there are none.

    `marginals` has P_p(a_k in k) of every shown slot, where it is known. With several loggers each row is compared with
    its own.
    """
    if isinstance(control, OwnCandidates):  # whose items come first in every union: positions are the same
        return company_excess(control.policy, control.own(displays).displays, earns, seed, marginals)
    out = np.full((len(earns), COLUMNS), np.nan)
    for policy, rows in loggers_of(control).by_logger(displays):
        if policy is not control and not has_company(policy):
            continue
        if len(rows) == len(displays):
            return _excess_of_one(policy, displays, earns, seed, marginals if policy is control else None)
        is_mine = np.zeros(len(displays), np.bool_)
        is_mine[rows] = True
        mine = np.repeat(is_mine, displays.slots)
        out[mine] = _excess_of_one(policy, displays.take(rows), earns[mine], seed, None)
    return out


def _excess_of_one(
    control: Policy, displays: Displays, earns: Flags, seed: int, marginals: Floats | None
) -> Floats:  # fmt: skip
    """The same, of one policy that drew all displays."""
    if type(control) is PlackettLuce:
        excess = _beside(control, displays, earns, seed, marginals)
    else:
        excess = _among_draws(control, displays, earns, seed)
    excess[np.abs(excess) < _ROUNDING] = 0.0
    shown = displays.ranking.flat()
    own = pair_signs(int(shown.max(initial=0)) + 1)[0][:, shown].T
    excess[:, 1 : 1 + PAIRS] *= own
    excess[:, 2 + PAIRS :] *= own
    return excess


def _beside(
    control: PlackettLuce, displays: Displays, earns: Flags, seed: int, marginals: Floats | None
) -> Floats:  # fmt: skip
    """By rankings of the others, weighted by how likely the item is to enter at its slot."""
    if marginals is None:
        marginals = shown_marginals(control, displays)
    s, ranking, out = displays[control.scores], displays.ranking, np.empty((len(earns), COLUMNS))
    worth = item_worth(control, displays)
    kernel.plackett_luce_company(
        s.values, s.starts, s.lengths, worth.values, worth.starts, _beside_signs(worth), ranking.values, ranking.starts,
        ranking.lengths, 1.0 / control.temperature, earns, marginals, displays.key(), seed, _STREAM, DRAWS, out,
    )  # fmt: skip
    return out


def _among_draws(control: Policy, displays: Displays, earns: Flags, seed: int) -> Floats:
    """By those of the display's draws that have the item in its slot."""
    out, owner = np.full((len(earns), COLUMNS), np.nan), np.repeat(np.arange(len(displays)), displays.slots)
    rows = np.flatnonzero(np.bincount(owner[earns]))
    width = int(displays.eligible.max(initial=0)) + 1
    step = max(1, _CELLS // (DISPLAY_DRAWS * width))
    for some in (rows[begin : begin + step] for begin in range(0, len(rows), step)):
        part, here = displays.take(some), np.isin(owner, some)
        u = np.asarray(uniforms(seed, _STREAM, part.key(), 0, DISPLAY_DRAWS, width)).reshape(-1, width)
        repeated = displays.take(np.repeat(some, DISPLAY_DRAWS))
        drawn = control.sample(repeated, u)
        worth, excess = item_worth(control, part), np.empty((int(part.slots.sum()), COLUMNS))
        kernel.among_draws(
            worth.values, worth.starts, worth.lengths, _beside_signs(worth), part.ranking.values, part.ranking.starts,
            part.slots, earns[here], drawn.flat(), DISPLAY_DRAWS, excess,
        )  # fmt: skip
        out[here] = excess
    return out


def _beside_signs(worth: Ragged) -> Floats:
    """β of all positions of the longest list."""
    return pair_signs(int(worth.lengths.max(initial=0)))[1]


def pair_signs(positions: int) -> tuple[Floats, Floats]:
    """α and β, each PAIRS signs for every position: bits of a hash (the mixer of SplitMix64), the same for ever."""
    z = (np.arange(positions, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (z >> np.arange(2 * PAIRS, dtype=np.uint64)[:, None]) & np.uint64(1)
    signs = 2.0 * bits.astype(np.float64) - 1.0
    return signs[:PAIRS], signs[PAIRS:]


def item_worth(control: Policy, displays: Displays) -> Ragged:
    """What S adds up: a number for each eligible item, from the control's scores.

    Of Plackett-Luce and Thurstone the score in units of the noise, less the mean of the scores by their odds, and no
    farther from it than FARTHEST: items that are hardly ever shown must not decide. Of a policy that goes by the order
    of its scores alone, −log of the place in that order. The origin is of no account: both sums have K − 1 items.
    """
    lists = displays[control.score_columns[0]]
    starts = np.cumsum(lists.lengths) - lists.lengths
    if not isinstance(control, PlackettLuce | Thurstone):
        ranks = np.empty(int(lists.lengths.sum()), np.int64)
        centre_ranks(lists.values, lists.starts, lists.lengths, ranks, starts)
        return Ragged(-np.log1p(ranks), starts, lists.lengths)
    noise = control.temperature if isinstance(control, PlackettLuce) else control.sigma
    s = lists.flat().astype(np.float64)
    with np.errstate(over="ignore"):
        x = (s - np.repeat(np.maximum.reduceat(s, starts), lists.lengths)) / noise
    odds = np.exp(x)
    centre = np.add.reduceat(odds * np.maximum(x, _LOWEST), starts) / np.add.reduceat(odds, starts)
    return Ragged(np.clip(x - np.repeat(centre, lists.lengths), -FARTHEST, FARTHEST), starts, lists.lengths)

"""Rankings that are drawn several times for one display: where a policy is dear to ask, it is asked once about each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ints, Ragged
from foretest.policies.all_rankings import parts_of
from foretest.policies.base import Policy
from foretest.policies.thurstone import Thurstone

_WORTH_IT = 0.9  # of the rankings at most are different: else leaving out the others saves less than it takes
_TRIED = 256  # rankings, of the first displays, that tell whether to look at all others


class Distinct(NamedTuple):
    """The different rankings among some."""

    rows: Ints  # one row with each of them: display after display, those that begin alike side by side
    place: Ints  # of each row: where its ranking is among `rows`


def log_probs(policies: Sequence[Policy], displays: Displays, rankings: Ragged, count: int) -> list[Floats]:
    """log π of rankings, `count` of each display one after the other, for several policies.

    `displays` has a row for each ranking. What a policy says of a row does not depend on other rows, so that a ranking
    that a display has twice needs one answer: a user's own policy, or one that integrates, is asked for no more.
    """
    distinct = (
        distinct_rankings(displays, rankings, count) if _is_worth_it(policies, displays, rankings, count) else None
    )
    if distinct is None:
        return [np.asarray(policy.log_prob(displays, rankings), np.float64) for policy in policies]
    some, once = displays.take(distinct.rows), rankings.take(distinct.rows)
    return [np.asarray(policy.log_prob(some, once), np.float64)[distinct.place] for policy in policies]


def distinct_rankings(displays: Displays, rankings: Ragged, count: int) -> Distinct | None:
    """The different rankings of each display; None where they have no whole numbers of 64 bits as names.

    >>> displays = Displays({}, Ragged.of([[0, 1]] * 4), np.full(4, 3), np.zeros(4, np.uint64))
    >>> distinct = distinct_rankings(displays, Ragged.of([[2, 0], [1, 2], [2, 0], [1, 0]]), 4)
    >>> distinct.rows.tolist(), distinct.place.tolist()
    ([3, 1, 0], [2, 1, 2, 0])
    """
    base, slots = int(displays.eligible.max(initial=0)) + 1, rankings.padded(-1)
    if base ** slots.shape[1] >= 1 << 63:
        return None
    names = np.zeros(len(rankings), np.int64)
    for items in slots.T:
        names = names * base + (items + 1)
    by_display = names.reshape(-1, count)
    order = np.argsort(by_display, axis=1, kind="stable") + np.arange(0, len(names), count)[:, None]
    ordered = names[order]
    is_first = np.ones(order.shape, np.bool_)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    place = np.empty(len(names), np.int64)
    place[order.ravel()] = np.cumsum(is_first) - 1
    return Distinct(order[is_first], place)


def _is_worth_it(policies: Sequence[Policy], displays: Displays, rankings: Ragged, count: int) -> bool:
    """Is a policy dear, and are many rankings of the first displays repeated?"""
    if not any(map(_is_dear, policies)):
        return False
    first = np.arange(min(max(1, _TRIED // count) * count, len(rankings)))
    distinct = distinct_rankings(displays.take(first), rankings.take(first), count)
    return distinct is not None and len(distinct.rows) < _WORTH_IT * len(first)


def _is_dear(policy: Policy) -> bool:
    """Does a probability take some hundred times as long as one of the compiled kernels?"""
    from foretest.policies import POLICIES

    return any(type(part) is Thurstone or type(part) not in POLICIES.values() for part in parts_of(policy))

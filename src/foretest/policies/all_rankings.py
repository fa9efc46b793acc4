"""A policy over all rankings of a display: do its probabilities sum to 1, and what should its draws look like?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from math import perm
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.policies.base import Policy
from foretest.policies.call_size import rankings_at_once


class AllRankings(NamedTuple):
    """Every ranking of one display, with its log-probability."""

    display: int
    rankings: npt.NDArray[np.int32]  # rankings × slots
    log_prob: Floats


def ranking_counts(displays: Displays) -> npt.NDArray[np.float64]:
    """M!/(M−K)! of each display; infinite where it is beyond a float.

    >>> displays = Displays({}, Ragged.of([[0, 1], [2]]), np.array([5, 3]), np.zeros(2, np.uint64))
    >>> ranking_counts(displays).tolist()
    [20.0, 3.0]
    """
    counts = [perm(int(m), int(k)) for m, k in zip(displays.eligible, displays.slots, strict=True)]
    return np.array([float(count) if count < 1 << 62 else np.inf for count in counts], np.float64)


def over_all_rankings(policy: Policy, displays: Displays) -> Iterator[AllRankings]:
    """The displays one after the other, some priced together; their rankings must be few."""
    waiting: list[tuple[int, npt.NDArray[np.int32]]] = []
    at_once = rankings_at_once(displays)
    for display, (m, k) in enumerate(zip(displays.eligible.tolist(), displays.slots.tolist(), strict=True)):
        waiting.append((display, np.array(list(permutations(range(m), k)), np.int32).reshape(-1, k)))
        if sum(len(rankings) for _, rankings in waiting) >= at_once:
            yield from _priced(policy, displays, waiting)
            waiting = []
    if waiting:
        yield from _priced(policy, displays, waiting)


def _priced(policy: Policy, displays: Displays, some: list[tuple[int, npt.NDArray[np.int32]]]) -> Iterator[AllRankings]:
    counts = [len(rankings) for _, rankings in some]
    part = displays.take(np.repeat([display for display, _ in some], counts))
    flat = np.concatenate([rankings.ravel() for _, rankings in some])
    log_prob = np.asarray(policy.log_prob(part, Ragged.packed(flat, part.slots.copy())), np.float64)
    ends = np.cumsum(counts)
    for (display, rankings), begin, end in zip(some, ends - counts, ends, strict=True):
        yield AllRankings(display, rankings, log_prob[begin:end])


def is_own(policy: Policy) -> bool:
    """Is the policy, or a part of a mixture or of several loggers, of a class that Foretest does not have?"""
    from foretest.policies import POLICIES

    return any(type(part) not in POLICIES.values() for part in parts_of(policy))


def parts_of(policy: Policy) -> Iterator[Policy]:
    """The policies that a mixture, or a control of several loggers, is made of; any other is its own part."""
    from foretest.policies.logging_mixture import components_of
    from foretest.policies.own_candidates import without_list

    policy = without_list(policy)
    components = components_of(policy)
    for part in components:
        yield from parts_of(part)
    if not components:
        yield policy

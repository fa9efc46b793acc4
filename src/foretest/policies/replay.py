"""The rankings that `foretest.serving` drew, drawn again: they follow from its seed and the ids alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats, Hashes
from foretest.displays.ragged import Ragged, places_within
from foretest.errors import BadInput
from foretest.kernels import replay as kernel
from foretest.policies.adapter import class_name
from foretest.policies.base import Policy, is_open, known, replay_seed
from foretest.policies.by_row import picked_by
from foretest.policies.epsilon_greedy import EpsilonGreedy
from foretest.policies.mallows import Mallows
from foretest.policies.mixture import Mixture
from foretest.policies.own_candidates import OwnCandidates, without_list
from foretest.policies.plackett_luce import PlackettLuce
from foretest.policies.swap_neighbours import SwapNeighbours
from foretest.policies.top_k import TopK

_SERVED = (PlackettLuce, EpsilonGreedy, Mallows, SwapNeighbours, TopK, Mixture)  # what a service can draw from


def replay_seed_of(policy: Policy) -> int | None:
    """The seed that the policy drew with, where its log can be replayed."""
    return replay_seed(without_list(policy))


def without_replay(policy: Policy) -> Policy:
    """The same policy in another role than that of the one that drew the log."""
    if replay_seed_of(policy) is None:
        return policy
    if isinstance(policy, OwnCandidates):
        return OwnCandidates(without_replay(policy.policy), policy.candidates)
    other = copy.copy(policy)
    other._replay_seed = None
    return other


def refuse_replay(policy: Policy, role: str) -> None:
    """Refuse to replay a policy that `foretest.serving` does not have, or of which not all is known."""
    policy = without_list(policy)
    if any(replay_seed_of(part) is not None for _, part in getattr(policy, "components", ())):
        raise BadInput(f"{role} has replay_seed in a component: give it once, beside components.")
    if replay_seed_of(policy) is None:
        return
    part = not_served(policy)
    if part is not None:
        raise BadInput(
            f"{role} has replay_seed, and {class_name(part)} is none of the policies that foretest.serving draws"
            " from: leave it out."
        )
    for number in ("temperature", "epsilon"):
        if is_open(getattr(policy, number, 0.0)):
            raise BadInput(f'{role} has replay_seed and {number} = "fit": a replay needs the number that served.')


def not_served(policy: Policy) -> Policy | None:
    """The policy, or the first component of a mixture, that `foretest.serving` does not have; None if it has all."""
    return next((part for part in _parts(without_list(policy)) if not isinstance(part, _SERVED)), None)


def _parts(policy: Policy) -> Iterator[Policy]:
    """The policy, or the components of a mixture."""
    if isinstance(policy, Mixture):
        for _, part in policy.components:
            yield from _parts(without_list(part))
    else:
        yield policy


def replays(policy: Policy, displays: Displays, seed: int) -> npt.NDArray[np.bool_]:
    """Does each display, with its id as identity, show the ranking that follows from the seed and its id?"""
    if isinstance(policy, OwnCandidates):
        own = policy.own(displays)
        return np.asarray(replays(policy.policy, own.displays, seed) & ~own.outside)
    drawn, shown = replayed_rankings(policy, displays, seed), displays.ranking
    row = np.repeat(np.arange(len(displays)), shown.lengths)
    other = np.bincount(row[drawn.flat() != shown.flat()], minlength=len(displays))
    return np.asarray(other == 0)


def replayed_rankings(policy: Policy, displays: Displays, seed: int) -> Ragged:
    """The ranking that a service with this policy and seed draws for each display."""
    from foretest.serving.generator import STREAM  # here and below: a log that is not replayed needs no sampler

    states = kernel.display_states(np.uint64(seed), np.uint64(STREAM), displays.identity)
    return _drawn(policy, displays, states, kernel.first_numbers(states, 1)[:, 0])


def _drawn(policy: Policy, displays: Displays, states: Hashes, first: Floats) -> Ragged:
    """One ranking per display by the numbers of its state, `first` in place of the first of them."""
    slots = displays.slots
    if isinstance(policy, Mixture):
        return _of_mixture(policy, displays, states, first)
    if isinstance(policy, PlackettLuce):
        from foretest.serving.plackett_luce import WIDE_GAP, WIDE_SPREAD

        s, drawn = displays[policy.scores], np.empty(int(slots.sum()), np.int32)
        inverse = 1.0 / known("temperature", policy.temperature)
        kernel.gumbel_rankings(
            s.values, s.starts, s.lengths, slots, inverse, states, first, WIDE_SPREAD, WIDE_GAP, drawn
        )
        return Ragged.packed(drawn, slots)
    uniforms = kernel.first_numbers(states, int(slots.max(initial=0)) + 1)
    uniforms[:, 0] = first
    return policy.sample(displays, uniforms)


def _of_mixture(policy: Mixture, displays: Displays, states: Hashes, first: Floats) -> Ragged:
    """The first number picks a component, and its place within that one's share takes its place."""
    shares = np.broadcast_to([share for share, _ in policy.components], (len(displays), len(policy.components)))
    picked, left = picked_by(first[:, None], shares)
    slots = displays.slots
    drawn, starts = np.empty(int(slots.sum()), np.int32), np.cumsum(slots) - slots
    for j, (_, component) in enumerate(policy.components):
        rows = np.flatnonzero(picked == j)
        if len(rows):
            part = _drawn(component, displays.take(rows), states[rows], left[rows, 0])
            drawn[np.repeat(starts[rows], part.lengths) + places_within(part.lengths)] = part.flat()
    return Ragged.packed(drawn, slots)

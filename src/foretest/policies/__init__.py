"""Policies: distributions over top-K rankings, one per file."""

from __future__ import annotations

from foretest.policies.base import Policy
from foretest.policies.epsilon_greedy import EpsilonGreedy
from foretest.policies.fixed import Fixed
from foretest.policies.logged import Logged
from foretest.policies.logged_slots import LoggedSlots
from foretest.policies.mallows import Mallows
from foretest.policies.mixture import Mixture
from foretest.policies.own_candidates import OwnCandidates
from foretest.policies.plackett_luce import PlackettLuce
from foretest.policies.probabilities import Probabilities
from foretest.policies.swap_neighbours import SwapNeighbours
from foretest.policies.thurstone import Thurstone
from foretest.policies.top_k import TopK

POLICIES: dict[str, type[Policy]] = {
    "plackett-luce": PlackettLuce,
    "bradley-terry-luce": PlackettLuce,
    "thurstone": Thurstone,
    "mallows": Mallows,
    "epsilon-greedy": EpsilonGreedy,
    "top-k": TopK,
    "fixed": Fixed,
    "swap-neighbours": SwapNeighbours,
    "probabilities": Probabilities,
    "logged": Logged,
    "logged-slots": LoggedSlots,
    "mixture": Mixture,
}

__all__ = [
    "POLICIES",
    "EpsilonGreedy",
    "Fixed",
    "Logged",
    "LoggedSlots",
    "Mallows",
    "Mixture",
    "OwnCandidates",
    "PlackettLuce",
    "Policy",
    "Probabilities",
    "SwapNeighbours",
    "Thurstone",
    "TopK",
]

"""A policy from the table [control] of a settings file, without the names of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from foretest.errors import BadInput, choose, nearest
from foretest.serving.base import ServingPolicy
from foretest.serving.mixture import Mixture
from foretest.serving.plackett_luce import PlackettLuce
from foretest.serving.residual_ranks import EpsilonGreedy, Mallows, TopK
from foretest.serving.swap_neighbours import SwapNeighbours

POLICIES: dict[str, type[Any]] = {
    "plackett-luce": PlackettLuce,
    "bradley-terry-luce": PlackettLuce,
    "mallows": Mallows,
    "epsilon-greedy": EpsilonGreedy,
    "top-k": TopK,
    "swap-neighbours": SwapNeighbours,
    "mixture": Mixture,
}
#: what a settings file names beside the policy's numbers, and a service has at hand itself
_NOT_NAMED = ("scores", "log_prob", "prob", "candidates", "replay_seed")


def policy_from_table(table: Mapping[str, Any]) -> ServingPolicy:
    """The policy that a table describes.

    Parameters
    ----------
    table: `policy` and its numbers, as in the table `[control]` of a settings file, without the names of columns.

    Returns
    -------
    A policy for `Sampler`.

    >>> policy_from_table({"policy": "plackett-luce", "temperature": 0.5})
    PlackettLuce(temperature=0.5)
    """
    if not isinstance(table, Mapping) or "policy" not in table:
        raise BadInput(f'policy = {table!r}: expected a table, as in {{"policy": "plackett-luce"}}.')
    numbers = {key: value for key, value in table.items() if key != "policy"}
    name = choose("policy", table["policy"], POLICIES)
    cls = POLICIES[name]
    known = [f.name for f in fields(cls) if f.init]
    for key in numbers:
        if key in _NOT_NAMED:
            raise BadInput(f'policy = "{name}": leave {key} out; a service gives scores, ids and its seed itself.')
        if key not in known:
            raise BadInput(f'policy = "{name}" has an unknown key {key!r}.{nearest(str(key), known)}')
    if cls is Mixture:
        numbers["components"] = _components(numbers.get("components"))
    missing = [key for key in known if key not in numbers and cls is not PlackettLuce]
    if missing:
        raise BadInput(f'policy = "{name}" needs the key {missing[0]}.')
    policy: ServingPolicy = cls(**numbers)
    return policy


def _components(tables: Any) -> list[tuple[float, ServingPolicy]]:
    """The components of a mixture, each a table with its share."""
    if not isinstance(tables, list | tuple) or not tables or not all(isinstance(table, Mapping) for table in tables):
        raise BadInput("a mixture needs components, a list of tables, each a policy with its share.")
    parts = []
    for number, table in enumerate(tables, start=1):
        if "share" not in table:
            raise BadInput(f"component {number} of the mixture has no share: add share = 0.5, or another number.")
        rest = {key: value for key, value in table.items() if key != "share"}
        parts.append((table["share"], policy_from_table(rest)))
    return parts

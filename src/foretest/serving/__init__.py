"""Inside a production service: rankings drawn from a policy, with the row to log of each.

It imports NumPy and the standard library alone. What is drawn follows from a seed and the display's id, so that a log
can be replayed row by row (`[control] replay_seed`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foretest.errors import BadInput
from foretest.serving.mixture import Mixture
from foretest.serving.plackett_luce import PlackettLuce
from foretest.serving.residual_ranks import EpsilonGreedy, Mallows, TopK
from foretest.serving.sampler import Draw, Sampler
from foretest.serving.swap_neighbours import SwapNeighbours
from foretest.serving.tables import policy_from_table

if TYPE_CHECKING:
    from foretest.serving.vectors import PUBLISHED_VECTORS, check_vectors

__all__ = [
    "PUBLISHED_VECTORS",
    "BadInput",
    "Draw",
    "EpsilonGreedy",
    "Mallows",
    "Mixture",
    "PlackettLuce",
    "Sampler",
    "SwapNeighbours",
    "TopK",
    "check_vectors",
    "policy_from_table",
]


def __getattr__(name: str) -> Any:
    """Vectors are for tests: a service does not wait for what they import."""
    if name not in ("PUBLISHED_VECTORS", "check_vectors"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from foretest.serving import vectors

    return getattr(vectors, name)

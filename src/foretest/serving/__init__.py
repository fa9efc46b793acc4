"""Inside a production service: rankings drawn from a policy, with the row to log of each.

It imports NumPy and the standard library alone. What is drawn follows from a seed and the display's id, so that a log
can be replayed row by row (`[control] replay_seed`).
"""

from __future__ import annotations

from foretest.errors import BadInput
from foretest.serving.mixture import Mixture
from foretest.serving.plackett_luce import PlackettLuce
from foretest.serving.residual_ranks import EpsilonGreedy, Mallows, TopK
from foretest.serving.sampler import Draw, Sampler
from foretest.serving.swap_neighbours import SwapNeighbours
from foretest.serving.tables import policy_from_table

__all__ = [
    "BadInput",
    "Draw",
    "EpsilonGreedy",
    "Mallows",
    "Mixture",
    "PlackettLuce",
    "Sampler",
    "SwapNeighbours",
    "TopK",
    "policy_from_table",
]

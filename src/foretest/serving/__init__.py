"""Inside a production service: rankings drawn from a policy, with the row to log of each, and writers of such rows.

It imports NumPy and the standard library alone; a writer of Parquet imports PyArrow. What is drawn follows from a seed
and the display's id, so that a log can be replayed row by row (`[control] replay_seed`).
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
    from foretest.serving.writer import LogNotWritten, LogWriter

__all__ = [
    "PUBLISHED_VECTORS",
    "BadInput",
    "Draw",
    "EpsilonGreedy",
    "LogNotWritten",
    "LogWriter",
    "Mallows",
    "Mixture",
    "PlackettLuce",
    "Sampler",
    "SwapNeighbours",
    "TopK",
    "check_vectors",
    "policy_from_table",
]


_LATER = {
    "LogNotWritten": "writer",
    "LogWriter": "writer",
    "PUBLISHED_VECTORS": "vectors",
    "check_vectors": "vectors",
}


def __getattr__(name: str) -> Any:
    """A service that writes its rows itself, and draws no vectors, does not wait for what these import."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)

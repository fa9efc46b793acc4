"""Foretest: what an online A/B test of a recommender would show, from the log you already have.

Public names are imported when first used, so that `foretest --help` answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from foretest._version import __version__

if TYPE_CHECKING:
    from foretest.arrow_lists import Ragged
    from foretest.displays import Displays
    from foretest.errors import BadInput
    from foretest.estimators import (
        CIS,
        DR,
        IIPS,
        IS,
        NCIS,
        NIS,
        RIPS,
        AdaptivePointNCIS,
        AdaptiveSlotNCIS,
        Estimator,
        PieceNCIS,
        PointNCIS,
        Sums,
    )  # fmt: skip
    from foretest.offline import OfflineTest
    from foretest.online import OnlineTest
    from foretest.policies import EpsilonGreedy, Logged, Mallows, Mixture, PlackettLuce, Policy, Thurstone
    from foretest.result import Result
    from foretest.roles import MetricRole
    from foretest.settings import Analysis, LogColumns, Settings
    from foretest.sources import Sql
    from foretest.weights import Capped, Uncapped, Weighting

_HOME = {
    "arrow_lists": ["Ragged"],
    "displays": ["Displays"],
    "errors": ["BadInput"],
    "estimators": [
        "CIS",
        "DR",
        "IIPS",
        "IS",
        "NCIS",
        "NIS",
        "RIPS",
        "AdaptivePointNCIS",
        "AdaptiveSlotNCIS",
        "Estimator",
        "PieceNCIS",
        "PointNCIS",
        "Sums",
    ],
    "offline": ["OfflineTest"],
    "online": ["OnlineTest"],
    "policies": ["EpsilonGreedy", "Logged", "Mallows", "Mixture", "PlackettLuce", "Policy", "Thurstone"],
    "result": ["Result"],
    "roles": ["MetricRole"],
    "settings": ["Analysis", "LogColumns", "Settings"],
    "sources": ["Sql"],
    "weights": ["Capped", "Uncapped", "Weighting"],
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CIS",
    "DR",
    "IIPS",
    "IS",
    "NCIS",
    "NIS",
    "RIPS",
    "AdaptivePointNCIS",
    "AdaptiveSlotNCIS",
    "Analysis",
    "BadInput",
    "Capped",
    "Displays",
    "EpsilonGreedy",
    "Estimator",
    "LogColumns",
    "Logged",
    "Mallows",
    "MetricRole",
    "Mixture",
    "OfflineTest",
    "OnlineTest",
    "PieceNCIS",
    "PlackettLuce",
    "PointNCIS",
    "Policy",
    "Ragged",
    "Result",
    "Settings",
    "Sql",
    "Sums",
    "Thurstone",
    "Uncapped",
    "Weighting",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"foretest.{_MODULE[name]}"), name)
    raise AttributeError(f"module 'foretest' has no attribute {name!r}")

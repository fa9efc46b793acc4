"""Estimators of the treatment's value, one per file, beside its equation."""

from __future__ import annotations

from foretest.estimators.adaptive import AdaptivePointNCIS
from foretest.estimators.adaptive_doubly_robust import AdaptivePointDR
from foretest.estimators.base import Estimator, Sums
from foretest.estimators.capped import CIS
from foretest.estimators.cascade import CascadeDR
from foretest.estimators.doubly_robust import DR
from foretest.estimators.exposure import PBM, AdaptiveExposureNCIS
from foretest.estimators.importance import IS
from foretest.estimators.normalised import NIS
from foretest.estimators.normalised_capped import NCIS
from foretest.estimators.piecewise import PieceNCIS
from foretest.estimators.pointwise import PointNCIS
from foretest.estimators.slots import IIPS, NIIPS, RIPS, AdaptiveCascadeNCIS, AdaptiveSlotNCIS

_ALL: tuple[type[Estimator], ...] = (
    IS, NIS, DR, CIS, NCIS, PieceNCIS, PointNCIS, AdaptivePointNCIS, IIPS, NIIPS, RIPS, AdaptiveSlotNCIS,
    AdaptiveCascadeNCIS,
    AdaptivePointDR, CascadeDR, PBM, AdaptiveExposureNCIS,
)  # fmt: skip
ESTIMATORS: dict[str, type[Estimator]] = {cls.key: cls for cls in _ALL}

#: whose verdict is the metric's, where the settings do not say
HEADLINES = (
    "slot-ncis-adaptive", "exposure-ncis-adaptive", "point-ncis-adaptive", "cascade-ncis-adaptive", "piece-ncis",
    "point-ncis", "ncis", "cis",
)  # fmt: skip

__all__ = [
    "CIS",
    "DR",
    "ESTIMATORS",
    "HEADLINES",
    "IIPS",
    "IS",
    "NCIS",
    "NIIPS",
    "NIS",
    "PBM",
    "RIPS",
    "AdaptiveCascadeNCIS",
    "AdaptiveExposureNCIS",
    "AdaptivePointDR",
    "AdaptivePointNCIS",
    "AdaptiveSlotNCIS",
    "CascadeDR",
    "Estimator",
    "PieceNCIS",
    "PointNCIS",
    "Sums",
]

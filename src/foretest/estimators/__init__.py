"""Estimators of the treatment's value, one a file, beside its equation."""

from __future__ import annotations

from foretest.estimators.adaptive import AdaptivePointNCIS
from foretest.estimators.base import Estimator, Sums
from foretest.estimators.capped import CIS
from foretest.estimators.doubly_robust import DR
from foretest.estimators.importance import IS
from foretest.estimators.normalised import NIS
from foretest.estimators.normalised_capped import NCIS
from foretest.estimators.piecewise import PieceNCIS
from foretest.estimators.pointwise import PointNCIS

ESTIMATORS: dict[str, type[Estimator]] = {
    cls.key: cls for cls in (IS, NIS, DR, CIS, NCIS, PieceNCIS, PointNCIS, AdaptivePointNCIS)
}

#: whose verdict is the metric's, where the settings do not say
HEADLINES = ("point-ncis-adaptive", "piece-ncis", "point-ncis", "ncis", "cis")

__all__ = [
    "CIS",
    "DR",
    "ESTIMATORS",
    "HEADLINES",
    "IS",
    "NCIS",
    "NIS",
    "AdaptivePointNCIS",
    "Estimator",
    "PieceNCIS",
    "PointNCIS",
    "Sums",
]

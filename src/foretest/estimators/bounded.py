"""Which estimators have weights with a known bound."""

from __future__ import annotations

from foretest.estimators import CIS, AdaptiveExposureNCIS, AdaptivePointNCIS, AdaptiveSlotNCIS, Estimator


def is_bounded(estimator: Estimator) -> bool:
    """Linear estimators whose weights have a known bound."""
    return type(estimator) in (CIS, AdaptivePointNCIS, AdaptiveSlotNCIS, AdaptiveExposureNCIS)

"""Which estimators have weights with a known bound."""

from __future__ import annotations

from foretest.estimators import (
    CIS,
    AdaptiveCascadeNCIS,
    AdaptiveExposureNCIS,
    AdaptivePointNCIS,
    AdaptiveSlotNCIS,
    Estimator,
)


def is_bounded(estimator: Estimator) -> bool:
    """Linear estimators whose weights have a known bound."""
    bounded = (CIS, AdaptivePointNCIS, AdaptiveSlotNCIS, AdaptiveCascadeNCIS, AdaptiveExposureNCIS)
    return type(estimator) in bounded

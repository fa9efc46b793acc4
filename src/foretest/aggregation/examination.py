"""The examination curves of a fold, by metric: given in the settings, or fitted from the log before it."""

from __future__ import annotations

from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.ledger import Account
from foretest.aggregation.quantities import SLOPE, SLOPE_UNSUPPORTED, UNSUPPORTED_REWARDS, WEIGHTED_REWARDS, Quantity
from foretest.displays.batch import Floats
from foretest.records import dataclass
from foretest.weights.examination import Curve, Curves

#: the slopes of a sum along a fitted curve, ∂S/∂log θ_k
SLOPES = {WEIGHTED_REWARDS: SLOPE, UNSUPPORTED_REWARDS: SLOPE_UNSUPPORTED}


class SlotPair(NamedTuple):
    """What the log says of two slots: θ of the second over that of the first, and the rewards behind it."""

    first: int  # from 0
    second: int
    ratio: float
    rewards: float  # effective rewards of the side that has fewer


class CurveTest(NamedTuple):
    """A test of the position-based model by the rewards that the curve is fitted on."""

    name: str
    statistic: float  # χ²
    degrees: int
    p_value: float
    rewards: float  # effective, of the pair that has fewest


@dataclass(frozen=True)
class FittedCurve:
    """θ as the control's own exploration shows it, θ_1 = 1."""

    theta: Curve
    std_error: Curve  # of θ, by unit
    pairs: tuple[SlotPair, ...]
    #: of each cell on log θ_k, in the sense that they sum to 0 and log θ of a resample is log θ̂ + Σ of its cells'
    influence: Floats = field(compare=False, repr=False)
    tests: tuple[CurveTest, ...] = ()

    @property
    def curves(self) -> Curves:
        """The curve, for all displays."""
        return Curves((self.theta,))


@dataclass(frozen=True)
class Examination:
    """The curves of every metric whose slots are known."""

    given: dict[int, Curves] = field(default_factory=dict)
    fitted: dict[int, FittedCurve] = field(default_factory=dict)

    @property
    def curves(self) -> dict[int, Curves]:
        """The curves by metric."""
        return {**self.given, **{m: fit.curves for m, fit in self.fitted.items()}}

    def to_dict(self, metric: int) -> dict[str, Any] | None:
        """A metric's curve as result.json has it; None where it has none."""
        if metric in self.fitted:
            fit = self.fitted[metric]
            pairs = [
                {"slots": [p.first + 1, p.second + 1], "ratio": p.ratio, "effective_rewards": p.rewards}
                for p in fit.pairs
            ]
            return {"kind": "fit", "theta": list(fit.theta), "std_error": list(fit.std_error), "pairs": pairs}
        if metric not in self.given:
            return None
        curves = self.given[metric]
        if curves.column is None:
            return {"kind": "given", "theta": list(curves.thetas[0])}
        by_value = {label: list(theta) for label, theta in zip(curves.labels, curves.thetas, strict=True)}
        return {"kind": "given", "column": curves.column, "curves": by_value}


def curve_error(fit: FittedCurve | None, slopes: Floats) -> Floats | float:
    """By cell, what the error of a fitted curve adds to a sum with these slopes, Σ_k ∂S/∂log θ_k · influence_k.

    Added to the sums by cell it leaves their total alone, and resamples and standard errors then have the curve's error
    in them, together with that of the sums (the product of two errors is left out).
    """
    return 0.0 if fit is None or not len(slopes) else np.asarray(fit.influence[:, : len(slopes)] @ slopes)


def sums_with_curve_error(account: Account, fit: FittedCurve, quantity: Quantity, cells: int) -> Floats:
    """Σ h r or Σ t by cell of weights by a fitted examination curve, with the error of the curve in it."""
    slopes = [account.total(SLOPES[quantity], owner=slot) for slot in range(len(fit.theta))]
    return np.asarray(account.get(quantity, size=cells) + curve_error(fit, np.array(slopes)))

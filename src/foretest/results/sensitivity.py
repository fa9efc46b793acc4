"""The sensitivity band of an estimate: what result.json has as `sensitivity`."""

from __future__ import annotations

from foretest.files import finite_or_none
from foretest.records import dataclass


@dataclass(frozen=True)
class Sensitivity:
    """The band of a point estimator in units of the effect size, and what it does to a verdict.

    Numbers that do not exist are NaN, and None in result.json.
    """

    gamma_lower: float
    gamma_upper: float
    effect_size_lower: float  # L, the lower end of the band
    effect_size_upper: float  # U
    ci_lower: float  # of the interval around the band
    ci_upper: float
    breakdown_gamma: float | None  # the Γ at which the verdict is lost; None where no Γ undoes it, or there is none
    slice_gamma: float
    slice_gamma_ci_lower: float
    slice_gamma_ci_upper: float

    def to_dict(self) -> dict[str, float | None]:
        """The fields as result.json has them."""
        settled = ("gamma_lower", "gamma_upper", "breakdown_gamma")  # finite, or None already
        return {name: value if name in settled else finite_or_none(value) for name, value in vars(self).items()}

"""The uplift day by day, as a result has it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from foretest.records import dataclass

if TYPE_CHECKING:
    from foretest.results.result import Estimate


@dataclass(frozen=True)
class Day:
    """The uplift of one day; numbers that do not exist are None."""

    day: str
    rows: int
    estimator: str
    effect_size: float | None
    effect_size_ci_lower: float | None
    effect_size_ci_upper: float | None
    rel_effect_size: float | None
    rel_effect_size_ci_lower: float | None
    rel_effect_size_ci_upper: float | None
    verdict: str

    @classmethod
    def of(cls, day: str, rows: int, estimator: str, estimate: Estimate) -> Day:
        """A day with an estimate of its rows."""
        return cls(
            day,
            rows,
            estimator,
            estimate.effect_size,
            estimate.effect_size_ci_lower,
            estimate.effect_size_ci_upper,
            estimate.rel_effect_size,
            estimate.rel_effect_size_ci_lower,
            estimate.rel_effect_size_ci_upper,
            estimate.verdict,
        )


@dataclass(frozen=True)
class Heterogeneity:
    """A test of whether the relative uplift is the same on all days."""

    chi2: float | None
    df: int
    p_value: float | None
    days: int  # how many were compared: those with enough evidence


@dataclass(frozen=True)
class Days:
    """One estimator's uplift by day, and whether days differ; no test where fewer than two days can be compared."""

    estimator: str
    days: list[Day]
    heterogeneity: Heterogeneity | None

    def to_dict(self) -> dict[str, Any]:
        """The fields of a metric that result.json has for them."""
        test = None if self.heterogeneity is None else asdict(self.heterogeneity)
        return {"days": [asdict(day) for day in self.days], "heterogeneity": test}

"""A test that is looked at while it runs: always-valid intervals, and what daily looks do to the fixed ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from foretest.files import finite_or_none, nan_if_none
from foretest.inference.always_valid import always_valid_interval, always_valid_quantile, mixture_variance
from foretest.inference.buckets import Interval
from foretest.inference.peeking import false_alarm
from foretest.online.arms import Arms
from foretest.records import dataclass
from foretest.results.result import Estimate
from foretest.settings.online import Online

DAYS = 14  # looks where the logs have no days


class AlwaysValid(NamedTuple):
    """The always-valid intervals of an uplift."""

    absolute: Interval
    relative: Interval

    def to_dict(self, verdict: str) -> dict[str, Any]:
        """The content of an estimate's `always_valid` in result.json."""
        names = ("ci_lower", "ci_upper", "rel_ci_lower", "rel_ci_upper")
        limits = (finite_or_none(limit) for limit in (*self.absolute, *self.relative))
        return {**dict(zip(names, limits, strict=True)), "verdict": verdict}


@dataclass(frozen=True)
class Sequence:
    """How a test of some number of units is judged at every look; `to_dict` is `sequential` in result.json."""

    mixture_variance: float  # ρ², in units of the variance of one unit
    tightest_at_units: int
    units: int  # of both arms, now
    quantile: float | None  # standard errors each way, now
    looks: int  # one a day
    days_known: bool  # are the looks the days of the logs?
    false_alarm: float  # of the fixed interval, with no effect, at one look or more
    false_alarm_limit: float  # of the always-valid interval, at any number of looks

    @classmethod
    def of(cls, arms: Arms, online: Online, level: float) -> Sequence:
        """Of a test with these arms."""
        variance = mixture_variance(online.sequential_units, level)
        units, days = sum(arm.n_units for arm in arms), displays_by_day(arms)
        information = list(days.values()) or [1.0] * DAYS
        return cls(
            mixture_variance=variance,
            tightest_at_units=online.sequential_units,
            units=units,
            quantile=finite_or_none(always_valid_quantile(units, variance, level)),
            looks=len(information),
            days_known=bool(days),
            false_alarm=false_alarm(information, level),
            false_alarm_limit=round(1.0 - level, 12),
        )

    def intervals(self, estimate: Estimate) -> AlwaysValid:
        """The always-valid intervals of an estimate, from the standard errors of its uplifts."""
        quantile = nan_if_none(self.quantile)
        return AlwaysValid(
            always_valid_interval(nan_if_none(estimate.effect_size), nan_if_none(estimate.std_error), quantile),
            always_valid_interval(nan_if_none(estimate.rel_effect_size), nan_if_none(estimate.rel_std_error), quantile),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def displays_by_day(arms: Arms) -> dict[str, float]:
    """The displays of both arms on each day, in order; none where the logs have no days."""
    days = {*arms.control.rows_by_day, *arms.treatment.rows_by_day}
    # dates as text are all of one length; whole numbers are in order by length first
    return {
        day: sum(arm.rows_by_day.get(day, 0.0) for arm in arms) for day in sorted(days, key=lambda day: (len(day), day))
    }

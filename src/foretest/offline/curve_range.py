"""A given examination curve is an assumption: the uplift under steeper and flatter ones, and the range over all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.estimators import AdaptiveExposureNCIS, Estimator
from foretest.files import finite_or_none
from foretest.inference.buckets import Interval, bucket_sums
from foretest.inference.sensitivity import Terms
from foretest.inference.uplift_range import range_of, shifted_ends, unsupported_shift, with_range
from foretest.inference.usual_intervals import usual_intervals
from foretest.records import dataclass
from foretest.results.result import Estimate
from foretest.results.uplift_range import BAND, Range
from foretest.weights.examination import VARIANT_NAMES


@dataclass(frozen=True)
class CurveUplift:
    """The uplift under one curve, with its range."""

    curve: str
    effect_size: float | None
    rel_effect_size: float | None
    range: Range

    def to_dict(self) -> dict[str, Any]:
        """As result.json has it."""
        return {
            "curve": self.curve, "effect_size": self.effect_size, "rel_effect_size": self.rel_effect_size,
            "rel_ci_lower": self.range.rel_ci_lower, "rel_ci_upper": self.range.rel_ci_upper,
        }  # fmt: skip


def uplift_by_curve(
    aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats | None, control: float, moved: Interval
) -> list[CurveUplift]:
    """The uplift under every variant of a given curve but the curve itself; none where it was fitted, or for other
    estimators. `moved` is how far larger bounds that the log can carry move the value."""
    plan = aggregates.plan
    if not isinstance(estimator, AdaptiveExposureNCIS) or metric not in plan.examination.given:
        return []
    uplifts = []
    for curve, name in enumerate(VARIANT_NAMES[1:], start=1):
        one = replace(estimator, curve=curve)
        intervals = usual_intervals(aggregates, one, bucket_sums(aggregates, one, metric), counts)
        terms = Terms.of(aggregates, plan.weighting(one), metric)
        unsupported, gamma = terms.mean(terms.t), plan.gamma(one)
        shift = unsupported_shift(unsupported, gamma, moved)
        absolute = shifted_ends(intervals.absolute.limits, shift)
        relative = shifted_ends(intervals.relative.limits, shift, control) if control else None
        limits = range_of(BAND, absolute, control, relative)
        absolute_size, relative_size = (
            finite_or_none(uplift.value) for uplift in (intervals.absolute, intervals.relative)
        )
        uplifts.append(CurveUplift(name, absolute_size, relative_size, limits))
    return uplifts


def calibrated_over_curves(calibrated: Estimate, plain: Estimate) -> Estimate:
    """A calibrated estimate whose range reaches as far as other curves than the given one move the plain estimate."""
    limits = calibrated.range
    if not plain.curves or limits is None or limits.ci_lower is None or limits.ci_upper is None:
        return calibrated

    def shifts(name: str) -> list[float]:
        own, others = getattr(plain, name), [curve[name] for curve in plain.curves or ()]
        return [0.0, *(other - own for other in others if other is not None and own is not None)]

    absolute, relative = shifts("effect_size"), shifts("rel_effect_size")
    moved = Interval(limits.ci_lower + min(absolute), limits.ci_upper + max(absolute))
    rel_lower, rel_upper = limits.rel_ci_lower, limits.rel_ci_upper
    reach = Range(
        limits.kind, moved.lower, moved.upper, None if rel_lower is None else rel_lower + min(relative),
        None if rel_upper is None else rel_upper + max(relative),
    )  # fmt: skip
    noise = Interval(limits.ci_lower, limits.ci_upper)
    control = (calibrated.treatment or 0.0) - (calibrated.effect_size or 0.0)
    curves = [_moved_by_curve(calibrated, plain, limits, curve) for curve in plain.curves]
    over_curves = with_range(calibrated, reach, noise, calibrated.verdict != "insufficient", control)
    return replace(over_curves, curves=curves)


def _moved_by_curve(calibrated: Estimate, plain: Estimate, limits: Range, curve: dict[str, Any]) -> dict[str, Any]:
    """The calibrated uplift under another curve: moved as far as the plain one is."""

    def moved(value: float | None, name: str) -> float | None:
        own, other = getattr(plain, name), curve[name]
        return None if value is None or own is None or other is None else float(value + other - own)

    return {
        "curve": curve["curve"],
        "effect_size": moved(calibrated.effect_size, "effect_size"),
        "rel_effect_size": moved(calibrated.rel_effect_size, "rel_effect_size"),
        "rel_ci_lower": moved(limits.rel_ci_lower, "rel_effect_size"),
        "rel_ci_upper": moved(limits.rel_ci_upper, "rel_effect_size"),
    }


def hull(ranges: list[Range]) -> Range:
    """The range over several: that of the first where a limit of another does not exist.

    >>> hull([Range("band", 0.0, 2.0, 0.0, 0.2), Range("band", -1.0, 1.0, -0.1, 0.1)]).ci_lower
    -1.0
    """
    first = ranges[0]

    def end(name: str, choose: Callable[[list[float]], float]) -> float | None:
        ends: list[float | None] = [getattr(one, name) for one in ranges]
        known = [value for value in ends if value is not None]
        return choose(known) if len(known) == len(ends) else ends[0]

    return replace(
        first, ci_lower=end("ci_lower", min), ci_upper=end("ci_upper", max), rel_ci_lower=end("rel_ci_lower", min),
        rel_ci_upper=end("rel_ci_upper", max),
    )  # fmt: skip

"""The calibrated estimate: a plain one, moved by what past tests say of its unsupported part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.fold_plan import FoldPlan
from foretest.calibration.file import Calibration, Learned
from foretest.calibration.fit import CALIBRATED, ROUNDING, Fit, apply
from foretest.diagnostics.evidence import log_evidence
from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.estimators import Estimator
from foretest.files import finite_or_none
from foretest.inference.buckets import Interval
from foretest.inference.by_logger import by_unit
from foretest.inference.predicted_noise import inflation
from foretest.inference.sensitivity import Terms
from foretest.inference.uplift_estimate import StdErrors, Uplift, no_estimate, uplift_estimate
from foretest.inference.uplift_range import without_band
from foretest.inference.verdict import Judgement, decide, judge
from foretest.records import dataclass
from foretest.results.result import Estimate


@dataclass(frozen=True)
class Unsupported:
    """The unsupported term of a relative uplift x: T = mean(t)/R_p, and how both vary.

    The row terms of x + g·T are [d + g·t − (x + g·T)·r]/r̄ = (d − x·r)/r̄ + g·(t − T·r)/r̄: the variance, by unit, is
    quadratic in g.
    """

    unsupported: float
    control: float  # r̄
    variance: float  # of x
    covariance: float  # of x and T
    unsupported_variance: float  # of T

    @classmethod
    def of(cls, aggregates: Aggregates, estimator: Estimator, metric: int) -> Unsupported:
        """The term of a log, from its sums by bucket of units; NaN where the log has no reward."""
        terms = Terms.of(aggregates, aggregates.plan.weighting(estimator), metric)
        r, rows = aggregates.r[metric], terms.rows
        total = float(r.sum())
        if not total > 0.0:
            return cls(*(float("nan"),) * 5)
        x, t, mean = float(terms.d.sum()) / total, float(terms.t.sum()) / total, total / rows
        first, second = (
            by_unit(centred / mean, terms.n, terms.loggers) for centred in (terms.d - x * r, terms.t - t * r)
        )
        count = min(len(first), terms.units)

        def covariance(a: Floats, b: Floats) -> float:
            return float(count / (count - 1.0) * (a @ b) / rows**2) if count > 1 else float("nan")

        return cls(t, mean, covariance(first, first), covariance(first, second), covariance(second, second))

    def variance_at(self, gamma: float) -> float:
        """The variance of x + (Γ − 1)·T."""
        g = gamma - 1.0
        return self.variance + 2.0 * g * self.covariance + g * g * self.unsupported_variance


def judge_log(aggregates: Aggregates, estimator: Estimator, metric: int) -> Judgement:
    """Whether a log has evidence enough for normal limits of an estimator, and what a reader must know either way."""
    # what the log does not support is what the calibration is about
    return judge(replace(log_evidence(aggregates, estimator, metric), mass_kept=None))


def can_be_calibrated(plan: FoldPlan, estimator: Estimator, metric: int) -> bool:
    """Can past tests say what unsupported recommendations earn, of this metric and by this estimator?"""
    return estimator.label in CALIBRATED and plan.combination(metric).is_calibrated


def unsupported_noise(aggregates: Aggregates, estimator: Estimator, metric: int) -> dict[str, Any] | None:
    """What result.json has beside T of an estimator that can be calibrated, so that a history can start from the file:
    the standard error of T, its covariance with the relative uplift, and whether evidence is enough for normal limits;
    None where there is no T, or no calibration."""
    if not aggregates.rows or not can_be_calibrated(aggregates.plan, estimator, metric):
        return None
    term = Unsupported.of(aggregates, estimator, metric)
    if not np.isfinite([term.unsupported_variance, term.covariance]).all():
        return None
    return {
        "std_error": float(np.sqrt(max(0.0, term.unsupported_variance))), "covariance": term.covariance,
        "enough": judge_log(aggregates, estimator, metric).enough,
    }  # fmt: skip


def calibrated_estimate(
    plain: Estimate, term: Unsupported, fit: Fit, level: float, judgement: Judgement, why: str
) -> Estimate:
    """The estimate of x + (Γ0 − 1)·T; `why` says where Γ0 comes from. Absolute numbers are relative ones times r̄."""
    lower, upper = fit.interval()
    facts = {
        "gamma": finite_or_none(fit.gamma),
        "gamma_ci_lower": finite_or_none(lower), "gamma_ci_upper": finite_or_none(upper),
        "tau2": finite_or_none(fit.tau2), "tests": fit.tests, "unsupported": finite_or_none(term.unsupported),
    }  # fmt: skip
    reasons = [*judgement.reasons, why]
    if not fit.known and abs(term.unsupported) <= ROUNDING:
        fit = Fit(1.0, 0.0, 0.0, 0)  # there is nothing that Γ0 could move
    if plain.rel_effect_size is None or not np.isfinite(fit.gamma):
        estimate = no_estimate(reasons, plain.effective_positives)
    else:
        variance = term.variance_at(fit.gamma) * inflation(plain) ** 2
        moved = apply(fit, plain.rel_effect_size, term.unsupported, variance, level)
        absolute = Uplift(moved.value * term.control, Interval(moved.lower * term.control, moved.upper * term.control))
        estimate = uplift_estimate(
            (1.0 + moved.value) * term.control, StdErrors(moved.error * term.control, moved.error), absolute,
            Uplift(moved.value, Interval(moved.lower, moved.upper)),
            verdict=decide(absolute.limits, judgement.enough, term.control), reasons=reasons,
            effective_positives=plain.effective_positives,
        )  # fmt: skip
    estimate = replace(
        estimate,
        unsupported_rows=plain.unsupported_rows,
        predicted_effective_positives=plain.predicted_effective_positives,
        calibration=facts,
        unsupported=finite_or_none(term.unsupported),
    )
    return without_band(estimate, term.control)


def bound_of(plan: FoldPlan, estimator: Estimator) -> float:
    """The bound on the weights of an estimator that can be calibrated: its own, or that of the settings (of "auto" the
    least: each test has the unsupported part of its own bound)."""
    own = getattr(estimator, "weight_bound", None)
    return float(own if own is not None else plan.settings.analysis.bound_number)


def refuse_unfit(calibration: Calibration, plan: FoldPlan) -> None:
    """Refuse, before any log is read, a calibration for other settings, estimators or metrics."""
    learned = {label for by_estimator in calibration.metrics.values() for label in by_estimator}
    runs = [e for e in plan.estimators if e.label in CALIBRATED and e.label in learned]
    if not runs:
        raise BadInput(
            f"{calibration.name}: it calibrates {' and '.join(sorted(learned)) or 'nothing'}, which does not run here:"
            " add it to the estimators, or leave the calibration out."
        )
    if not set(calibration.metrics) & set(plan.metrics):
        raise BadInput(
            f"{calibration.name}: it is for the metric {' and '.join(calibration.metrics)}, and this test has"
            f" {' and '.join(plan.metrics)}: one fit is for one metric."
        )
    calibration.refuse_other_settings(plan.settings, {e.label: bound_of(plan, e) for e in runs})


class WithCalibrated(NamedTuple):
    """The estimates of a metric, each calibrated one after the plain one, and a note on every fit that is not used."""

    estimates: dict[str, Estimate]
    notes: list[str]


def with_calibrated(
    estimates: dict[str, Estimate], aggregates: Aggregates, estimators: Sequence[Estimator], metric: int,
    calibration: Calibration,
) -> WithCalibrated:  # fmt: skip
    """Add the calibrated estimates of a metric to the plain ones."""
    name, level = aggregates.plan.metrics[metric], aggregates.plan.settings.analysis.confidence_level
    learned, both, notes = calibration.metrics.get(name, {}), {}, []
    by_label = {e.label: e for e in estimators if can_be_calibrated(aggregates.plan, e, metric)}
    for label, estimate in estimates.items():
        both[label] = estimate
        if label not in by_label:
            continue
        one = learned.get(label)
        if one is None or not one.used:
            why = "the history has no fit of it" if one is None else one.reason
            notes.append(f"{CALIBRATED[label]} is left out for {name}: {why}.")
            continue
        estimator = by_label[label]
        term = Unsupported.of(aggregates, estimator, metric)
        judgement = judge_log(aggregates, estimator, metric)
        both[CALIBRATED[label]] = calibrated_estimate(estimate, term, one.fit, level, judgement, why_of(one))
    return WithCalibrated(both, notes)


def why_of(learned: Learned) -> str:
    """Where Γ0 comes from, as a reason of the estimate."""
    fit = learned.fit
    lower, upper = fit.interval()
    days = f" from {learned.first} to {learned.last}" if learned.first is not None else ""
    return (
        f"calibrated on {fit.tests} A/B tests{days}: unsupported recommendations were worth {fit.gamma:.2f} times"
        f" supported ones (Γ0; 95 % interval {lower:.2f} to {upper:.2f})"
    )

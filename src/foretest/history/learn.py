"""What a history learns: a fit for each metric and estimator, and calibrated estimates of every test by the fit of the
others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from foretest.calibration.estimate import calibrated_estimate
from foretest.calibration.file import Calibration, Learned, common_settings
from foretest.calibration.fit import CALIBRATED, Fit, History
from foretest.files import json_ready, nan_if_none
from foretest.history.records import PastMetric, PastTest
from foretest.inference.verdict import Judgement
from foretest.results.audit import AUDIT_FAILED


class CalibratedHistory(NamedTuple):
    """The tests with calibrated estimates among their offline ones, the calibration, and by metric and estimator what
    agreement.json has of it."""

    tests: list[PastTest]
    calibration: Calibration | None
    details: dict[str, dict[str, Any]]


def calibrate(tests: Sequence[PastTest], settings: Sequence[Mapping[str, Any]]) -> CalibratedHistory:
    """Fit every metric and estimator, and judge each test by the fit of all others; `settings` are those of each test
    that a calibration depends on (`calibration.file.settings_of`)."""
    tests = list(tests)
    common = common_settings(settings)
    learned: dict[str, dict[str, Learned]] = {}
    details: dict[str, dict[str, Any]] = {}
    for metric in dict.fromkeys(name for test in tests for name in test.metrics):
        for label in CALIBRATED:
            places = [i for i, test in enumerate(tests) if _has_unsupported_part(test, metric, label)]
            if not places:
                continue
            fitted = _fit([tests[i] for i in places], metric, label, common.doubt)
            for i, calibrated in zip(places, fitted.tests, strict=True):
                tests[i] = calibrated
            learned.setdefault(metric, {})[label] = fitted.learned
            details.setdefault(metric, {})[label] = fitted.details
    if not learned:
        return CalibratedHistory(tests, None, {})
    named: list[dict[str, str | None]] = [{"name": test.name, "date": test.date} for test in tests]
    return CalibratedHistory(tests, Calibration(common.values, learned, named), details)


def _has_unsupported_part(test: PastTest, metric: str, label: str) -> bool:
    return metric in test.metrics and label in test.metrics[metric].unsupported


class _Fitted(NamedTuple):
    """The fit of one metric and estimator, and its tests with the calibrated estimates."""

    tests: list[PastTest]
    learned: Learned
    details: dict[str, Any]


def _fit(tests: list[PastTest], metric: str, label: str, doubt: str | None) -> _Fitted:
    metrics = [test.metrics[metric] for test in tests]
    verified = [test.is_verified for test in tests]
    history = history_of(metrics, label, verified)
    fit = history.fit()
    bounds = list(dict.fromkeys(part.unsupported[label].weight_bound for part in metrics))
    if doubt is None and len(bounds) > 1:
        doubt = f"the tests differ in weight_bound: {', '.join(f'{bound:g}' for bound in bounds)}"
    first = min((test.date for test in tests if test.date), default=None)
    last = max((test.last_date or test.date for test in tests if test.date), default=None)
    ends = _fits_at_ends(metrics, label, verified)
    learned = Learned(fit, bounds[0], fit.doubt() or doubt, first, last)
    calibrated = [
        test.with_metric(metric, _with_left_out(part, label, others))
        for test, part, others in zip(tests, metrics, history.leave_one_out(), strict=True)
    ]
    named = [DatedTest(test.name, test.date) for test in tests]
    details = {
        "estimator": CALIBRATED[label], **learned.to_dict(),
        "unknown_covariance": _unknown_covariance(metrics, label, history, ends),
        **fit_details(named, history, fit),
    }  # fmt: skip
    return _Fitted(calibrated, learned, details)


class EndFits(NamedTuple):
    """The fits with every covariance that is not known at its lower, and at its upper end.

    They are shown, and decide nothing: where s² is larger than at a covariance of 0, so are the residuals, and τ² of
    the fit makes up for it; where it is smaller, the fit is too careful.
    """

    lowest: Fit
    highest: Fit


def _fits_at_ends(metrics: Sequence[PastMetric], label: str, verified: Sequence[bool]) -> EndFits | None:
    """The fits at both ends; None where all covariances are known."""
    if all(metric.noise[label].covariance_bound is None for metric in metrics):
        return None
    return EndFits(*(history_of(metrics, label, verified, end).fit() for end in (-1, 1)))


def _unknown_covariance(
    metrics: Sequence[PastMetric], label: str, history: History, ends: EndFits | None
) -> dict[str, Any] | None:
    """What agreement.json has of the fits at both ends, and how many tests in the fit they are about."""
    if ends is None:
        return None
    unknown = [metric.noise[label].covariance_bound is not None for metric in metrics]
    tests = int((history.informs & unknown).sum())
    by_end = {
        name: {"gamma": fit.gamma, "gamma_ci_lower": fit.interval()[0], "gamma_ci_upper": fit.interval()[1],
               "tau2": fit.tau2}
        for name, fit in zip(("at_lowest", "at_highest"), ends, strict=True)
    }  # fmt: skip
    document: dict[str, Any] = json_ready({"tests": tests, **by_end})
    return document


def history_of(metrics: Sequence[PastMetric], label: str, verified: Sequence[bool], end: int = 0) -> History:
    """y − x, T and s² of each test; NaN where there is none, and T where a log of the test fails its audit: it then
    has no part in a fit. Covariances that are not known are at the lower (−1) or the upper `end` (1), or 0."""
    uplifts = [
        (nan_if_none(metric.online.rel_effect_size), nan_if_none(metric.offline[label].rel_effect_size))
        for metric in metrics
    ]
    return History(
        difference=np.array([online - offline for online, offline in uplifts], np.float64),
        unsupported=np.array(
            [
                metric.unsupported[label].unsupported if has_part else np.nan
                for metric, has_part in zip(metrics, verified, strict=True)
            ]
        ),
        noise=np.array([metric.noise[label].at_end(end).variance for metric in metrics], np.float64),
    )


def _with_left_out(metric: PastMetric, label: str, fit: Fit) -> PastMetric:
    """A test's metric with the calibrated estimate by the fit of the other tests, and its noise; without one where
    nobody knows how its unsupported part varies."""
    part, plain, noise = metric.unsupported[label], metric.offline[label], metric.noise[label]
    if np.isfinite(part.unsupported) and not np.isfinite([part.covariance, part.unsupported_variance]).all():
        return metric
    why = (
        f"calibrated on the other {fit.tests} tests: Γ0 = {fit.gamma:.2f}"
        if fit.known
        else "no other test has an unsupported part to learn from"
    )
    failed = [reason for reason in plain.reasons if reason.startswith(AUDIT_FAILED)]  # then no verdict stands
    judgement = Judgement(part.enough and not failed, [*failed, *part.reasons])
    estimate = calibrated_estimate(plain, part, fit, part.confidence_level, judgement, why)
    gamma = fit.gamma if fit.known else 1.0
    calibrated_noise = noise.of_calibrated(
        float(np.sqrt(max(0.0, part.variance_at(gamma)))),
        noise.covariance + (gamma - 1.0) * part.online_covariance,
    )
    return metric.with_estimate(CALIBRATED[label], estimate, calibrated_noise)


class DatedTest(NamedTuple):
    """The name of a test, and the day it began, where it is known."""

    name: str
    date: str | None


class FitPoint(NamedTuple):
    """A test beside the line of a fit: its unsupported term, online − offline, and its weight in the fit."""

    name: str
    date: str | None
    unsupported: float
    difference: float
    error: float
    weight: float
    gamma_without: float  # Γ0 of all other tests


class FitStep(NamedTuple):
    """The fit of all tests up to one of them."""

    name: str
    date: str | None
    tests: int
    gamma: float
    gamma_ci_lower: float
    gamma_ci_upper: float


def fit_details(tests: Sequence[DatedTest], history: History, fit: Fit) -> dict[str, Any]:
    """What agreement.json has beside a fit: its points with their weights, and how Γ0 moved from test to test."""
    points = [
        FitPoint(
            test.name, test.date, t, difference, float(np.sqrt(max(0.0, s2))), weight, others.gamma
        )._asdict()
        for test, difference, t, s2, weight, others in zip(
            tests, history.difference, history.unsupported, history.noise, history.weights(fit),
            history.leave_one_out(), strict=True,
        )
    ]  # fmt: skip
    # by day where every test has one, else as the manifest lists them
    dated = all(test.date for test in tests)
    order = sorted(range(len(tests)), key=lambda i: tests[i].date or "") if dated else list(range(len(tests)))
    in_time = History(history.difference[order], history.unsupported[order], history.noise[order])
    path = [
        FitStep(tests[i].name, tests[i].date, so_far.tests, so_far.gamma, *so_far.interval())._asdict()
        for i, so_far in zip(order, in_time.running(), strict=True)
    ]
    details: dict[str, Any] = json_ready({"points": points, "over_time": path, "by_date": dated})
    return details

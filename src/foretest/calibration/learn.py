"""A history's calibration: what each test tells, the fits of each metric, the calibrated estimates left one out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.calibration.estimate import Unsupported, bound_of, calibrated_estimate, evidence_of
from foretest.calibration.file import Calibration, Learned, common_settings
from foretest.calibration.fit import CALIBRATED, Fit, History
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.estimators.base import ratio
from foretest.files import json_ready
from foretest.results.audit import AUDIT_FAILED
from foretest.results.result import Estimate
from foretest.settings.settings import Settings

Test = dict[str, Any]


def unsupported_record(
    aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats, online: Floats
) -> dict[str, Any]:
    """What is kept of a test for its calibration; `online` has the online uplift of every resample of `counts`."""
    term = Unsupported.of(aggregates, estimator, metric)
    reward = aggregates.hr[aggregates.plan.weighting(estimator), metric]
    t = reward.get("t", len(aggregates.n)) * np.exp(reward.log_unit)
    # resampled with the control's log, which the online uplift shares
    rewards = counts @ aggregates.r[metric]
    shares = np.where(rewards > 0.0, ratio(counts @ t, rewards), np.nan)
    both = np.isfinite(shares) & np.isfinite(online)
    enough, reasons = evidence_of(aggregates, estimator, metric)
    return {
        **asdict(term),
        "online_covariance": float(np.cov(shares[both], online[both])[0, 1]) if both.sum() > 1 else float("nan"),
        "weight_bound": bound_of(aggregates.plan, estimator),
        "confidence_level": aggregates.plan.settings.analysis.confidence_level,
        "enough": enough,
        "reasons": reasons,
    }


class Outcome(NamedTuple):
    """The tests with calibrated estimates among their offline ones, the calibration, and by metric and estimator what
    the page shows of it."""

    tests: list[Test]
    calibration: Calibration | None
    details: dict[str, dict[str, Any]]


def calibrate(tests: Sequence[Test], settings: Sequence[Settings]) -> Outcome:
    """Fit every metric and estimator, and judge each test by the fit of all others."""
    copies = [{**test, "metrics": {name: _copy(part) for name, part in test["metrics"].items()}} for test in tests]
    together, doubt = common_settings(settings)
    details: dict[str, dict[str, Any]] = {}
    learned: dict[str, dict[str, Learned]] = {}
    for metric in dict.fromkeys(name for test in copies for name in test["metrics"]):
        having = [test for test in copies if metric in test["metrics"]]
        for label in CALIBRATED:
            some = [test for test in having if label in test["metrics"][metric].get("unsupported", {})]
            if some:
                one, shown = _one_fit(some, metric, label, doubt)
                learned.setdefault(metric, {})[label] = one
                details.setdefault(metric, {})[label] = shown
    if not learned:
        return Outcome(copies, None, {})
    named = [{"name": test["name"], "date": test.get("date")} for test in copies]
    return Outcome(copies, Calibration(together, learned, named), details)


def _copy(part: Mapping[str, Any]) -> dict[str, Any]:
    return {**part, "offline": dict(part["offline"]), "noise": dict(part["noise"])}


def _one_fit(tests: list[Test], metric: str, label: str, doubt: str | None) -> tuple[Learned, dict[str, Any]]:
    """The fit of one metric and estimator; the calibrated estimates are put into the tests."""
    parts = [test["metrics"][metric] for test in tests]
    history = history_of(parts, label)
    fit = history.fit()
    for part, without in zip(parts, history.leave_one_out(), strict=True):
        _add_left_out(part, label, without)
    bounds = list(dict.fromkeys(part["unsupported"][label]["weight_bound"] for part in parts))
    if doubt is None and len(bounds) > 1:
        doubt = f"the tests differ in weight_bound: {', '.join(f'{bound:g}' for bound in bounds)}"
    days = [(test["date"], test.get("last_date") or test["date"]) for test in tests if test.get("date")]
    first, last = (min(d[0] for d in days), max(d[1] for d in days)) if days else (None, None)
    learned = Learned(fit, bounds[0], fit.doubt() or doubt, first, last)
    return learned, {"estimator": CALIBRATED[label], **learned.to_dict(), **_shown(tests, history, fit)}


def history_of(parts: Sequence[Mapping[str, Any]], label: str) -> History:
    """y − x, T and s² = se_x² + se_y² − 2 cov of each test; NaN where there is none."""
    columns = []
    for part in parts:
        noise = {name: _float(value) for name, value in part["noise"][label].items()}
        spread = noise["offline_error"] ** 2 + noise["online_error"] ** 2 - 2.0 * noise["covariance"]
        y, x = (_float(e["rel_effect_size"]) for e in (part["online"], part["offline"][label]))
        columns.append((y - x, _float(part["unsupported"][label]["unsupported"]), spread))
    return History(*np.array(columns, np.float64).reshape(-1, 3).T)


def _add_left_out(part: dict[str, Any], label: str, fit: Fit) -> None:
    """The calibrated estimate by the fit of the other tests, and its noise."""
    record = part["unsupported"][label]
    term = Unsupported(**{name: _float(record[name]) for name in Unsupported.__dataclass_fields__})
    why = (
        f"calibrated on the other {fit.tests} tests: Γ0 = {fit.gamma:.2f}"
        if fit.known
        else "no other test has an unsupported part to learn from"
    )
    plain = Estimate(**part["offline"][label])
    failed = [reason for reason in plain.reasons if reason.startswith(AUDIT_FAILED)]  # then no verdict stands
    evidence = record["enough"] and not failed, [*failed, *record["reasons"]]
    found = calibrated_estimate(plain, term, fit, record["confidence_level"], evidence, why)
    noise, gamma = part["noise"][label], fit.gamma if fit.known else 1.0
    part["offline"][CALIBRATED[label]] = json_ready(asdict(found))
    part["noise"][CALIBRATED[label]] = json_ready(
        {
            "offline_error": float(np.sqrt(max(0.0, term.variance_at(gamma)))),
            "online_error": noise["online_error"],
            "covariance": _float(noise["covariance"]) + (gamma - 1.0) * _float(record["online_covariance"]),
        }
    )


def _shown(tests: list[Test], history: History, fit: Fit) -> dict[str, Any]:
    """The points of the calibration line, what pulls it, and how it came to be."""
    points = [
        {
            "name": test["name"], "date": test.get("date"), "unsupported": t, "difference": d,
            "error": float(np.sqrt(max(0.0, s2))), "weight": w, "gamma_without": without.gamma,
        }
        for test, d, t, s2, w, without in zip(
            tests, history.difference, history.unsupported, history.noise, history.weights(fit),
            history.leave_one_out(), strict=True,
        )
    ]  # fmt: skip
    # by day where every test has one, else as the manifest lists them
    dated = all(test.get("date") for test in tests)
    order = sorted(range(len(tests)), key=lambda i: tests[i]["date"]) if dated else list(range(len(tests)))
    in_time = History(history.difference[order], history.unsupported[order], history.noise[order])
    path = []
    for i, so_far in zip(order, in_time.running(), strict=True):
        lower, upper = so_far.interval()
        path.append({"name": tests[i]["name"], "date": tests[i].get("date"), "tests": so_far.tests,
                     "gamma": so_far.gamma, "gamma_ci_lower": lower, "gamma_ci_upper": upper})  # fmt: skip
    shown: dict[str, Any] = json_ready({"points": points, "over_time": path, "by_date": dated})
    return shown


def _float(value: float | None) -> float:
    return float("nan") if value is None else float(value)

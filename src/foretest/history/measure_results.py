"""One test of a history whose online side is given as results; offline from the control's log, or from a result too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from foretest.errors import BadInput, nearest
from foretest.estimators import Estimator
from foretest.files import nan_if_none
from foretest.history.offline_result import OfflineMetric, OfflineResult
from foretest.history.offline_side import OfflineSide, left_out_note, offline_side
from foretest.history.online_estimate import online_side
from foretest.history.online_results import FIRST, ROWS, ArmResults, OnlineResult, UpliftResult
from foretest.history.records import Measurement, Noise, PastMetric, UnsupportedPart
from foretest.history.shared_noise import shared_error
from foretest.inference.verdict import EFFECTIVE
from foretest.results.audit import AUDIT_FAILED
from foretest.results.result import Estimate
from foretest.settings.metric_kinds import derived_nouns
from foretest.settings.settings import Settings

_NAN = float("nan")
SHARES = (
    "the online side is given as results, so that the covariance of offline and online noise is not known, only"
    " bounded: it is taken to be 0, and figures that depend on it are also given at both ends."
)
BY_ROWS = (
    "the online result is by rows: its error is too small where users have several displays, and sums by unit would"
    " be right."
)
UPLIFT_ALONE = "of online the uplift and its error alone are given: all of it may be shared with offline."
NO_NOISE = (
    "the result file does not have the error of the unsupported part, as files of earlier versions: the test counts in"
    " the fit of the calibration, and has no calibrated estimate of its own. foretest run writes one that has it."
)


def by_name(
    results: Mapping[str, OnlineResult], known: Sequence[str], metrics: Sequence[str], where: str
) -> dict[str, OnlineResult]:
    """The results by the names of their metrics, each of which must be `known`; a test has at most `metrics`."""
    named = {metrics[0] if name == FIRST else name: result for name, result in results.items()}
    if len(named) < len(results):
        raise BadInput(f"online has two results of '{metrics[0]}', one by its name and one without.")
    for name in named:
        if name not in known:
            raise BadInput(
                f"online names the metric '{name}', which is not in {where}.{nearest(name, metrics)} The metrics are:"
                f" {', '.join(metrics)}."
            )
        if name not in metrics:
            raise BadInput(
                f"online names the metric '{name}', which is {derived_nouns()}: a history has rewards and sums of"
                f" them. The metrics are: {', '.join(metrics)}."
            )
    return named


def results_by_name(results: Mapping[str, OnlineResult], settings: Settings) -> dict[str, OnlineResult]:
    """The results by the names of the settings' metrics."""
    definitions = settings.definitions
    return by_name(results, definitions.names, list(definitions.linear), "the settings")


def measure_log_and_results(
    log: str, results: Mapping[str, OnlineResult], shared_units: int | None, settings: Settings, threads: int | None
) -> Measurement:
    """Offline from the control's log, online from results."""
    named = results_by_name(results, settings)
    offline = offline_side(log, settings, threads)
    level = settings.analysis.confidence_level
    metrics = {}
    for name, result in named.items():
        m = offline.metrics[name]
        if int(offline.aggregates.positives[m]) == 0:
            raise BadInput(f"no row of the control has a reward in '{name}': there is no uplift to compare.")
        online = online_side(result, level, signed=offline.may_be_negative(name))
        shared = shared_error(online, _units(result, offline.aggregates.n_units, offline.aggregates.rows), shared_units)
        metrics[name] = PastMetric(
            online=online.estimate,
            offline=offline.result.metrics[name].estimates,
            noise={
                estimator.label: Noise.bounded(_spread(offline, estimator, m), online.error, shared)
                for estimator in offline.estimators(m)
            },
            unsupported={label: term.part for label, term in offline.unsupported(name).items()},
            bounds=offline.bounds(name),
        )
    notes = [*result_notes(named, shared_units), *left_out_note(settings)]
    return Measurement(metrics, offline.audit, offline.days, notes)


def _units(result: OnlineResult, units: int, rows: int) -> int:
    """How many units the log has, in what the online result counts."""
    return rows if isinstance(result, ArmResults) and result.by == ROWS else units


def _spread(offline: OfflineSide, estimator: Estimator, metric: int) -> float:
    """The standard error of the offline uplift, from the resamples of the log as it is where both logs are given."""
    uplifts = offline.uplifts(estimator, metric)
    finite = uplifts[np.isfinite(uplifts)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else _NAN


def measure_results(
    offline: OfflineResult, results: Mapping[str, OnlineResult], shared_units: int | None
) -> Measurement:
    """Both sides from results."""
    named = by_name(results, list(offline.metrics), list(offline.metrics), "the result file")
    metrics, notes = {}, result_notes(named, shared_units)
    days: list[str] = []
    for name, result in named.items():
        past = offline.metrics[name]
        online = online_side(result, offline.confidence_level, signed=past.signed)
        shared = shared_error(online, _units(result, offline.units, offline.rows), shared_units)
        metrics[name] = PastMetric(
            online=online.estimate,
            offline=past.estimates,
            noise={
                label: Noise.bounded(nan_if_none(estimate.rel_std_error), online.error, shared)
                for label, estimate in past.estimates.items()
            },
            unsupported=_parts_of_file(past, offline.confidence_level),
            bounds=past.bounds,
        )
        days = sorted([*days, *past.days])
        if any(estimate.unsupported_noise is None for label, estimate in past.estimates.items()
               if label in metrics[name].unsupported):  # fmt: skip
            notes.append(NO_NOISE)
    return Measurement(metrics, offline.audit, days[:1] + days[-1:], list(dict.fromkeys(notes)))


def _parts_of_file(past: OfflineMetric, level: float) -> dict[str, UnsupportedPart]:
    """The unsupported part of every estimator that can be calibrated; NaN for what the file does not have."""
    return {
        label: _part_of_file(past.estimates[label], past.control, bound, level)
        for label, bound in past.weight_bounds.items()
        if past.estimates[label].unsupported is not None
    }


def _part_of_file(estimate: Estimate, control: float | None, bound: float, level: float) -> UnsupportedPart:
    noise = estimate.unsupported_noise
    thin = any(EFFECTIVE in reason for reason in estimate.reasons)
    return UnsupportedPart(
        unsupported=nan_if_none(estimate.unsupported),
        control=nan_if_none(control),
        variance=nan_if_none(estimate.rel_std_error) ** 2,
        covariance=_NAN if noise is None else noise["covariance"],
        unsupported_variance=_NAN if noise is None else noise["std_error"] ** 2,
        online_covariance=0.0,
        weight_bound=bound,
        confidence_level=level,
        enough=estimate.verdict != "insufficient" and not thin if noise is None else bool(noise["enough"]),
        reasons=[reason for reason in estimate.reasons if not reason.startswith(AUDIT_FAILED)],
    )


def result_notes(named: Mapping[str, OnlineResult], shared_units: int | None) -> list[str]:
    """What a reader must know of results in place of a log."""
    notes = [SHARES] if shared_units != 0 else []
    if shared_units != 0 and any(isinstance(result, UpliftResult) for result in named.values()):
        notes.append(UPLIFT_ALONE)
    if any(isinstance(result, ArmResults) and result.by == ROWS for result in named.values()):
        notes.append(BY_ROWS)
    return notes

"""One test of a history from its logs: offline from the control's alone, online from both, the noise they share."""

from __future__ import annotations

import tempfile
from dataclasses import replace

import numpy as np

from foretest.displays.batch import Floats
from foretest.displays.days import first_and_last
from foretest.errors import BadInput
from foretest.history.offline_side import OfflineSide, offline_side
from foretest.history.records import Measurement, Noise, PastMetric, UnsupportedPart
from foretest.log.logger_rows import rows_of_baseline
from foretest.log.opening import open_log
from foretest.online.adjustment import coefficient
from foretest.online.arm_audit import TREATMENT, audit_arm
from foretest.online.arms import Arms
from foretest.online.late_rewards import settle_read_at
from foretest.online.metric_arms import metric_arms, metric_places
from foretest.online.resampling import replicates
from foretest.online.test import KEY, OnlineTest
from foretest.settings.late_rewards import time_columns
from foretest.settings.settings import Settings
from foretest.stores import Location

NOT_AUDITED = "the treatment's log could not be audited under these settings: foretest online says why."
DISPLAYS_DIFFER = (
    "units have another number of displays in the treatment, so that the online uplift, which is per display, is not"
    " that of the rankings alone."
)


def measure(control: Location, treatment: Location, settings: Settings, threads: int | None) -> Measurement:
    """Run a test of a history offline and online, with the same settings."""
    settings = _with_read_at(control, treatment, settings, threads)
    offline = offline_side(str(control), settings, threads)
    # with the limits of rewards that the whole log of the control gives
    online = OnlineTest.from_settings(replace(settings, metrics=offline.aggregates.plan.settings.metrics))
    arms = online.arms(rows_of_baseline(str(control), settings), str(treatment), threads=threads)
    online_result = online.analyse(arms)
    metrics = {}
    for name, m in metric_places(settings).items():
        _refuse_no_reward(offline, arms, m, name)
    for name in settings.definitions.names:
        # the control's log is resampled once for both
        online_uplifts = _online_uplifts(arms, name, settings, offline)
        metrics[name] = PastMetric(
            online=online_result.metrics[name].estimates[KEY],
            offline=offline.result.metrics[name].estimates,
            noise=_noise(offline, name, online_uplifts),
            unsupported=_unsupported_parts(offline, name, online_uplifts),
            bounds=offline.bounds(name),
        )
    audited = audit_arm(TREATMENT, str(treatment), arms.treatment.rows, settings, threads)
    outcomes = None if audited.audit is None else audited.audit.outcomes()
    notes = [] if audited.audit is not None else [NOT_AUDITED]
    notes += [DISPLAYS_DIFFER] if online_result.health.get("displays_per_unit", {}).get("alert") else []
    return Measurement(metrics, offline.audit, _first_and_last_day(arms), notes, outcomes)


def _online_uplifts(arms: Arms, name: str, settings: Settings, offline: OfflineSide) -> Floats:
    """The online uplift of every resample, relative; NaN where there is none."""
    sides = metric_arms(arms, name, settings)
    return replicates(sides, offline.counts, coefficient(sides)).relative


def _with_read_at(control: Location, treatment: Location, settings: Settings, threads: int | None) -> Settings:
    """The settings with when both logs were read, where a window asks for it: offline and online leave out the same
    displays of the control's log."""
    if settings.analysis.window is None:
        return settings
    logs = {name: open_log(str(log), settings) for name, log in (("control", control), ("treatment", treatment))}
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        return settle_read_at(settings, logs, time_columns(settings.log), folder, threads).settings


def _refuse_no_reward(offline: OfflineSide, arms: Arms, metric: int, name: str) -> None:
    of_log = offline.aggregates.positives[offline.metrics[name]]
    of_arms = ((arm, positives.positives[metric]) for arm, positives in zip(Arms._fields, arms, strict=True))
    for arm, positives in (("control", of_log), *of_arms):
        if int(positives) == 0:
            raise BadInput(f"no row of the {arm} has a reward in '{name}': there is no uplift to compare.")


def _noise(offline: OfflineSide, name: str, online_uplifts: Floats) -> dict[str, Noise]:
    """Standard errors of both relative uplifts and their covariance, by estimator; `online_uplifts` has the online
    uplift of every resample."""
    noise = {}
    for estimator in offline.estimators_of(name):
        offline_uplifts = offline.uplifts_of(estimator, name)
        both = np.isfinite(offline_uplifts) & np.isfinite(online_uplifts)
        spread = np.cov(offline_uplifts[both], online_uplifts[both]) if both.sum() > 1 else np.full((2, 2), np.nan)
        noise[estimator.label] = Noise(
            offline_error=float(np.sqrt(spread[0, 0])),
            online_error=float(np.sqrt(spread[1, 1])),
            covariance=float(spread[0, 1]),
        )
    return noise


def _unsupported_parts(offline: OfflineSide, name: str, online_uplifts: Floats) -> dict[str, UnsupportedPart]:
    """The unsupported part of every estimator that can be calibrated, with its covariance with the online uplift: T is
    resampled with the control's log, which the online uplift shares."""
    parts = {}
    for label, term in offline.unsupported(name).items():
        both = np.isfinite(term.resampled) & np.isfinite(online_uplifts)
        pair = term.resampled[both], online_uplifts[both]
        covariance = float(np.cov(*pair)[0, 1]) if both.sum() > 1 else float("nan")
        parts[label] = replace(term.part, online_covariance=covariance)
    return parts


def _first_and_last_day(arms: Arms) -> list[str]:
    """The first and the last day of both logs; empty where they have none."""
    return first_and_last(day for arm in arms for day in arm.rows_by_day)

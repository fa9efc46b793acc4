"""One test of a history from its logs: offline from the control's alone, online from both, the noise they share."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.calibration.estimate import Unsupported, bound_of, judge_log
from foretest.calibration.fit import CALIBRATED
from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.estimators import Estimator
from foretest.estimators.base import ratio
from foretest.history.manifest import Entry
from foretest.history.records import BoundPath, Measurement, Noise, PastMetric, UnsupportedPart
from foretest.inference.bound_choice import settled
from foretest.inference.buckets import bucket_sums
from foretest.inference.uplift import relative_uplift_of
from foretest.log.opening import open_log
from foretest.offline.test import OfflineTest
from foretest.online.adjustment import coefficient
from foretest.online.arms import Arms
from foretest.online.late_rewards import settle_read_at
from foretest.online.resampling import arm_counts, replicates
from foretest.online.test import KEY, OnlineTest
from foretest.settings.late_rewards import time_columns
from foretest.settings.settings import Settings


def measure(entry: Entry, settings: Settings, threads: int | None) -> Measurement:
    """Run a test of a history offline and online, with the same settings."""
    settings = _with_read_at(entry, settings, threads)
    offline, online = OfflineTest.from_settings(settings), OnlineTest.from_settings(settings)
    aggregates, notes, r_max = offline.aggregate(str(entry.control), threads=threads)
    offline_result = offline.analyse(aggregates, notes, r_max)
    arms = online.arms(str(entry.control), str(entry.treatment), threads=threads)
    online_result = online.analyse(arms)
    # the control's log is resampled once for both
    counts = arm_counts(settings.analysis)
    metrics = {}
    for m, name in enumerate(settings.log.rewards):
        _refuse_no_reward(aggregates, arms, m, name)
        online_uplifts = replicates(arms, m, counts, coefficient(arms, m)).relative
        metrics[name] = PastMetric(
            online=online_result.metrics[name].estimates[KEY],
            offline=offline_result.metrics[name].estimates,
            noise=_noise(aggregates, m, counts.control, online_uplifts),
            unsupported=_unsupported_parts(aggregates, m, counts.control, online_uplifts),
            bounds=_bound_path(offline_result.metrics[name].cap_path),
        )
    audit = None if offline_result.audit is None else offline_result.audit.outcomes()
    return Measurement(metrics, audit, _first_and_last_day(arms))


def _with_read_at(entry: Entry, settings: Settings, threads: int | None) -> Settings:
    """The settings with when both logs were read, where a window asks for it: offline and online leave out the same
    displays of the control's log."""
    if settings.analysis.window is None:
        return settings
    logs = {
        name: open_log(str(log), settings) for name, log in (("control", entry.control), ("treatment", entry.treatment))
    }
    with tempfile.TemporaryDirectory(prefix="foretest-") as folder:
        return settle_read_at(settings, logs, time_columns(settings.log), folder, threads).settings


def _refuse_no_reward(aggregates: Aggregates, arms: Arms, metric: int, name: str) -> None:
    for arm, positives in (("control", aggregates.positives), ("treatment", arms.treatment.positives)):
        if int(positives[metric]) == 0:
            raise BadInput(f"no row of the {arm} has a reward in '{name}': there is no uplift to compare.")


def _noise(aggregates: Aggregates, metric: int, counts: Floats, online_uplifts: Floats) -> dict[str, Noise]:
    """Standard errors of both relative uplifts and their covariance, by estimator; `online_uplifts` has the online
    uplift of every resample of `counts`."""
    noise = {}
    for estimator in aggregates.plan.estimators:
        resampled = bucket_sums(aggregates, settled(aggregates, estimator, metric), metric).resampled(counts)
        offline_uplifts = np.where(resampled.r > 0, relative_uplift_of(estimator)(resampled), np.nan)
        both = np.isfinite(offline_uplifts) & np.isfinite(online_uplifts)
        spread = np.cov(offline_uplifts[both], online_uplifts[both]) if both.sum() > 1 else np.full((2, 2), np.nan)
        noise[estimator.label] = Noise(
            offline_error=float(np.sqrt(spread[0, 0])),
            online_error=float(np.sqrt(spread[1, 1])),
            covariance=float(spread[0, 1]),
        )
    return noise


def _unsupported_parts(
    aggregates: Aggregates, metric: int, counts: Floats, online_uplifts: Floats
) -> dict[str, UnsupportedPart]:
    """The unsupported part of every estimator that can be calibrated."""
    return {
        estimator.label: _unsupported_part(aggregates, estimator, metric, counts, online_uplifts)
        for estimator in aggregates.plan.estimators
        if estimator.label in CALIBRATED and aggregates.plan.weighs(estimator, metric)
    }


def _unsupported_part(
    aggregates: Aggregates, estimator: Estimator, metric: int, counts: Floats, online_uplifts: Floats
) -> UnsupportedPart:
    chosen = settled(aggregates, estimator, metric)
    term = Unsupported.of(aggregates, chosen, metric)
    reward = aggregates.hr[aggregates.plan.weighting(chosen), metric]
    t = reward.get("t", len(aggregates.n)) * np.exp(reward.log_unit)
    # resampled with the control's log, which the online uplift shares
    rewards = counts @ aggregates.r[metric]
    shares = np.where(rewards > 0.0, ratio(counts @ t, rewards), np.nan)
    both = np.isfinite(shares) & np.isfinite(online_uplifts)
    covariance = float(np.cov(shares[both], online_uplifts[both])[0, 1]) if both.sum() > 1 else float("nan")
    judgement = judge_log(aggregates, chosen, metric)
    return UnsupportedPart(
        **asdict(term),
        online_covariance=covariance,
        weight_bound=bound_of(aggregates.plan, estimator),
        confidence_level=aggregates.plan.settings.analysis.confidence_level,
        enough=judgement.enough,
        reasons=judgement.reasons,
    )


def _bound_path(path: dict[str, Any] | None) -> BoundPath | None:
    """Offline uplifts along the bound on the adaptive weights, where the result has them."""
    adaptive = (path or {}).get("point-ncis-adaptive")
    if path is None or adaptive is None:
        return None
    return BoundPath(path["weight_bound"], adaptive["bounds"], adaptive["rel_effect_size"])


def _first_and_last_day(arms: Arms) -> list[str]:
    """The first and the last day of both logs; empty where they have none."""
    days = sorted({day for arm in arms for day in arm.rows_by_day if _is_day(day)})
    return [days[0], days[-1]] if days else []


def _is_day(label: str) -> bool:
    try:
        return bool(date.fromisoformat(label))
    except ValueError:
        return False

"""The offline side of a past test from the control's log: estimates, their resamples, and their unsupported parts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.differences import with_differences
from foretest.aggregation.quantities import UNSUPPORTED_REWARDS
from foretest.calibration.estimate import Unsupported, bound_of, can_be_calibrated, judge_log
from foretest.displays.batch import Floats
from foretest.displays.days import first_and_last
from foretest.estimators import Estimator
from foretest.estimators.base import ratio
from foretest.history.records import BoundPath, UnsupportedPart
from foretest.inference.bound_choice import at_chosen_bound
from foretest.inference.buckets import bucket_sums
from foretest.inference.by_logger import complete_resamples, counts_by_logger
from foretest.inference.uplift import relative_uplift_of
from foretest.log.rows import DAY
from foretest.offline.joint_metrics import joint_sums
from foretest.offline.segments import groups_of
from foretest.offline.test import OfflineTest
from foretest.online.resampling import ArmCounts, arm_counts
from foretest.records import dataclass
from foretest.results.result import Result
from foretest.settings.settings import Settings


class UnsupportedTerm(NamedTuple):
    """The unsupported part of an estimator, but for what it shares with online, and T of every resample."""

    part: UnsupportedPart
    resampled: Floats


@dataclass(frozen=True)
class OfflineSide:
    """The control's log, folded and analysed; `counts` are resamples of both arms by bucket of units, in each of which
    every logger has rows, and `by_cell` those of the control's log by logger and bucket."""

    aggregates: Aggregates
    result: Result
    counts: ArmCounts
    by_cell: Floats

    @property
    def metrics(self) -> dict[str, int]:
        """The place of every metric that a history can have: rewards, and sums of them."""
        return self.aggregates.plan.shown

    def may_be_negative(self, name: str) -> bool:
        """Has a metric with sums losses?"""
        return self.aggregates.plan.combination(self.metrics[name]).may_be_negative

    def uplifts(self, estimator: Estimator, metric: int) -> Floats:
        """The relative uplift of every resample; NaN where there is none."""
        chosen = at_chosen_bound(self.aggregates, estimator, metric)
        resampled = bucket_sums(self.aggregates, chosen, metric).resampled(self.by_cell)
        return np.where(resampled.r != 0, relative_uplift_of(estimator)(resampled), np.nan)

    def uplifts_of(self, estimator: Estimator, name: str) -> Floats:
        """The relative uplift of every resample in a metric of any kind; of a value per unit it is that per display."""
        formula = self.aggregates.plan.settings.definitions.formulas[name]
        if formula.multiple_of is not None:
            return self.uplifts(estimator, self.metrics[formula.multiple_of])
        sums = joint_sums(self.aggregates, self.aggregates, formula, estimator, self.by_cell)
        resampled = sums.resampled(sums.relative_uplift)
        assert resampled is not None
        return resampled

    def estimators_of(self, name: str) -> list[Estimator]:
        """Those that have an answer for a metric of any kind."""
        labels = self.result.metrics[name].estimates
        return [e for e in self.aggregates.plan.estimators if e.label in labels]

    def estimators(self, metric: int) -> list[Estimator]:
        """Those that have an answer for a metric."""
        return [e for e in self.aggregates.plan.estimators if self.aggregates.plan.weighs(e, metric)]

    def unsupported(self, name: str) -> dict[str, UnsupportedTerm]:
        """The unsupported part of every estimator that can be calibrated, of a metric of any kind."""
        plan = self.aggregates.plan
        places = [m for metric, m in self.metrics.items() if metric == name]
        pairs = [(e, m) for m in places for e in self.estimators(m) if can_be_calibrated(plan, e, m)]
        return {e.label: self._unsupported(e, m) for e, m in pairs}

    def _unsupported(self, estimator: Estimator, metric: int) -> UnsupportedTerm:
        aggregates = self.aggregates
        chosen = at_chosen_bound(aggregates, estimator, metric)
        reward = aggregates.weighted(aggregates.plan.weighting(chosen), metric)
        t = reward.get(UNSUPPORTED_REWARDS, size=len(aggregates.n)) * np.exp(reward.log_unit)
        rewards = self.by_cell @ aggregates.r[metric]
        judgement = judge_log(aggregates, chosen, metric)
        part = UnsupportedPart(
            **asdict(Unsupported.of(aggregates, chosen, metric)),
            online_covariance=0.0,
            weight_bound=bound_of(aggregates.plan, estimator),
            confidence_level=aggregates.plan.settings.analysis.confidence_level,
            enough=judgement.enough,
            reasons=judgement.reasons,
        )
        return UnsupportedTerm(part, np.where(rewards > 0.0, ratio(self.by_cell @ t, rewards), np.nan))

    def bounds(self, name: str) -> BoundPath | None:
        """Offline uplifts along the bound on the adaptive weights, where the result has them."""
        path: dict[str, Any] | None = self.result.metrics[name].cap_path
        adaptive = (path or {}).get("point-ncis-adaptive")
        if path is None or adaptive is None:
            return None
        return BoundPath(path["weight_bound"], adaptive["bounds"], adaptive["rel_effect_size"])

    @property
    def audit(self) -> dict[str, Any] | None:
        """The outcomes of the audit."""
        return None if self.result.audit is None else self.result.audit.outcomes()

    @property
    def days(self) -> list[str]:
        """The first and the last day of the log; empty where it has none."""
        ledger = self.aggregates.segments.get(DAY)
        return [] if ledger is None else first_and_last(groups_of(ledger).labels)


def offline_side(log: str, settings: Settings, threads: int | None) -> OfflineSide:
    """Fold and analyse the control's log."""
    test = OfflineTest.from_settings(settings)
    folded = test.aggregate(log, threads=threads)
    result = test.analyse(*folded)
    aggregates, counts = with_differences(folded.aggregates), arm_counts(settings.analysis)
    loggers = aggregates.plan.loggers
    complete = complete_resamples(counts.control, aggregates.n, loggers)
    counts = ArmCounts(counts.control[complete], counts.treatment[complete])
    return OfflineSide(aggregates, result, counts, counts_by_logger(counts.control, aggregates.n, loggers))


def left_out_note(settings: Settings) -> list[str]:
    """A note on the metrics of the settings that a history does not have, where there are such."""
    left_out = [name for name in settings.definitions.names if name not in settings.definitions.linear]
    if not left_out:
        return []
    return [f"{', '.join(left_out)}: left out of the history, which has rewards and sums of them."]

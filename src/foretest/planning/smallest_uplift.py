"""The smallest uplift that a log could show, what would halve it, and what an online test would need to show it.

An offline test errs for two reasons. Sampling: the standard error se of the paired uplift, by unit; with power 80 % at
the level of the settings an uplift shows if it is at least (z_{1−α/2} + z_{.8})·se. It shrinks as 1/√n. Identification:
of the part of the treatment that the log does not support nothing is known but that it earns between 1/Γ_lower and
Γ_upper times as much as the rest; half the width of the sensitivity band,

    ½·[(Γ_upper − 1) + (1 − 1/Γ_lower)]·mean(t),    t = (w̃ − w̄) r

stays whatever the log's size. An uplift beyond their sum S + I shows. With f times the log it is S/√f + I, so that it
halves at f = (2S/(S − I))², and never if I ≥ S. For estimators without a band, I takes (1 − q̄)·R_t for mean(t), q̄ the
treatment mass that the cap leaves.

An online test with N users, shares (a, b), shows an uplift Δ if Δ = (z_{1−α/2} + z_{.8})·σ·√((1/a + 1/b)/N), σ² the
control's variance per user (of a ratio by user: the delta method), the treatment's taken to be the same.

For a share ε of random rankings both parts are predicted. If within a display reward and weight do not go together,
E_p[(w̃ − 1)² r² | x] = E_p[r²|x]·(E_p[w̃²|x] − 1) and E_p[t|x] = (1 − q(x))·E_p[w̃ r|x], so that

    s² = mean(r²)·(mean of E[w̃²|x] over rewarded rows, weighted by r², − 1)/n
    mean(t) = R_t·(mean of 1 − q(x) over rewarded rows, weighted by r)

under the control mixed with uniform rankings (`exploration`); the log as it is gets the same formula, to compare. It
costs at most ε·(R_p − R_uniform) ≤ ε·R_p. Other ways to explore, and weights by slot and by exposure, are predicted by
`explored`.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.quantities import WEIGHTS
from foretest.diagnostics.evidence import log_evidence
from foretest.diagnostics.health import control_is_deterministic
from foretest.planning.explored import Explored, explored_rows
from foretest.planning.explorer_of_log import explorer_of
from foretest.planning.levels import (
    EXPOSURE,
    FIT,
    GIVEN,
    NOTHING,
    RANKING,
    LevelOutlook,
    Scale,
    SmallestUplift,
)
from foretest.planning.log_to_plan import LogToPlan, scale_of
from foretest.records import dataclass
from foretest.results.result import Estimate, Metric
from foretest.weights.weightings import Weighting

NEVER_VARIES = "the control never varies: it says nothing about another ranking, or about another item in a slot"


class ToHalve(NamedTuple):
    """How many times the log would halve the smallest uplift, and how many more days that is; None where no amount
    would, or days are not known."""

    times: float | None
    more_days: int | None


class MeasuredLevel(NamedTuple):
    """What the log as it is could show at one level."""

    estimator: str
    treatment: float | None
    outlook: LevelOutlook
    to_halve: ToHalve | None
    online_units: int | None
    reasons: list[str]  # of the estimator's verdict

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.json for one level of a metric."""
        halve = None if self.to_halve is None else self.to_halve._asdict()
        return {
            "estimator": self.estimator, "treatment": self.treatment, **self.outlook.to_dict(), "to_halve": halve,
            "online_units": self.online_units, "reasons": self.reasons,
        }  # fmt: skip


@dataclass(frozen=True)
class MetricPlan:
    """What a log could show of one metric."""

    control: float | None
    treatment: float | None
    reasons: list[str]  # of the headline's verdict
    smallest_uplift: SmallestUplift
    to_halve: ToHalve | None = None
    online_units: int | None = None
    levels: dict[str, MeasuredLevel] = field(default_factory=dict)
    exploration: list[Explored] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.json for one metric."""
        return {
            "control": self.control,
            "treatment": self.treatment,
            "reasons": self.reasons,
            "smallest_uplift": self.smallest_uplift.to_dict(),
            "to_halve": None if self.to_halve is None else self.to_halve._asdict(),
            "online_units": self.online_units,
            "levels": {name: level.to_dict() for name, level in self.levels.items()},
            "exploration": None if self.exploration is None else [row.to_dict() for row in self.exploration],
        }


def plan_metric(metric: Metric, m: int, log: LogToPlan) -> MetricPlan:
    """What the log could show of the m-th metric, whose result is `metric`."""
    log = log.at_chosen_bounds(m)
    estimate = metric.estimates[log.estimator.label]
    control, treatment = metric.control.value, estimate.treatment
    if not control or estimate.std_error is None:
        return MetricPlan(control, treatment, estimate.reasons, NOTHING)
    scale = scale_of(log, m, control, treatment or 0.0)
    smallest = _smallest(RANKING, estimate, log, m, scale)
    return MetricPlan(
        control=control,
        treatment=treatment,
        reasons=estimate.reasons,
        smallest_uplift=smallest,
        to_halve=to_halve(smallest, log.days),
        online_units=_online(metric, m, smallest, log, scale),
        levels=_measured(metric, m, log, scale),
        exploration=_explorations(log, m, scale),
    )


def _smallest(level: str, estimate: Estimate, log: LogToPlan, m: int, scale: Scale) -> SmallestUplift:
    """The two parts at one level, as measured."""
    assert estimate.std_error is not None
    worth = scale.width[level] * (estimate.treatment or 0.0)
    half_band = _half_band(estimate.sensitivity, log.aggregates, log.weighting(level), worth)
    moved = _moved_by_curves(estimate)
    return SmallestUplift(scale.factor * estimate.std_error / scale.control, (half_band + moved) / scale.control)


def _half_band(sensitivity: Any, aggregates: Aggregates, weighting: Weighting, worth: float) -> float:
    """Half the width of the band of the effect size, or where there is no band the most that the cap could hide."""
    if sensitivity is not None and sensitivity["effect_size_lower"] is not None:
        return float(sensitivity["effect_size_upper"] - sensitivity["effect_size_lower"]) / 2.0
    if not aggregates.has_weights(weighting):
        return math.nan
    sums = aggregates.weights(weighting)
    mass_kept = sums.total(WEIGHTS) * math.exp(min(sums.log_unit, 700.0)) / aggregates.displays
    return max(0.0, 1.0 - mass_kept) * worth


def _moved_by_curves(estimate: Estimate) -> float:
    """Half of how far the uplift moves over curves steeper and flatter than the one that was given; 0 without one."""
    own = estimate.effect_size
    others = [one["effect_size"] for one in estimate.curves or ()]
    shifts: list[float] = [0.0, *(other - own for other in others if other is not None and own is not None)]
    return 0.5 * (max(shifts) - min(shifts))


def _measured(metric: Metric, m: int, log: LogToPlan, scale: Scale) -> dict[str, MeasuredLevel]:
    """The levels at which the log has an estimate."""
    aggregates, levels = log.aggregates, {}
    never_varies = bool(control_is_deterministic(aggregates))
    for level, estimator in log.estimators.items():
        estimate = metric.estimates.get(estimator.label)
        if estimate is None or estimate.std_error is None:
            continue
        evidence, smallest = log_evidence(aggregates, estimator, m), _smallest(level, estimate, log, m, scale)
        curve = None
        if level == EXPOSURE:
            curve = GIVEN if m in aggregates.plan.examination.given else FIT
        outlook = LevelOutlook(
            smallest, estimate.std_error, 1.0 if evidence.mass_kept is None else evidence.mass_kept,
            evidence.unsupported / max(1, evidence.rewarded), curve,
            NEVER_VARIES if never_varies and level != EXPOSURE else None,
        )  # fmt: skip
        shows = outlook.obstacle is None
        levels[level] = MeasuredLevel(
            estimator.label, estimate.treatment, outlook, to_halve(smallest, log.days) if shows else None,
            _online(metric, m, smallest, log, scale) if shows else None, estimate.reasons,
        )  # fmt: skip
    return levels


def to_halve(smallest: SmallestUplift, days: int | None) -> ToHalve:
    """f = (2S/(S − I))² times the log."""
    sampling, identification = smallest
    if not sampling > identification:
        return ToHalve(None, None)
    times = (2.0 * sampling / (sampling - identification)) ** 2
    return ToHalve(times, None if days is None else math.ceil((times - 1.0) * days))


def _online(metric: Metric, m: int, smallest: SmallestUplift, log: LogToPlan, scale: Scale) -> int | None:
    """Units of an online test; of several loggers by the baseline's rows, None where these are not known."""
    arm = log.control_arm
    if arm is None:
        return None
    error = arm.errors.get(m, metric.control.std_error)
    return online_units(error, arm.units, smallest.total * scale.control, scale.factor, log.split)


def online_units(
    error: float | None, units: int, uplift: float, factor: float, split: tuple[float, float]
) -> int | None:
    """N = σ²·(1/a + 1/b)·(factor/Δ)² in both arms together, σ² = se²·units; None where se or Δ is not known."""
    if error is None or not uplift > 0.0:
        return None
    return math.ceil(error**2 * units * sum(1.0 / share for share in split) * (factor / uplift) ** 2)


def _explorations(log: LogToPlan, m: int, scale: Scale) -> list[Explored] | None:
    """One entry per way to explore; None where it cannot be predicted."""
    if log.sample is None:
        return None
    explorer = explorer_of(log, log.sample, m, scale)
    return [] if explorer is None else explored_rows(explorer, log.aggregates.plan, log.weighting(RANKING))

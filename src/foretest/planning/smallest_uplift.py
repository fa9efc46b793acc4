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

For an exploration of ε both parts are predicted. If within a display reward and weight do not go together,
E_p[(w̃ − 1)² r² | x] = E_p[r²|x]·(E_p[w̃²|x] − 1) and E_p[t|x] = (1 − q(x))·E_p[w̃ r|x], so that

    s² = mean(r²)·(mean of E[w̃²|x] over rewarded rows, weighted by r², − 1)/n
    mean(t) = R_t·(mean of 1 − q(x) over rewarded rows, weighted by r)

under the control mixed with uniform rankings (`exploration`); the log as it is gets the same formula, to compare. It
costs at most ε·(R_p − R_uniform) ≤ ε·R_p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from foretest.aggregation.aggregates import Aggregates
from foretest.estimators import Estimator
from foretest.files import finite_or_none
from foretest.inference.bound_choice import settled
from foretest.online.comparison import POWER
from foretest.planning.exploration import SHARES, moments
from foretest.results.result import Metric
from foretest.settings.analysis import Analysis
from foretest.weights.weightings import Weighting


class SmallestUplift(NamedTuple):
    """The two parts of the smallest uplift, relative to the control's value; NaN where there is none."""

    sampling: float
    identification: float

    @property
    def total(self) -> float:
        return self.sampling + self.identification

    def to_dict(self) -> dict[str, float | None]:
        parts = {"sampling": self.sampling, "identification": self.identification, "total": self.total}
        return {name: finite_or_none(value) for name, value in parts.items()}


class ToHalve(NamedTuple):
    """How many times the log would halve the smallest uplift, and how many more days that is; None where no amount
    would, or days are not known."""

    times: float | None
    more_days: int | None


class Explored(NamedTuple):
    """What a log could show if the control had explored in a share `epsilon` of displays."""

    epsilon: float
    cost_at_most: float  # as a share of the control's value
    treatment_mass_kept: float
    std_error: float
    largest_weight: float
    weight_bound: float
    smallest_uplift: SmallestUplift

    def to_dict(self) -> dict[str, Any]:
        return self._asdict() | {"smallest_uplift": self.smallest_uplift.to_dict()}


@dataclass(frozen=True)
class MetricPlan:
    """What a log could show of one metric."""

    control: float | None
    treatment: float | None
    reasons: list[str]  # of the headline's verdict
    smallest_uplift: SmallestUplift
    to_halve: ToHalve | None = None
    online_units: int | None = None
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
            "exploration": None if self.exploration is None else [row.to_dict() for row in self.exploration],
        }


class LogToPlan(NamedTuple):
    """A log as a plan sees it."""

    aggregates: Aggregates
    sample: Aggregates | None  # rewarded displays with draws of both policies, where exploration can be predicted
    estimator: Estimator  # the headline
    days: int | None
    split: tuple[float, float]  # of an online test

    @property
    def weighting(self) -> Weighting:
        return self.aggregates.plan.weighting(self.estimator)


def plan_metric(metric: Metric, m: int, log: LogToPlan) -> MetricPlan:
    """What the log could show of the m-th metric, whose result is `metric`."""
    [estimate] = metric.estimates.values()
    log = log._replace(estimator=settled(log.aggregates, log.estimator, m))
    control, treatment = metric.control.value, estimate.treatment
    if not control or estimate.std_error is None:
        return MetricPlan(control, treatment, estimate.reasons, SmallestUplift(math.nan, math.nan))
    analysis = log.aggregates.plan.settings.analysis
    scale = _Scale.of(analysis, log.weighting.by_slot, control, treatment or 0.0)
    half_band = _half_band(estimate.sensitivity, log.aggregates, log.weighting, scale.width * scale.treatment)
    smallest = SmallestUplift(scale.factor * estimate.std_error / control, half_band / control)
    units, uplift = log.aggregates.n_units, smallest.total * control
    return MetricPlan(
        control=control,
        treatment=treatment,
        reasons=estimate.reasons,
        smallest_uplift=smallest,
        to_halve=to_halve(smallest, log.days),
        online_units=online_units(metric.control.std_error, units, uplift, scale.factor, log.split),
        exploration=_explorations(log, m, scale),
    )


class _Scale(NamedTuple):
    """What turns standard errors and unsupported parts of one metric into uplifts."""

    factor: float  # z_{1−α/2} + z_{.8}
    width: float  # ½·[(Γ_upper − 1) + (1 − 1/Γ_lower)]
    control: float  # the mean reward
    treatment: float

    @classmethod
    def of(cls, analysis: Analysis, by_slot: bool, control: float, treatment: float) -> _Scale:
        factor = float(ndtri(0.5 + analysis.confidence_level / 2.0) + ndtri(POWER))
        lower, upper = analysis.gamma_at(by_slot=by_slot)
        width = 0.5 * ((upper - 1.0) + (1.0 - 1.0 / lower))
        return cls(factor, width, control, treatment)


def _half_band(sensitivity: Any, aggregates: Aggregates, weighting: Weighting, worth: float) -> float:
    """Half the width of the band of the effect size, or where there is no band the most that the cap could hide."""
    if sensitivity is not None and sensitivity["effect_size_lower"] is not None:
        return float(sensitivity["effect_size_upper"] - sensitivity["effect_size_lower"]) / 2.0
    sums = aggregates.h.get(weighting)
    if sums is None:
        return math.nan
    mass_kept = float(sums.get("h").sum()) * math.exp(min(sums.log_unit, 700.0)) / aggregates.rows
    return max(0.0, 1.0 - mass_kept) * worth


def to_halve(smallest: SmallestUplift, days: int | None) -> ToHalve:
    """f = (2S/(S − I))² times the log."""
    sampling, identification = smallest
    if not sampling > identification:
        return ToHalve(None, None)
    times = (2.0 * sampling / (sampling - identification)) ** 2
    return ToHalve(times, None if days is None else math.ceil((times - 1.0) * days))


def online_units(
    error: float | None, units: int, uplift: float, factor: float, split: tuple[float, float]
) -> int | None:
    """N = σ²·(1/a + 1/b)·(factor/Δ)² in both arms together, σ² = se²·units; None where se or Δ is not known."""
    if error is None or not uplift > 0.0:
        return None
    return math.ceil(error**2 * units * sum(1.0 / share for share in split) * (factor / uplift) ** 2)


def _explorations(log: LogToPlan, m: int, scale: _Scale) -> list[Explored] | None:
    """One entry per share of exploration; None where it cannot be predicted."""
    columns = {} if log.sample is None else log.sample.sample.columns()
    if not columns:
        return None
    r = columns[f"r:{m}"]
    mean_square, rows = float(log.aggregates.r2[m]) / log.aggregates.rows, log.aggregates.rows
    explorations = []
    for epsilon in SHARES if r.any() else ():
        explored = moments(columns, log.weighting, epsilon)
        spread = float(np.average(explored.second, weights=r**2)) - 1.0
        mass_kept = float(np.average(explored.mass_kept, weights=r))
        sampling = scale.factor * math.sqrt(mean_square * max(0.0, spread) / rows) / scale.control
        identification = scale.width * max(0.0, 1.0 - mass_kept) * scale.treatment / scale.control
        explorations.append(
            Explored(
                epsilon=epsilon,
                cost_at_most=epsilon,
                treatment_mass_kept=mass_kept,
                std_error=sampling * scale.control / scale.factor,
                largest_weight=explored.largest,
                weight_bound=explored.bound,
                smallest_uplift=SmallestUplift(sampling, identification),
            )
        )
    return explorations

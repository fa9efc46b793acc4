"""A folded log with what a plan is made for, and what turns its sums into uplifts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.dense import is_dense_ratio
from foretest.aggregation.quantities import SQUARES, SQUARES_REWARDS
from foretest.estimators import Estimator
from foretest.inference.bound_choice import at_chosen_bound
from foretest.online.comparison import POWER
from foretest.planning.baseline_rows import ControlArm
from foretest.planning.item_lists import curve_by_display
from foretest.planning.levels import EXPOSURE, RANKING, SLOT, Scale
from foretest.planning.rewarded_sample import RewardedSample
from foretest.special import ndtri
from foretest.weights.weightings import Weighting


class LogToPlan(NamedTuple):
    """A folded log, and what the plan is for."""

    aggregates: Aggregates
    sample: RewardedSample | None  # None where rankings cannot be drawn, or there is no reward
    estimators: dict[str, Estimator]  # by level; by ranking the one that is planned for
    days: int | None
    split: tuple[float, float]  # of an online test
    control_arm: ControlArm | None  # what an online control arm would be like; None where that is not known

    @property
    def estimator(self) -> Estimator:
        """The one that is planned for."""
        return self.estimators[RANKING]

    def at_chosen_bounds(self, metric: int) -> LogToPlan:
        """The same with the bounds that the log chooses for a metric."""
        return self._replace(
            estimators={level: at_chosen_bound(self.aggregates, e, metric) for level, e in self.estimators.items()}
        )

    def weighting(self, level: str) -> Weighting:
        """The weights of a level's estimator."""
        return self.aggregates.plan.weighting(self.estimators[level])


def scale_of(log: LogToPlan, m: int, control: float, treatment: float) -> Scale:
    """What turns standard errors and unsupported parts of one metric into uplifts."""
    a, aggregates = log.aggregates.plan.settings.analysis, log.aggregates
    factor = float(ndtri(0.5 + a.confidence_level / 2.0) + ndtri(POWER))
    return Scale(
        factor=factor,
        width={level: _width(*a.gamma_at(by_slot=log.weighting(level).by_slot)) for level in log.estimators},
        control=control,
        treatment=treatment,
        mean_square=float(aggregates.r2[m]) / aggregates.displays,
        rows=aggregates.displays,
        rewards=float(aggregates.r[m].sum()),
        dense={level: _dense(log, level, m, control) for level in log.estimators},
    )


def _dense(log: LogToPlan, level: str, m: int, control: float) -> float:
    """1 − R² Σ_k s_k²/mean(r²) where values are ratios of sums over all rows, else 1."""
    aggregates, sample = log.aggregates, log.sample
    if sample is None or not is_dense_ratio(aggregates, log.weighting(level), m):
        return 1.0
    part, curves = np.ones(len(sample)), aggregates.plan.examination.curves.get(m)
    if level == SLOT:
        part = 1.0 / sample.displays.slots
    elif level == EXPOSURE and curves is not None:
        theta = curve_by_display(sample.displays, curves)
        part = np.square(theta).sum(axis=1) / np.square(theta.sum(axis=1))
    # of Σ (m r)², by the mean: Σ (m r)² − Σ m²(r − R)², m = 1 but in a thinned log
    plain = aggregates.ledger.plain
    explained = float(part.mean()) * control * (2.0 * plain.total(SQUARES_REWARDS, m) - control * plain.total(SQUARES))
    return max(0.0, 1.0 - explained / float(aggregates.r2[m]))


def _width(lower: float, upper: float) -> float:
    """½·[(Γ_upper − 1) + (1 − 1/Γ_lower)]."""
    return 0.5 * ((upper - 1.0) + (1.0 - 1.0 / lower))

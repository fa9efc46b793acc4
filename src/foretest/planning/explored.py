"""What a log could show if its control explored, and what that would cost: one row for each way to explore."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.planning.cost import UNKNOWN, Cost, Uncertainty, cost_at_most, cost_of
from foretest.planning.exploration import moments, ranking_draws
from foretest.planning.exploring_policies import Exploration, explorations
from foretest.planning.levels import (
    LEVELS,
    NOTHING,
    RANKING,
    LevelOutlook,
    LevelsToPlan,
    Scale,
    SmallestUplift,
    outlook_at,
    outlooks,
)
from foretest.planning.policy_tables import MetricLists
from foretest.planning.rewarded_sample import RewardedSample
from foretest.policies import Policy
from foretest.records import dataclass
from foretest.weights.weightings import Weighting


class PolicyOutlook(NamedTuple):
    """What a log of one control could show, and what this control costs."""

    cost: Cost
    cost_at_most: float
    levels: dict[str, LevelOutlook]


@dataclass(frozen=True)
class Explorer:
    """Predicts, for one metric, what any policy in place of the control would show and cost."""

    sample: RewardedSample
    lists: MetricLists
    levels: LevelsToPlan
    scale: Scale
    reach: Uncertainty
    deterministic: bool  # does the control never vary?

    def look(self, policy: Policy) -> PolicyOutlook:
        """The outlook of a log of as many displays with this policy as the control."""
        lists = self.lists.of(policy)
        cost = cost_of(lists, self.levels, self.reach, deterministic=self.deterministic)
        at_most = cost_at_most(policy, self.lists.tables, self.levels.metric)
        return PolicyOutlook(cost, at_most, outlooks(lists, self.levels, self.scale))

    def look_at(self, level: str, policy: Policy) -> LevelOutlook:
        """The outlook at one level alone."""
        return outlook_at(level, self.lists.of(policy), self.levels, self.scale)


class Explored(NamedTuple):
    """What a log could show with one way to explore."""

    kind: str
    epsilon: float | None  # the share of random rankings, of the kind `uniform`
    settings: dict[str, Any] | None
    cost: Cost
    cost_at_most: float  # as a share of the control's value
    treatment_mass_kept: float  # by ranking, as are the next four
    std_error: float
    largest_weight: float
    weight_bound: float
    smallest_uplift: SmallestUplift
    levels: dict[str, LevelOutlook]

    @property
    def best_level(self) -> str | None:
        """The level that shows the smallest uplift; None where none shows any."""
        level = min(self.levels, key=lambda name: self.levels[name].total, default=None)
        return None if level is None or math.isinf(self.levels[level].total) else level

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.json for a row."""
        row = self._asdict()
        del row["cost"]
        return {
            **row, **self.cost.to_dict(), "smallest_uplift": self.smallest_uplift.to_dict(),
            "levels": {name: self.levels[name].to_dict() for name in LEVELS if name in self.levels},
        }  # fmt: skip


def explored_rows(explorer: Explorer, plan: FoldPlan, weighting: Weighting) -> list[Explored]:
    """All rows; `weighting` is that of the estimator of whole rankings that is planned for."""
    drawn = ranking_draws(explorer.sample.displays, plan.normaliser.pair, plan.settings.control)
    rows = []
    for exploration in explorations(plan, explorer.sample.displays):
        outlook = PolicyOutlook(UNKNOWN, math.nan, {})
        if exploration.policy is not None:
            outlook = explorer.look(exploration.policy)
        if exploration.epsilon is None:
            rows.append(_row(exploration, outlook))
        else:
            rows.append(_uniform_row(exploration, outlook, explorer, drawn, weighting))
    return rows


def _row(exploration: Exploration, outlook: PolicyOutlook) -> Explored:
    ranking = outlook.levels[RANKING]
    return Explored(
        kind=exploration.kind,
        epsilon=None,
        settings=exploration.settings,
        cost=outlook.cost,
        cost_at_most=outlook.cost_at_most,
        treatment_mass_kept=ranking.treatment_mass_kept,
        std_error=ranking.std_error,
        largest_weight=math.nan,
        weight_bound=math.nan,
        smallest_uplift=NOTHING if ranking.obstacle else ranking.smallest_uplift,
        levels=outlook.levels,
    )


def _uniform_row(
    exploration: Exploration, outlook: PolicyOutlook, explorer: Explorer, drawn: dict[str, Any], weighting: Weighting
) -> Explored:
    """A share of random rankings; by ranking from rankings drawn of both policies, so that none is drawn again."""
    epsilon, scale = exploration.epsilon or 0.0, explorer.scale
    r = explorer.sample.rewards[:, explorer.levels.metric]
    explored = moments(drawn, weighting, epsilon)
    std_error = scale.std_error(float(np.average(explored.second, weights=r**2)) - 1.0)
    mass_kept = float(np.average(explored.mass_kept, weights=r))
    return Explored(
        kind=exploration.kind,
        epsilon=epsilon,
        settings=exploration.settings,
        cost=outlook.cost,
        cost_at_most=epsilon,
        treatment_mass_kept=mass_kept,
        std_error=std_error,
        largest_weight=explored.largest,
        weight_bound=explored.bound,
        smallest_uplift=scale.uplift(RANKING, std_error, (1.0 - mass_kept) * scale.treatment),
        levels=outlook.levels,
    )

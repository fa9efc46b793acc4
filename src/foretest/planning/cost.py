"""What exploration costs: the reward of the control as it is less that of one that explores, relative to the first.

By the rewards of the log (`item_lists`) it is 1 − Σ r·[min(u, c) + rest]/Σ r: by exposure where there is a curve, else
by slot, else by ranking, where u = π'(a)/π_p(a). A control that never varies has no other ranking, nor another item in
a slot, to compare with: there only exposure tells. Whatever the model, rewards are not negative, so that the cost is at
most Σ r (1 − min(1, π'(a)/π_p(a)))/Σ r.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from foretest.displays.batch import Floats, Hashes
from foretest.files import finite_or_none
from foretest.planning.item_lists import ItemLists
from foretest.planning.levels import EXPOSURE, RANKING, SLOT, LevelsToPlan
from foretest.planning.policy_tables import PolicyLists, PolicyTables
from foretest.planning.rewarded_sample import RewardedSample
from foretest.policies import Policy
from foretest.policies.pricing import priced
from foretest.weights.examination import VARIANTS
from foretest.weights.normaliser import Normaliser


class Cost(NamedTuple):
    """The reward that exploration gives up, relative to the control's; NaN where the log does not tell."""

    value: float
    std_error: float
    ci_lower: float
    ci_upper: float
    level: str | None  # whose weights tell

    def to_dict(self) -> dict[str, float | str | None]:
        """The content of plan.json for a row."""
        return {
            "cost": finite_or_none(self.value), "cost_std_error": finite_or_none(self.std_error),
            "cost_ci_lower": finite_or_none(self.ci_lower), "cost_ci_upper": finite_or_none(self.ci_upper),
            "cost_level": self.level,
        }  # fmt: skip


UNKNOWN = Cost(math.nan, math.nan, math.nan, math.nan, None)


class _Ratios(NamedTuple):
    """What every reward would be worth under exploration, as a multiple of what it is."""

    known: Floats  # min(u, c)
    rest: Floats  # what the log does not tell, taken to be worth as much as the reward
    reward: Floats
    unit: Hashes


class Uncertainty(NamedTuple):
    """How far a cost's interval reaches: z of the confidence level, and the factors of what is not known."""

    z: float
    gamma: dict[str, tuple[float, float]]  # by level


def cost_of(lists: PolicyLists, levels: LevelsToPlan, reach: Uncertainty, *, deterministic: bool) -> Cost:
    """The cost of the policy of these lists in place of the control."""
    policy, tables = lists.policy, lists.metric.tables
    if EXPOSURE in levels.weightings:
        variants = range(len(VARIANTS)) if levels.curve_given else (0,)
        by_curve = [_of_lists(lists.by_exposure(tables.most, variant), lists.sample) for variant in variants]
        found = [_cost(ratios, EXPOSURE, reach) for ratios in by_curve]
        lower, upper = min(one.ci_lower for one in found), max(one.ci_upper for one in found)
        return found[0]._replace(ci_lower=lower, ci_upper=upper)
    if deterministic:
        return UNKNOWN if policy is not tables.pair.control else Cost(0.0, 0.0, 0.0, 0.0, None)
    if SLOT in levels.weightings:
        return _cost(_of_lists(lists.by_slot(tables.most), lists.sample), SLOT, reach)
    return _cost(_of_rankings(policy, tables, levels.metric), RANKING, reach)


def cost_at_most(policy: Policy, tables: PolicyTables, metric: int) -> float:
    """The most that it could cost: rankings that it shows more often than the control may earn nothing there."""
    r = tables.sample.rewards[:, metric]
    return float(np.average(1.0 - np.minimum(1.0, _ratio(policy, tables)), weights=r))


def _of_lists(lists: ItemLists, sample: RewardedSample) -> _Ratios:
    rest = np.bincount(lists.of_cell, weights=lists.rest, minlength=len(lists.lengths)).astype(np.float64)
    return _Ratios(lists.known, rest[lists.owner], lists.reward, sample.unit[lists.display])


def _of_rankings(policy: Policy, tables: PolicyTables, metric: int) -> _Ratios:
    pair, sample = tables.pair, tables.sample
    r = sample.rewards[:, metric]
    if policy is pair.control:
        return _Ratios(np.ones(len(r)), np.zeros(len(r)), r, sample.unit)
    masses = Normaliser(policy, pair.control, "auto", 64, pair.seed).at_adaptive_cap(sample.displays, tables.most)
    supported = masses.q > 0.0
    known = np.where(supported, np.minimum(_ratio(policy, tables), masses.cap), 0.0)
    return _Ratios(known, 1.0 - np.minimum(masses.q, 1.0), r, sample.unit)


def _ratio(policy: Policy, tables: PolicyTables) -> Floats:
    """π'(a)/π_p(a) of the shown rankings."""
    displays = tables.sample.displays
    log_u = priced(policy, displays, displays.ranking) - priced(tables.pair.control, displays, displays.ranking)
    return np.asarray(np.exp(np.minimum(log_u, 700.0)))


def _cost(ratios: _Ratios, level: str, reach: Uncertainty) -> Cost:
    """The mean of the ratios by rewards, its standard error by unit, and how far noise and what is not known reach."""
    known, rest, r, unit = ratios
    total = float(r.sum())
    worth = float(np.sum(r * (known + rest))) / total
    _, code = np.unique(unit, return_inverse=True)
    by_unit = np.bincount(code, weights=r * (known + rest - worth))
    units = len(by_unit)
    error = math.sqrt(units / (units - 1.0) * float(np.square(by_unit).sum())) / total if units > 1 else math.nan
    unknown, (lower, upper) = float(np.sum(r * rest)) / total, reach.gamma[level]
    least = 1.0 - worth - reach.z * error - (upper - 1.0) * unknown
    most = 1.0 - worth + reach.z * error + (1.0 - 1.0 / lower) * unknown
    return Cost(1.0 - worth, error, least, most, level)

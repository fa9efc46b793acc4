"""What a log could show at each level of its weights, if its control explored: by ranking, by slot, by exposure.

For a policy p' in place of the control, per display and with E' of `item_lists`,

    s²      = E'[Σ_k (w̃_k − 1)² r_k²]/n               sampling
    mean(t) = E'[Σ_k (1 − q_k) w̃_k r_k]               identification

by slot, and by exposure with w̃ of the item. By ranking, reward and weight are taken not to go together within a
display: s² = mean(r²)·(mean of E'[w̃²|x], weighted by r², − 1)/n, mean(t) = R_t·(mean of 1 − q(x), weighted by r).
Where the log chooses the bound on weights, it is the one chosen for the control as it is. Where rewards are dense and
values are Σ w̃ r/Σ w̃, noise is in r_k − R s_k, s_k the slot's part of a row's mean weight: mean(r²) − R² Σ_k s_k² takes
the place of mean(r²).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from foretest.displays.batch import Floats
from foretest.files import finite_or_none
from foretest.formatting import percent
from foretest.inference.verdict import LEAST_MASS_KEPT, MOST_UNSUPPORTED
from foretest.planning.curve_error import ExposedSlots
from foretest.planning.exploration import moments, ranking_draws
from foretest.planning.item_lists import ItemLists
from foretest.planning.policy_tables import PolicyLists
from foretest.planning.rewarded_sample import RewardedSample
from foretest.policies import Policy
from foretest.records import dataclass
from foretest.weights.examination import Curves
from foretest.weights.exposure_weights import ExposureAdaptive
from foretest.weights.normaliser import Normaliser
from foretest.weights.policy_pair import PolicyPair
from foretest.weights.slot_weights import SlotAdaptive
from foretest.weights.weightings import Adaptive, Weighting

RANKING, SLOT, EXPOSURE = "ranking", "slot", "exposure"
LEVELS = (RANKING, SLOT, EXPOSURE)
GIVEN, FIT = "given", "fit"
NOT_CONNECTED = "too few rewards would connect the slots to fit an examination curve"
DRAWS = 64  # rankings per display, half from each policy
#: c of `item_lists`. A reward that stands for others is noisy, and its squared weight more so; the fitted worth is not
MOST = 0.5


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


NOTHING = SmallestUplift(math.nan, math.nan)


class Scale(NamedTuple):
    """What turns the sample's sums for one metric into uplifts of the log."""

    factor: float  # z_{1−α/2} + z_{.8}
    width: dict[str, float]  # ½·[(Γ_upper − 1) + (1 − 1/Γ_lower)], by level
    control: float  # the mean reward
    treatment: float
    mean_square: float  # of rewards
    rows: float
    rewards: float  # Σ r of the log
    dense: dict[str, float]  # by level: the part of mean(r²) that a ratio of sums leaves, 1 where values are means

    def std_error(self, squares: float, level: str | None = None) -> float:
        """The standard error, from the mean of squared terms as a multiple of mean(r²); at a level, as its estimator
        has it."""
        part = 1.0 if level is None else self.dense.get(level, 1.0)
        return math.sqrt(self.mean_square * part * max(0.0, squares) / self.rows)

    def uplift(self, level: str, std_error: float, unsupported: float, moved: float = 0.0) -> SmallestUplift:
        """From a standard error, mean(t), and half of what other curves move the uplift by."""
        identification = (self.width[level] * max(0.0, unsupported) + moved) / self.control
        return SmallestUplift(self.factor * std_error / self.control, identification)


class LevelOutlook(NamedTuple):
    """What a log could show at one level."""

    smallest_uplift: SmallestUplift
    std_error: float
    treatment_mass_kept: float
    unsupported: float  # the share of rewards where no cap keeps the bound
    examination: str | None = None  # by exposure: is the curve given, or fitted from the exploration?
    reason: str | None = None  # why it could not be used at all

    @property
    def obstacle(self) -> str | None:
        """Why there would be no verdict at all, whatever the uplift; None where there would be one."""
        if self.reason is not None:
            return self.reason
        if self.unsupported > MOST_UNSUPPORTED:
            return f"{percent(self.unsupported)} of the rewards would have no support"
        if not self.treatment_mass_kept >= LEAST_MASS_KEPT:
            return f"only {percent(self.treatment_mass_kept)} of what the treatment shows would be supported"
        return None

    @property
    def total(self) -> float:
        """The smallest uplift; infinite where nothing would show."""
        total = self.smallest_uplift.total
        return math.inf if self.obstacle or not math.isfinite(total) else total

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.json for one level of a row."""
        shows = NOTHING if self.obstacle else self.smallest_uplift
        return {
            "smallest_uplift": shows.to_dict(), "std_error": self.std_error,
            "treatment_mass_kept": self.treatment_mass_kept, "unsupported": self.unsupported, "reason": self.obstacle,
            **({} if self.examination is None else {"examination": self.examination}),
        }  # fmt: skip


@dataclass(frozen=True)
class LevelsToPlan:
    """The levels of one metric, each with its weights, and the examination curves."""

    metric: int
    weightings: dict[str, Weighting]
    curves: Curves | None
    curve_given: bool

    def may_fit(self) -> bool:
        """Could a log that explores fit the curve? One for all displays, that is."""
        return self.curves is not None and len(self.curves.thetas) == 1


def outlooks(lists: PolicyLists, levels: LevelsToPlan, scale: Scale) -> dict[str, LevelOutlook]:
    """What the log could show at every level, if the policy of these lists had been the control."""
    return {level: outlook_at(level, lists, levels, scale) for level in LEVELS if level in levels.weightings}


def outlook_at(level: str, lists: PolicyLists, levels: LevelsToPlan, scale: Scale) -> LevelOutlook:
    """What the log could show at one level, if the policy of these lists had been the control."""
    if level == RANKING:
        return _by_ranking(lists.policy, lists.sample, lists.metric.tables.pair, levels, scale)
    if level == SLOT:
        return _by_slot(lists.by_slot(MOST), levels, lists.sample, scale)
    of_curves = _by_exposure(lists.exposed_slots(MOST), levels, lists.sample, scale)
    return min(of_curves, key=lambda outlook: outlook.total)


def _by_ranking(
    policy: Policy, sample: RewardedSample, pair: PolicyPair, levels: LevelsToPlan, scale: Scale
) -> LevelOutlook:
    """By whole rankings, from rankings of this policy and of the treatment; exact where they are few."""
    r, weighting = sample.rewards[:, levels.metric], levels.weightings[RANKING]
    if not isinstance(weighting, Adaptive):
        drawn = moments(ranking_draws(sample.displays, replace(pair, control=policy), policy), weighting, 0.0)
        return _ranking_outlook(drawn.second, drawn.mass_kept, r, scale)
    normaliser = Normaliser(pair.treatment, policy, "auto", DRAWS, pair.seed)
    masses = normaliser.at_bounds(sample.displays, [weighting.bound])
    return _ranking_outlook(masses.products[:, 0, 0], masses.q[:, 0], r, scale)


def _ranking_outlook(second: Floats, q: Floats, r: Floats, scale: Scale) -> LevelOutlook:
    kept = min(1.0, float(np.average(q, weights=r)))
    std_error = scale.std_error(float(np.average(second, weights=r**2)) - 1.0, RANKING)
    uplift = scale.uplift(RANKING, std_error, (1.0 - kept) * scale.treatment)
    return LevelOutlook(uplift, std_error, kept, float(np.average(q <= 0.0, weights=r)))


def _by_slot(lists: ItemLists, levels: LevelsToPlan, sample: RewardedSample, scale: Scale) -> LevelOutlook:
    weighting = levels.weightings[SLOT]
    assert isinstance(weighting, SlotAdaptive)
    capped, r = lists.capped(weighting.bound), sample.rewards[:, levels.metric]
    squares = lists.expected((capped.weight - 1.0) ** 2, power=2) / float(np.square(r).sum())
    unsupported = lists.expected((1.0 - capped.q)[lists.of_cell] * capped.weight) / float(r.sum())
    std_error = scale.std_error(squares, SLOT)
    uplift = scale.uplift(SLOT, std_error, unsupported * scale.control)
    q = capped.q[lists.owner]
    return LevelOutlook(uplift, std_error, _share(q, lists), _share(q <= 0.0, lists))


def _by_exposure(
    exposed: ExposedSlots, levels: LevelsToPlan, sample: RewardedSample, scale: Scale
) -> list[LevelOutlook]:
    """By exposure, with the curve that was given, and with one that is fitted from the exploration."""
    weighting = levels.weightings[EXPOSURE]
    assert isinstance(weighting, ExposureAdaptive)
    lists, r = exposed.lists, sample.rewards[:, levels.metric]
    capped = lists.capped(weighting.bound)
    total, square = float(r.sum()), float(np.square(r).sum())
    unsupported = lists.expected((1.0 - capped.q)[lists.of_cell] * capped.weight) / total * scale.control
    q = capped.q[lists.owner]
    kept, without = _share(q, lists), _share(q <= 0.0, lists)
    found = []
    if levels.curve_given:
        std_error = scale.std_error(lists.expected((capped.weight - 1.0) ** 2, power=2) / square, EXPOSURE)
        moved = exposed.half_range(capped) / total * scale.control
        uplift = scale.uplift(EXPOSURE, std_error, unsupported, moved)
        found.append(LevelOutlook(uplift, std_error, kept, without, GIVEN))
    squares = exposed.fitted(capped, scale.rewards / total) if levels.may_fit() else None
    if squares is not None:
        std_error = scale.std_error(squares / square, EXPOSURE)
        uplift = scale.uplift(EXPOSURE, std_error, unsupported)
        found.append(LevelOutlook(uplift, std_error, kept, without, FIT))
    return found or [LevelOutlook(NOTHING, math.nan, kept, without, FIT, NOT_CONNECTED)]


def _share(values: Any, lists: ItemLists) -> float:
    """The mean over rewards, each by its size."""
    return float(np.average(values, weights=lists.reward))

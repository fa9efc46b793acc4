"""P(item in slot) of the policies that a plan compares, on one sample of displays, and the lists of items, by slot and
by exposure, that are made of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from foretest.displays.batch import Floats
from foretest.displays.ragged import Ragged
from foretest.planning.curve_error import ExposedSlots
from foretest.planning.item_lists import (
    ItemLists,
    Tables,
    curve_by_display,
    exposure_lists,
    items_of_slots,
    slot_lists,
)
from foretest.planning.item_worth import relative_worth, worth_features
from foretest.planning.rewarded_sample import RewardedSample
from foretest.policies import Mixture, Policy
from foretest.records import dataclass
from foretest.weights.examination import Curves
from foretest.weights.policy_pair import PolicyPair
from foretest.weights.slot_marginals import knows_marginals, slot_marginals


@dataclass(frozen=True)
class PolicyTables:
    """The tables of displays under both policies of a test and under any other; `most` is how far rewards of the log
    stand for those under another control, in costs."""

    sample: RewardedSample
    pair: PolicyPair  # the treatment and the control as it is
    most: float

    @cached_property
    def treatment(self) -> Floats:
        return self._table(self.pair.treatment)

    @cached_property
    def control(self) -> Floats:
        return self._table(self.pair.control)

    def of(self, policy: Policy) -> Tables:
        """The tables with this policy as the control that explores."""
        return Tables(self.treatment, self.explored(policy), self.control)

    def explored(self, policy: Any) -> Floats:
        """The table of a policy; of a mixture from those of its parts, as the control's is known."""
        if policy is self.pair.control:
            return self.control
        if isinstance(policy, Mixture):
            return np.asarray(sum(share * self.explored(part) for share, part in policy.components))
        return self._table(policy)

    @cached_property
    def log_control(self) -> Floats:
        """log π_p of the shown rankings."""
        return _log_prob(self.pair.control, self.sample)

    def _table(self, policy: Any) -> Floats:
        log_w = np.zeros(len(self.sample))
        if policy is not self.pair.control and not knows_marginals(policy):
            log_w = np.maximum(_log_prob(policy, self.sample) - self.log_control, -700.0)
        pair = replace(self.pair, control=policy)
        return np.asarray(slot_marginals(policy, self.sample.displays, pair, log_w).flat())


def _log_prob(policy: Any, sample: RewardedSample) -> Floats:
    """log π of the shown rankings."""
    return np.asarray(policy.log_prob(sample.displays, sample.displays.ranking), np.float64)


@dataclass(frozen=True)
class MetricLists:
    """The lists of items of one metric whose slots are known."""

    tables: PolicyTables
    metric: int
    curves: Curves | None  # of examination

    def of(self, policy: Policy) -> PolicyLists:
        """The lists with this policy as the control that explores."""
        return PolicyLists(self, policy)

    def theta(self, variant: int = 0) -> Floats:
        """θ of every display, a row each; `variant` is that of the curve."""
        assert self.curves is not None
        return curve_by_display(self.tables.sample.displays, self.curves, variant)

    @property
    def earned(self) -> Ragged:
        """What each slot earned."""
        return self.tables.sample.slots[self.metric]

    @cached_property
    def slot_worth(self) -> Floats:
        """What items are worth, of every cell of lists of slots."""
        displays = self.tables.sample.displays
        lists = slot_lists(displays, self._present, self.earned, self.tables.most)
        return relative_worth(lists, self._scores[:, items_of_slots(displays)])

    @cached_property
    def exposure_worth(self) -> Floats:
        """What items are worth, of every cell of lists by exposure."""
        displays = self.tables.sample.displays
        lists = exposure_lists(displays, self._present, self.earned, self.theta(), self.tables.most)
        return relative_worth(lists, self._scores)

    @property
    def _present(self) -> Tables:
        """The tables of the control as it is."""
        return self.tables.of(self.tables.pair.control)

    @cached_property
    def _scores(self) -> Floats:
        pair = self.tables.pair
        return worth_features(pair.control, pair.treatment, self.tables.sample.displays)


@dataclass(frozen=True)
class PolicyLists:
    """The lists of items of one metric with a policy as the control that explores."""

    metric: MetricLists
    policy: Policy

    @property
    def sample(self) -> RewardedSample:
        """The displays."""
        return self.metric.tables.sample

    @cached_property
    def tables(self) -> Tables:
        """P(item in slot) of the three policies."""
        return self.metric.tables.of(self.policy)

    def by_slot(self, most: float) -> ItemLists:
        """The lists of slots; `most` is how far rewards of the log stand for those under the policy."""
        lists = slot_lists(self.sample.displays, self.tables, self.metric.earned, most)
        return replace(lists, worth=self.metric.slot_worth)

    def by_exposure(self, most: float, variant: int = 0) -> ItemLists:
        """The lists of displays by exposure; `variant` is that of the curve."""
        theta = self.metric.theta(variant)
        lists = exposure_lists(self.sample.displays, self.tables, self.metric.earned, theta, most)
        return replace(lists, worth=self.metric.exposure_worth)

    def exposed_slots(self, most: float) -> ExposedSlots:
        """The slots behind the lists by exposure."""
        return ExposedSlots.of(self.sample.displays, self.by_exposure(most), self.tables, self.metric.theta())

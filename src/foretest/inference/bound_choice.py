"""The bound on normalised weights that a log can carry: `weight_bound = "auto"`.

A small bound suits rare rewards; where rewards are dense and the treatment is far, it throws away what the log could
well tell. Sample variances cannot choose: heavy rows that were not drawn make large bounds look safe. Predicted ones
can, over all that the control could have shown in a display. With V_b the value at bound b,

    S_b  = Σ r² E_p[w̃_b²|x]/n²                       its predicted variance
    s²_D = Σ r² E_p[(w̃_b' − w̃_b)²|x]/n²              that of V_b' − V_b
    n_D  = (Σ r E_p[(w̃_b − w̃_b0)⁺|x])²/Σ r² E_p[(w̃_b − w̃_b0)²|x]   rewards that carry V_b − V_b0

A bound is admissible if n_D and its predicted effective positives (Σr)²/Σr² E_p[w̃_b²|x] are both at least 30, what any
verdict needs; the least always is. Chosen is the admissible bound of least

    S_b + max over admissible b' > b of max(0, (V_b' − V_b)² − 9·s²_D)

Of several differences one exceeds its standard error by chance every second time, and a bound raised for that has more
noise for nothing: only beyond three it counts as bias. Where rewards are dense and V_b is a ratio of sums, r − β takes
the place of r in S_b and s²_D, β = V_b; then n_D ≥ 5, 15 positives and one standard error do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.bound_sums import BoundSums, bound_sums
from foretest.aggregation.dense import is_dense_ratio
from foretest.aggregation.fold_plan import Bounded
from foretest.displays.batch import Floats
from foretest.estimators import AdaptiveExposureNCIS, AdaptivePointDR, AdaptivePointNCIS, AdaptiveSlotNCIS, Estimator
from foretest.inference.buckets import bucket_sums, mean_weights
from foretest.inference.uplift import value_of
from foretest.inference.verdict import DENSE_POSITIVES, FEWEST_POSITIVES
from foretest.records import dataclass
from foretest.results.bound_choice import BoundChoice, BoundRow
from foretest.weights.weight_bounds import GRID


class Needs(NamedTuple):
    """What a larger bound must show."""

    events: float  # rewards that carry its difference to the least one
    positives: float  # predicted effective positives
    clear: float  # standard errors beyond which a difference is bias, and not chance


RARE = Needs(FEWEST_POSITIVES, FEWEST_POSITIVES, 3.0)
#: a ratio's noise is in r − V and not in r, so that half as many rewards do, and differences are far beyond chance
DENSE = Needs(5.0, DENSE_POSITIVES, 1.0)
_ROUNDING = 1e-12  # of second moments: below it two bounds weigh alike


@dataclass(frozen=True)
class _Candidates:
    """Values and predicted moments at every bound of the grid, for one metric."""

    bounds: tuple[float, ...]
    value: Floats
    moments: BoundSums
    rows: float
    rewards: float  # Σ r
    needs: Needs

    @property
    def is_ratio(self) -> bool:
        """Are values Σhr/Σh, with all rows weighed?"""
        return self.moments.weighed > 0.0

    def products(self, b: int) -> Floats:
        """Σ (r − β)² E_p[w̃ w̃'|x], β what a reward is worth at bound b, or 0 where values are means."""
        return self.moments.about(self.value[b] * self.rows / self.moments.weighed if self.is_ratio else 0.0)

    def difference(self, b: int, other: int) -> float:
        """Σ (r − β)² E_p[(w̃_b' − w̃_b)²|x], 0 where that is rounding."""
        return _difference(self.products(b), b, other)

    def events(self, b: int) -> float:
        """n_D of a bound and the least one; infinite where the two weigh alike."""
        square = _difference(self.moments.products[2], 0, b)
        return float(self.moments.gains[b]) ** 2 / square if square > 0.0 else float("inf")

    def effective(self, b: int) -> float:
        """Predicted effective positives."""
        square = float(self.moments.products[2][b, b])
        return self.rewards**2 / square if square > 0.0 else 0.0

    def is_admissible(self, b: int) -> bool:
        """Can the log carry the bound?"""
        return b == 0 or (self.events(b) >= self.needs.events and self.effective(b) >= self.needs.positives)

    def variance(self, b: int) -> float:
        """S_b."""
        return max(0.0, float(self.products(b)[b, b])) / self.rows**2

    def squared_bias(self, b: int, admissible: Sequence[int]) -> float:
        """What larger admissible bounds say is missing at b, squared, beyond noise."""
        above = (
            (self.value[k] - self.value[b]) ** 2 - self.needs.clear**2 * self.difference(b, k) / self.rows**2
            for k in admissible
            if k > b
        )
        return float(max(0.0, max(above, default=0.0)))


def _difference(m: Floats, b: int, other: int) -> float:
    """The second moment of a difference of two weights from those of both, 0 where that is rounding."""
    square = float(m[b, b] + m[other, other] - 2.0 * m[b, other])
    return square if square > _ROUNDING * abs(float(m[b, b])) else 0.0


def choose_bound(aggregates: Aggregates, estimator: Estimator, metric: int) -> BoundChoice | None:
    """The bound of an estimator for one metric, found once from these sums; None where it has a number, or the log no
    reward or no such sums."""
    weightings = aggregates.plan.bound_weightings(estimator)
    if not weightings:
        return None
    # a reward model changes no bound: the same weights suit both
    plain = AdaptivePointNCIS() if isinstance(estimator, AdaptivePointDR) else estimator
    question = plain, weightings, metric
    if question not in aggregates._answers:
        candidates = _candidates(aggregates, plain, weightings, metric)
        aggregates._answers[question] = None if candidates is None else _choose(candidates)
    choice: BoundChoice | None = aggregates._answers[question]
    return choice


def _candidates(
    aggregates: Aggregates, plain: Estimator, weightings: Sequence[Bounded], metric: int
) -> _Candidates | None:
    """The bounds to choose from; None where the log has no reward or no such sums."""
    if not aggregates.positives[metric] or not aggregates.has_weighted(weightings[0], metric):
        return None
    moments = bound_sums(aggregates.weighted(weightings[0], metric))
    if moments is None or not all(aggregates.has_weighted(w, metric) for w in weightings):
        return None
    if mean_weights(aggregates, weightings[0]) is None:  # bounds on means
        moments = moments._replace(weighed=0.0)
    value = [
        float(value_of(plain, bucket_sums(aggregates, at_bound(plain, w.bound), metric).total())[0])
        for w in weightings
    ]  # fmt: skip
    rewards = sum(float(aggregates.r[m].sum()) for m in aggregates.plan.combination(metric).places)
    dense = moments.weighed > 0.0 and is_dense_ratio(aggregates, weightings[0], metric)
    return _Candidates(GRID, np.array(value), moments, aggregates.displays, rewards, DENSE if dense else RARE)


def _choose(c: _Candidates) -> BoundChoice:
    places = range(len(c.bounds))
    admissible = [b for b in places if c.is_admissible(b)]
    risk = {b: c.variance(b) + c.squared_bias(b, admissible) for b in admissible}
    best = min(admissible, key=lambda b: (risk[b], b))
    rows = [
        BoundRow(
            bound=c.bounds[b], value=float(c.value[b]), predicted_std_error=float(np.sqrt(c.variance(b))),
            effective_positives=c.effective(b), events=c.events(b) if np.isfinite(c.events(b)) else None,
            admissible=b in admissible,
        )
        for b in places
    ]  # fmt: skip
    above = [
        float(c.value[b] - c.value[best])
        for b in admissible
        if b > best and (c.value[b] - c.value[best]) ** 2 > c.difference(best, b) / c.rows**2
    ]
    return BoundChoice(c.bounds[best], tuple(rows), lower=min([0.0, *above]), upper=max([0.0, *above]))


def at_bound(estimator: Estimator, bound: float) -> Estimator:
    """The estimator at a bound, under the label that it has."""
    assert isinstance(estimator, AdaptivePointNCIS | AdaptiveSlotNCIS | AdaptiveExposureNCIS)
    return replace(estimator, weight_bound=bound)


def at_choice(estimator: Estimator, choice: BoundChoice | None) -> Estimator:
    """The estimator with the bound that was chosen, under the label that it has; as it is where none was."""
    if choice is None:
        return estimator
    return at_bound(estimator, choice.bound)


def at_chosen_bound(aggregates: Aggregates, estimator: Estimator, metric: int) -> Estimator:
    """The estimator with the bound that the log chooses for a metric."""
    return at_choice(estimator, choose_bound(aggregates, estimator, metric))

"""What the arms of an online test say of one metric: its value, by bucket of units its noise, its resamples.

Metrics with sums have a mean x = Σr/n per display in each arm, whose error is that of r − x·n by bucket of units; so
have units, where a metric is per unit. Any other metric is a function f(x_1, x_2, …) of such means, and its error that
of Σ_j ∂f/∂x_j·(r_j − x_j·n), with the derivatives by the complex step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.fold_plan import BUCKET_SALT
from foretest.displays.batch import Floats
from foretest.estimators.base import ratio
from foretest.inference.delta import quantile, std_error
from foretest.inference.uplift import metric_value
from foretest.kernels.random import derived_bucket
from foretest.online.arms import Arm, Arms
from foretest.records import dataclass
from foretest.settings.metric_kinds import Combination, Formula
from foretest.settings.settings import Settings

_STEP = 1e-30  # of the complex derivative: far below any rounding, far above underflow
_NAN = float("nan")

Function = Callable[..., Any]  # of means


class BucketMeans(NamedTuple):
    """Means per display of what a metric is made of, with the sums by bucket of units that they are of."""

    n: Floats  # displays
    sums: Sequence[Floats]

    @property
    def values(self) -> list[float]:
        displays = float(self.n.sum()) or _NAN
        return [float(amounts.sum()) / displays for amounts in self.sums]

    def gradient(self, function: Function) -> list[float]:
        """The derivative of a function of the means towards each of them."""
        values = np.array(self.values, complex)
        moved = values[:, None] + 1j * _STEP * np.eye(len(values))
        return [float(slope) for slope in np.imag(function(*moved)) / _STEP]

    def influence(self, function: Function) -> Floats:
        """Σ_j ∂f/∂x_j·(r_j − x_j·n) by bucket: over the number of displays, what each bucket adds to the value."""
        terms = zip(self.gradient(function), self.values, self.sums, strict=True)
        return np.asarray(sum(slope * (amounts - value * self.n) for slope, value, amounts in terms))

    def resampled(self, counts: Floats) -> list[Floats]:
        """The means in every resample of buckets; 0 where it has no displays."""
        displays = counts @ self.n
        return [ratio(counts @ amounts, displays) for amounts in self.sums]

    @classmethod
    def of_both(cls, one: BucketMeans, other: BucketMeans) -> BucketMeans:
        """Those of two arms together, their buckets side by side."""
        sums = [np.concatenate(pair) for pair in zip(one.sums, other.sums, strict=True)]
        return cls(np.concatenate([one.n, other.n]), sums)


@dataclass(frozen=True)
class MetricArm:
    """One arm's answer for one metric."""

    arm: Arm
    formula: Formula
    places: tuple[int, ...]  # of what it is made of, among the arm's sums

    @cached_property
    def means(self) -> BucketMeans:
        """What its function takes."""
        units = [units_by_bucket(self.arm)] if self.formula.counts_units else []
        return BucketMeans(self.arm.n, [*(self.arm.r[place] for place in self.places), *units])

    def function(self, *values: Any) -> Any:
        """Its value from those means."""
        return metric_value(self.formula, *values)

    @cached_property
    def exists(self) -> bool:
        """Has the arm displays, and a denominator that is not 0?"""
        return bool(self.arm.displays) and bool(self.formula.denominator(*self.means.values))

    @cached_property
    def value(self) -> float:
        """The metric's value; NaN for an empty arm, and where its denominator is 0."""
        return float(self.function(*np.array(self.means.values)[:, None])[0]) if self.exists else _NAN

    @cached_property
    def influence(self) -> Floats:
        """What each bucket of units adds to the value, times the number of displays."""
        return self.means.influence(self.function)

    @cached_property
    def error(self) -> float:
        """The standard error of the value, by unit."""
        return std_error(self.influence, self.arm.displays, self.n_units) if self.exists else _NAN

    @property
    def slope(self) -> float:
        """The derivative of the value towards the one mean that it is a function of."""
        [slope] = self.means.gradient(self.function)
        return slope

    @property
    def has_one_mean(self) -> bool:
        """Is it a function of one mean, whose error is also known from the rows themselves?"""
        return len(self.places) == 1 and not self.formula.counts_units

    def resampled(self, counts: Floats) -> Floats:
        """The value in every resample; NaN where it has no displays, and where the denominator is not above 0."""
        means = self.means.resampled(counts)
        exists = (counts @ self.arm.n > 0) & (self.formula.denominator(*means) > 0)
        return np.where(exists, self.function(*means), _NAN)

    def may_divide_by_zero(self, level: float) -> bool:
        """Does the interval of its denominator contain 0?"""
        means, denominator = self.means, self.formula.denominator
        value = float(np.ravel(denominator(*means.values))[0])
        error = std_error(means.influence(denominator), self.arm.displays, self.n_units)
        return not abs(value) > quantile(self.n_units, level) * error

    @property
    def n_units(self) -> int:
        return self.arm.n_units

    @property
    def positives(self) -> float:
        """Rows with a reward: the fewest of what it is made of."""
        return min(float(self.arm.positives[place]) for place in self.places)

    @property
    def effective_positives(self) -> float:
        """How many rows with equal rewards the rewarded rows are worth: the fewest of what it is made of."""
        return min(self.arm.effective_positives(place) or 0.0 for place in self.places)


class MetricArms(NamedTuple):
    """Both arms' answers for one metric."""

    control: MetricArm
    treatment: MetricArm

    @property
    def arms(self) -> Arms:
        return Arms(self.control.arm, self.treatment.arm)

    @classmethod
    def of(cls, arms: Iterable[Arm], formula: Formula, places: dict[str, int]) -> MetricArms:
        """Of a metric; `places` are those of the metrics with sums among the arms' sums."""
        of_formula = tuple(places[metric.name] for metric in formula.of)
        return cls(*(MetricArm(arm, formula, of_formula) for arm in arms))

    @classmethod
    def at(cls, arms: Iterable[Arm], place: int) -> MetricArms:
        """Of the metric whose sums are in this place."""
        return cls(*(MetricArm(arm, Combination("", place), (place,)) for arm in arms))


def metric_places(settings: Settings) -> dict[str, int]:
    """The place among an arm's sums of every metric that has some."""
    return {name: m for m, name in enumerate(settings.definitions.linear)}


def metric_arms(arms: Arms, name: str, settings: Settings) -> MetricArms:
    """What the arms say of a metric of the settings."""
    return MetricArms.of(arms, settings.definitions.formulas[name], metric_places(settings))


def units_by_bucket(arm: Arm) -> Floats:
    """How many units each bucket has; where they are too many to be counted one by one, their mean number."""
    buckets = len(arm.n)
    if arm.units is None:
        return arm.n
    if not arm.units.exact:
        return np.full(buckets, arm.n_units / buckets)
    keys = arm.units.keys[arm.units.counts > 0]
    return np.bincount(derived_bucket(keys, BUCKET_SALT, buckets), minlength=buckets).astype(np.float64)

"""The sums of one estimator and metric by bucket of units: their total, their resamples, their directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.examination import sums_with_curve_error
from foretest.aggregation.ledger import Account
from foretest.aggregation.quantities import (
    EXPECTED,
    PREDICTED,
    PREDICTED_BESIDE,
    STRATUM_DISPLAYS,
    STRATUM_ROWS,
    STRATUM_WEIGHTED_REWARDS,
    STRATUM_WEIGHTS,
    WEIGHTED_REWARDS,
    WEIGHTS,
    Quantity,
)
from foretest.aggregation.slot_ratios import slot_ratios
from foretest.aggregation.strata import bin_label, merged_bins
from foretest.displays.batch import Floats
from foretest.estimators import Estimator, Sums
from foretest.inference.by_logger import by_unit
from foretest.records import dataclass
from foretest.settings.analysis import BOUNDED, VALUE_MODEL
from foretest.weights.exposure_weights import ExposureWeighting
from foretest.weights.slot_weights import SlotRatio
from foretest.weights.weightings import Weighting

# the step of the complex derivative: far below any rounding, far above underflow
_STEP = 1e-30


class Interval(NamedTuple):
    """Two limits, each NaN where there is none."""

    lower: float
    upper: float


NO_INTERVAL = Interval(float("nan"), float("nan"))


@dataclass(frozen=True)
class BucketSums:
    """Named sums with the bucket as first axis (and the stratum as second, for a stratified estimator).

    With several loggers the first axis has the buckets of the first, then those of the second, …
    """

    arrays: dict[str, Floats]
    unit: float
    loggers: int = 1
    fixed: float = 1.0  # how far each logger's number of rows is fixed: less than 1 in a part of a log

    @property
    def rows(self) -> float:
        """How many rows there are in all."""
        return float(self.arrays["rows"].sum())

    def total(self) -> Sums:
        """The sums of the log itself: one entry."""
        return self._sums({name: array.sum(axis=0, keepdims=True) for name, array in self.arrays.items()})

    def resampled(self, counts: Floats) -> Sums:
        """One entry per resample: `counts[b, j]` copies of bucket j in resample b. One matrix product for all sums."""
        distinct = {id(array): array for array in self.arrays.values()}
        columns = [array.reshape(len(array), -1) for array in distinct.values()]
        product = counts @ np.hstack(columns)
        ends = np.cumsum([column.shape[1] for column in columns])[:-1]
        resampled = dict(zip(distinct, np.hsplit(product, ends), strict=True))
        return self._sums({
            name: resampled[id(array)].reshape(len(counts), *array.shape[1:]) for name, array in self.arrays.items()
        })  # fmt: skip

    def without_each(self) -> Sums:
        """One entry per bucket: the sums of all the others."""
        return self._sums({name: array.sum(axis=0) - array for name, array in self.arrays.items()})

    def directions(self) -> Sums:
        """One entry per bucket: the total, moved by a tiny imaginary step towards that bucket's sums."""
        return self._sums({name: array.sum(axis=0) + 1j * _STEP * array for name, array in self.arrays.items()})

    def influence(self, statistic: Callable[[Sums], Any]) -> Floats:
        """Σ_{i∈bucket} (φ_i − φ̄) of a statistic of the sums, by its derivative towards each bucket; with several
        loggers φ̄ is the mean of the row's own logger.

        For a function of means this is the influence function summed over the bucket (infinitesimal jackknife); the
        complex step makes it exact to rounding (Squire and Trapp 1998).
        """
        derivatives = np.asarray(np.imag(statistic(self.directions()))) / _STEP * self.rows
        return by_unit(derivatives, self.arrays["rows"], self.loggers, self.fixed)

    def joint_influence(self, others: Sequence[BucketSums], statistic: Callable[..., Any]) -> Floats:
        """The influence of a statistic of several kinds of sums of the same rows."""
        moved = statistic(self.directions(), *(other.directions() for other in others))
        derivatives = np.asarray(np.imag(moved)) / _STEP * self.rows
        return by_unit(derivatives, self.arrays["rows"], self.loggers, self.fixed)

    def _sums(self, arrays: dict[str, npt.NDArray[Any]]) -> Sums:
        return Sums(**arrays, unit=self.unit)


class Stratum(NamedTuple):
    """One stratum as PieceNCIS uses it."""

    label: str
    share: float
    mean_weight: float
    value: float | None
    contribution: float


def bucket_sums(aggregates: Aggregates, estimator: Estimator, metric: int) -> BucketSums:
    """The sums that `estimator.value` works on."""
    plan, cells = aggregates.plan, len(aggregates.n)
    weighting = plan.weighting(estimator)
    plain, rewards, weights = (
        aggregates.ledger.plain,
        aggregates.weighted(weighting, metric),
        mean_weights(aggregates, weighting),
    )
    log_unit = _common_log_unit(rewards, weights)
    zero, reward_factor = np.zeros(cells), _factor(rewards, log_unit)
    arrays = {"rows": aggregates.n, "r": aggregates.r[metric], "n": aggregates.n, "h": zero, "hv": zero, "v": zero}
    arrays["hr"] = with_curve_error(aggregates, weighting, metric, WEIGHTED_REWARDS) * reward_factor
    if weights is not None:
        weight_factor = _factor(weights, log_unit)
        arrays["h"] = weights.get(WEIGHTS, size=cells) * weight_factor
        arrays["hv"] = weights.get(PREDICTED, metric, estimator.label, size=cells) * weight_factor
        arrays["v"] = plain.get(EXPECTED, metric, estimator.label, size=cells)
    if estimator.uses_items:  # Σ h·r̂ is beside Σ h·r
        arrays["hv"] = rewards.get(PREDICTED_BESIDE, size=cells) * reward_factor
        arrays["v"] = plain.get(EXPECTED, metric, estimator.label, size=cells)
    if estimator.stratified:
        assert weights is not None
        table = plan.table_of(metric)
        groups, _ = strata_groups(aggregates, table)
        arrays["n"] = _grouped(plain.get(STRATUM_DISPLAYS, owner=table, size=0), groups, cells)
        arrays["h"] = _grouped(weights.get(STRATUM_WEIGHTS, owner=table, size=0) * weight_factor, groups, cells)
        arrays["hr"] = _grouped(
            rewards.get(STRATUM_WEIGHTED_REWARDS, owner=table, size=0) * reward_factor, groups, cells
        )
    if isinstance(weighting, SlotRatio):
        by_slot = slot_ratios(aggregates, weighting, metric)
        arrays["h"] = by_slot.h * _factor(aggregates.weights(weighting), log_unit)
        arrays["hr"] = by_slot.hr * reward_factor
    with np.errstate(over="ignore"):
        return BucketSums(arrays, float(np.exp(log_unit)), plan.loggers)


def with_curve_error(aggregates: Aggregates, weighting: Weighting, metric: int, quantity: Quantity) -> Floats:
    """Σ h r or Σ t by cell; of weights by a fitted examination curve with the error of the curve in it."""
    account, fit, cells = (
        aggregates.weighted(weighting, metric),
        aggregates.plan.fits.get(metric),
        aggregates.ledger.cells,
    )
    if fit is None or not isinstance(weighting, ExposureWeighting):
        return account.get(quantity, size=cells)
    return sums_with_curve_error(account, fit, quantity, cells)


def mean_weights(aggregates: Aggregates, weighting: Weighting) -> Account | None:
    """Σ h of all rows; None where only the rewarded were weighed, and for intervals of means, not of ratios."""
    bounded = weighting.pointwise and aggregates.plan.settings.analysis.interval in BOUNDED
    return None if bounded or not aggregates.has_weights(weighting) else aggregates.weights(weighting)


def _factor(sums: Account, log_unit: float) -> float:
    """What sums are multiplied with to be in another unit; sums without one are zeros."""
    return 1.0 if sums.exponent is None else float(np.exp(sums.log_unit - log_unit))


def _common_log_unit(rewards: Account, weights: Account | None) -> float:
    """The logarithm of the larger unit: ratio estimators need both sums in one."""
    if weights is None or weights.exponent is None:
        return rewards.log_unit
    return weights.log_unit if rewards.exponent is None else max(rewards.log_unit, weights.log_unit)


def strata_groups(aggregates: Aggregates, table: str) -> tuple[list[list[int]], list[str]]:
    """The strata in order, small value bins merged, and their labels."""
    labels = aggregates.ledger.strata[table].labels
    a = aggregates.plan.settings.analysis
    if a.strata == VALUE_MODEL:
        by_stratum = aggregates.ledger.plain.get(STRATUM_ROWS, owner=table, size=0)
        rows = by_stratum.reshape(-1, aggregates.ledger.cells).sum(axis=1)
        groups = merged_bins(labels, rows)
        return groups, [bin_label(group, labels, a.strata_base) for group in groups]
    codes = [code for code, label in enumerate(labels) if label is not None]
    order = sorted(codes, key=lambda code: (str(type(labels[code])), labels[code]))
    order += [code for code, label in enumerate(labels) if label is None]
    return [[code] for code in order], ["null" if labels[code] is None else str(labels[code]) for code in order]


def strata_table(aggregates: Aggregates, estimator: Estimator, metric: int) -> list[Stratum]:
    """Share, mean weight, value and contribution of every stratum."""
    sums = bucket_sums(aggregates, estimator, metric)
    n, h, hr = (sums.arrays[name].sum(axis=0) for name in ("n", "h", "hr"))
    _, labels = strata_groups(aggregates, aggregates.plan.table_of(metric))
    rows = []
    for g, label in enumerate(labels):
        share = n[g] / sums.rows
        value = hr[g] / h[g] if h[g] else None
        rows.append(Stratum(label, share, h[g] * sums.unit / n[g], value, share * (value or 0.0)))
    return rows


def _grouped(array: Floats, groups: list[list[int]], cells: int) -> Floats:
    """Sums by stratum and cell, as cells × groups of strata; the last strata may have no sums yet."""
    by_stratum, grouped = array.reshape(-1, cells), np.zeros((cells, len(groups)))
    for g, codes in enumerate(groups):
        for code in codes:
            if code < len(by_stratum):
                grouped[:, g] += by_stratum[code]
    return grouped

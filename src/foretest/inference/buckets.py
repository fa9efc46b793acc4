"""The sums of one estimator and metric by bucket of units: their total, their resamples, their directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.strata import bin_label, merged_bins
from foretest.displays.batch import Floats
from foretest.estimators import Estimator, Sums
from foretest.inference.by_logger import by_unit
from foretest.settings.analysis import VALUE_MODEL

# the step of the complex derivative: far below any rounding, far above underflow
_STEP = 1e-30


class Interval(NamedTuple):
    """Two limits; NaN where there is none."""

    lower: float
    upper: float


@dataclass(frozen=True)
class BucketSums:
    """Named sums with the bucket as first axis (and the stratum as second, for a stratified estimator).

    Of several loggers the first axis has the buckets of the first, then those of the second, …
    """

    arrays: dict[str, Floats]
    unit: float
    loggers: int = 1
    fixed: float = 1.0  # how far each logger's number of rows is fixed: less in a part of a log

    @property
    def rows(self) -> float:
        return float(self.arrays["rows"].sum())

    def total(self) -> Sums:
        """One entry: the log itself."""
        return self._sums({name: array.sum(axis=0, keepdims=True) for name, array in self.arrays.items()})

    def resampled(self, counts: Floats) -> Sums:
        """One entry a resample: `counts[b, j]` copies of bucket j. One matrix product for all sums."""
        distinct = {id(array): array for array in self.arrays.values()}
        columns = [array.reshape(len(array), -1) for array in distinct.values()]
        product = counts @ np.hstack(columns)
        ends = np.cumsum([column.shape[1] for column in columns])[:-1]
        found = dict(zip(distinct, np.hsplit(product, ends), strict=True))
        return self._sums({
            name: found[id(array)].reshape(len(counts), *array.shape[1:]) for name, array in self.arrays.items()
        })  # fmt: skip

    def directions(self) -> Sums:
        """One entry a bucket: the total, moved by an imaginary hair towards that bucket's sums."""
        return self._sums({name: array.sum(axis=0) + 1j * _STEP * array for name, array in self.arrays.items()})

    def influence(self, statistic: Any) -> Floats:
        """Σ_{i∈bucket} (φ_i − φ̄) of a statistic of the sums, by its derivative towards each bucket; of several loggers
        each row's φ from its own logger's mean.

        For a function of means this is the influence function summed over the bucket (infinitesimal jackknife); the
        complex step makes it exact to rounding (Squire and Trapp 1998).
        """
        found = np.asarray(np.imag(statistic(self.directions()))) / _STEP * self.rows
        return by_unit(found, self.arrays["rows"], self.loggers, self.fixed)

    def _sums(self, arrays: dict[str, npt.NDArray[Any]]) -> Sums:
        return Sums(**arrays, unit=self.unit)


class Stratum(NamedTuple):
    """What PieceNCIS saw of one stratum."""

    label: str
    share: float
    mean_weight: float
    value: float | None
    contribution: float


def bucket_sums(aggregates: Aggregates, estimator: Estimator, metric: int) -> BucketSums:
    """The sums that `estimator.value` works on."""
    weighting = aggregates.plan.weighting(estimator)
    buckets = len(aggregates.n)
    reward = aggregates.hr[weighting, metric]
    weight = aggregates.h.get(weighting)
    # ratio estimators need both sums in one unit: that of the larger
    log_unit = reward.log_unit if weight is None or weight.exponent is None else max(reward.log_unit, weight.log_unit)
    if reward.exponent is None and weight is not None:
        log_unit = weight.log_unit
    zero = np.zeros(buckets)
    arrays = {"rows": aggregates.n, "r": aggregates.r[metric], "n": aggregates.n, "h": zero, "hv": zero, "v": zero}
    to_unit = np.exp(reward.log_unit - log_unit)
    arrays["hr"] = reward.get("hr", buckets) * to_unit
    if weight is not None:
        arrays["h"] = weight.get("h", buckets) * np.exp(weight.log_unit - log_unit)
        arrays["hv"] = weight.get(f"hv:{estimator.label}:{metric}", buckets) * np.exp(weight.log_unit - log_unit)
        arrays["v"] = aggregates.v.get((estimator.label, metric), zero)
    if estimator.stratified:
        assert weight is not None
        table = aggregates.plan.table_of(metric)
        groups, _ = strata_groups(aggregates, table)
        shapes = {
            "n": (aggregates.strata_n[table], 1.0),
            "h": (weight.get(f"h:{table}", 0), np.exp(weight.log_unit - log_unit)),
            "hr": (reward.get(f"hr:{table}", 0), to_unit),
        }
        for name, (array, factor) in shapes.items():
            arrays[name] = _grouped(array * factor, groups, buckets)
    with np.errstate(over="ignore"):
        return BucketSums(arrays, float(np.exp(log_unit)), aggregates.plan.loggers)


def strata_groups(aggregates: Aggregates, table: str) -> tuple[list[list[int]], list[str]]:
    """The strata in order, small value bins merged, and their labels."""
    labels = aggregates.strata[table].labels
    a = aggregates.plan.settings.analysis
    if a.strata == VALUE_MODEL:
        rows = aggregates.strata_n[table].reshape(-1, len(aggregates.n)).sum(axis=1)
        groups = merged_bins(labels, rows)
        return groups, [bin_label(group, labels, a.strata_base) for group in groups]
    order = sorted(
        range(len(labels)), key=lambda code: (labels[code] is None, str(type(labels[code])), labels[code] or 0)
    )
    return [[code] for code in order], ["null" if labels[code] is None else str(labels[code]) for code in order]


def strata_table(aggregates: Aggregates, estimator: Estimator, metric: int) -> list[Stratum]:
    """Share, mean weight, value and contribution of every stratum."""
    total = bucket_sums(aggregates, estimator, metric)
    n, h, hr = (total.arrays[name].sum(axis=0) for name in ("n", "h", "hr"))
    _, labels = strata_groups(aggregates, aggregates.plan.table_of(metric))
    rows = []
    for g, label in enumerate(labels):
        share = n[g] / total.rows
        value = hr[g] / h[g] if h[g] else None
        rows.append(Stratum(label, share, h[g] * total.unit / n[g], value, share * (value or 0.0)))
    return rows


def _grouped(array: Floats, groups: list[list[int]], buckets: int) -> Floats:
    held = array.reshape(-1, buckets)
    out = np.zeros((buckets, len(groups)))
    for g, codes in enumerate(groups):
        for code in codes:
            if code < len(held):
                out[:, g] += held[code]
    return out

"""An estimator along a path: the numbers of an estimate as columns, one entry for each cap or bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.estimators import Estimator, Sums
from foretest.files import finite_or_none
from foretest.inference.buckets import BucketSums
from foretest.inference.delta import delta_interval, std_errors
from foretest.inference.quantiles import quantiles
from foretest.inference.uplift import Statistic, absolute_uplift_of, relative_uplift_of, value_of
from foretest.results.cap_path import Column, PathEstimates


class EstimateColumns(NamedTuple):
    """The numbers of an estimate along a path; NaN where there is none."""

    treatment: Floats
    std_error: Floats
    effect_size: Floats
    effect_size_ci_lower: Floats
    effect_size_ci_upper: Floats
    rel_effect_size: Floats
    rel_effect_size_ci_lower: Floats
    rel_effect_size_ci_upper: Floats

    @classmethod
    def missing(cls, size: int) -> EstimateColumns:
        """Columns without a number."""
        return cls(*(np.full(size, np.nan) for _ in cls._fields))

    def take(self, places: npt.NDArray[np.int64]) -> EstimateColumns:
        """The entries at some places of the path."""
        return EstimateColumns(*(column[places] for column in self))

    def listed(self) -> PathEstimates:
        """The columns as result.json has them."""
        return PathEstimates(*(listed(column) for column in self))


class _UpliftColumns(NamedTuple):
    value: Floats
    error: Floats
    lower: Floats
    upper: Floats


def estimate_columns(
    estimator: Estimator, sums: BucketSums, resampled: Sums | None, units: int, level: float
) -> EstimateColumns:
    """The numbers of an estimate from sums whose second axis is the path.

    Intervals are percentiles of the resamples, or delta limits where there are none.
    """
    absolute = _uplift_columns(absolute_uplift_of(estimator), _has_rows, sums, resampled, units, level)
    relative = _uplift_columns(relative_uplift_of(estimator), _has_reward, sums, resampled, units, level)
    return EstimateColumns(
        treatment=value_of(estimator, sums.total())[0],
        std_error=absolute.error,
        effect_size=absolute.value,
        effect_size_ci_lower=absolute.lower,
        effect_size_ci_upper=absolute.upper,
        rel_effect_size=relative.value,
        rel_effect_size_ci_lower=relative.lower,
        rel_effect_size_ci_upper=relative.upper,
    )


def _has_rows(sums: Sums) -> npt.NDArray[Any]:
    return sums.rows > 0


def _has_reward(sums: Sums) -> npt.NDArray[Any]:
    return sums.r > 0


def _uplift_columns(
    statistic: Statistic,
    exists: Callable[[Sums], npt.NDArray[Any]],
    sums: BucketSums,
    resampled: Sums | None,
    units: int,
    level: float,
) -> _UpliftColumns:
    total = sums.total()
    value = np.where(exists(total), statistic(total), np.nan)[0]
    error = column_errors(statistic, sums, units)
    if np.isnan(value).all() or units < 2:
        lower = upper = np.full(len(value), np.nan)
    elif resampled is None:
        half = error * delta_interval(0.0, 1.0, units, level).upper
        lower, upper = value - half, value + half
    else:
        lower, upper = _percentiles(statistic(resampled)[exists(resampled)[:, 0]], level)
    return _UpliftColumns(value, error, lower, upper)


def column_errors(statistic: Statistic, sums: BucketSums, units: int) -> Floats:
    """The standard error of a statistic at every place of the path."""
    return std_errors(sums.influence(statistic), sums.rows, units)


def _percentiles(replicates: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentile limits of every column."""
    if not len(replicates):
        return np.full(replicates.shape[1], np.nan), np.full(replicates.shape[1], np.nan)
    # a column's replicates side by side: its quantiles are then found among contiguous numbers
    lower, upper = quantiles(np.ascontiguousarray(replicates.T), [0.5 - level / 2.0, 0.5 + level / 2.0]).T
    return lower, upper


def listed(column: Floats) -> Column:
    """The numbers of a column in twelve digits: a chart needs no more, and browsers read the file."""
    return [finite_or_none(float(f"{value:.12g}")) for value in column.tolist()]

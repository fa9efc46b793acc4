"""The point estimators along a grid of their own: `point-ncis` over caps, `point-ncis-adaptive` over bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.logger_columns import log_baseline_of, logger_of
from foretest.aggregation.point_path import ALONG_BOUND, ALONG_CAP, bounds_of, caps_of
from foretest.diagnostics.path_estimates import EstimateColumns, estimate_columns, listed
from foretest.displays.batch import Floats
from foretest.estimators import PointNCIS
from foretest.inference.buckets import BucketSums
from foretest.results.cap_path import PointPath


class _Grid(NamedTuple):
    name: str  # in result.json
    column: str  # of the kept rows: log h at every place of the grid
    places: Floats


def path_along_caps(aggregates: Aggregates, metric: int, counts: Floats | None) -> PointPath | None:
    """`point-ncis` at every cap of its grid; None where it was not folded."""
    return _point_path(aggregates, metric, counts, _Grid("caps", ALONG_CAP, caps_of(aggregates.plan)))


def path_along_bounds(aggregates: Aggregates, metric: int, counts: Floats | None) -> PointPath | None:
    """`point-ncis-adaptive` at every bound of its grid; None where it was not folded."""
    return _point_path(aggregates, metric, counts, _Grid("bounds", ALONG_BOUND, bounds_of(aggregates.plan)))


_LARGEST = 1e140  # of h r: sums of squares of what is larger are beyond a float


def _point_path(aggregates: Aggregates, metric: int, counts: Floats | None, grid: _Grid) -> PointPath | None:
    """The columns of a point estimator over its grid, from the rewarded rows: Σ h r by cell at every place."""
    size, rows = len(grid.places), aggregates.rewarded.columns()
    if not size:
        return None
    columns, effective = EstimateColumns.missing(size), np.full(size, np.nan)
    if aggregates.rows and rows:
        with np.errstate(over="ignore", invalid="ignore"):
            hr = np.exp(rows[grid.column].astype(np.float64)) * rows["r", metric][:, None]
        hr[:, ~(np.abs(hr) <= _LARGEST).all(axis=0)] = np.nan  # a place of the grid without a value
        sums = _bucket_sums(aggregates, metric, rows, hr)
        resampled = None if counts is None else sums.resampled(counts)
        level = aggregates.plan.settings.analysis.confidence_level
        columns = estimate_columns(PointNCIS(), sums, resampled, aggregates.n_units, level)
        squares = np.square(hr).sum(axis=0)
        effective = np.divide(hr.sum(axis=0) ** 2, squares, out=effective, where=squares > 0.0)
    return PointPath(
        grid_name=grid.name,
        grid=listed(grid.places),
        rewarded_rows=len(aggregates.rewarded),
        notes=_sample_notes(aggregates),
        estimates=columns.listed(),
        effective_positives=listed(effective),
    )


def _bucket_sums(aggregates: Aggregates, metric: int, rows: Columns, hr: Floats) -> BucketSums:
    """The sums of a point estimator at every place of a grid, from h·r of the kept rewarded rows.

    Of more than 2^17 rewarded rows the smallest by unit hash are kept: they are then taken for the whole log, which
    has rows in proportion, so that the path has their noise.
    """
    cells, r = len(aggregates.n), rows["r", metric]
    cell = aggregates.plan.cells_at(rows["unit"], logger_of(rows))
    control_rewards = r * np.exp(log_baseline_of(rows))

    def by_cell(amounts: Floats) -> Floats:
        return np.asarray(np.bincount(cell, weights=amounts, minlength=cells), np.float64)

    n, total = aggregates.n, aggregates.r[metric]
    if not aggregates.rewarded.complete and total.sum() > 0.0:
        n, total = n * (control_rewards.sum() / total.sum()), by_cell(control_rewards)
    n, zero = n[:, None], np.zeros((cells, 1))
    weighted = np.stack([by_cell(column) for column in hr.T], axis=1)
    arrays = {"rows": n, "r": total[:, None], "n": n, "h": zero, "hr": weighted, "hv": zero, "v": zero}
    return BucketSums(arrays, 1.0, aggregates.plan.loggers)


def _sample_notes(aggregates: Aggregates) -> list[str]:
    rows = aggregates.rewarded
    if rows.complete:
        return []
    return [f"from {len(rows):,} of {rows.seen:,} rewarded rows, those of the smallest unit hashes: a wider interval"]

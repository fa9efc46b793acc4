"""Figure 2 as data: CIS and NCIS at every cap from 1 to 1e25, and how small an uplift noise and bias let CIS show;
the point estimators along their own cap or bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.point_path import ALONG_BOUND, ALONG_CAP, bounds_of, caps_of
from foretest.aggregation.weight_bins import BINS, CAPS, LOWEST, STEPS
from foretest.diagnostics.weight_distribution import TreatmentMass, treatment_mass
from foretest.displays.batch import Floats
from foretest.estimators import CIS, NCIS, AdaptivePointNCIS, Estimator, PointNCIS, Sums
from foretest.files import finite_or_none
from foretest.inference.buckets import BucketSums
from foretest.inference.delta import delta_interval, std_error
from foretest.inference.uplift import relative_uplift, uplift
from foretest.settings.analysis import BOUNDED

FIRST = -LOWEST * STEPS  # the cap of 1: a smaller one would cut weights that all rows have where the policies agree
PATH = CAPS[FIRST:]
SOUGHT = 0.01  # the uplift to be seen; the paper's usual one

Columns = dict[str, Floats]

_UNKNOWN = np.full(len(CAPS), np.nan)
_NOTHING = TreatmentMass(_UNKNOWN, _UNKNOWN, None, "log")


def cap_path(
    aggregates: Aggregates, metric: int, counts: Floats | None, r_max: float | None, estimators: Sequence[Estimator]
) -> dict[str, Any]:
    """Columns over the caps of the path, under max capping; a run at one of these caps gives the same numbers.

    Intervals are percentiles of the resamples `counts`, or delta limits where there are none. Of CIS, and relative to
    the control's value r̄ so that they compare with the uplift sought (paper, section 4.3):

        noise        half the width of its relative uplift's interval: the larger of the one in this log
                     (`noise_seen`) and the one to expect from the weights (`noise_expected`), which counts heavy rows
                     that the log happens not to have: z·√(mean(r²)·E_p[(w̄ − 1)²]/n)/r̄, E_p[w̄²] = E_t[w̄²/w]
        bias_bound   r_max·(1 − q̄)/r̄, q̄ = E_t[w̄/w]: nothing cut off can have earned more
        sensitivity  noise + bias_bound: a true uplift beyond it shows, whatever the part that was cut off earned

    `bias_bound_loose` is r_max·P_t(W > c)/r̄, as the paper prints it. Bands are [lowest, highest] of the longest run of
    caps where noise, bias bound or both are at most `sought`; `satisfies_both` is None where the bound is unknown.

    `point-ncis` and `point-ncis-adaptive`, where among the `estimators`, have a grid of their own (`caps`, `bounds`).
    """
    plan, a, rows = aggregates.plan, aggregates.plan.settings.analysis, aggregates.rows
    of_cis, of_ncis, variance = _estimates(aggregates, metric, counts)
    control = float(aggregates.r[metric].sum()) / rows if rows else float("nan")
    mass = treatment_mass(aggregates) if rows else _NOTHING
    beyond, above = mass.beyond[FIRST:], mass.above[FIRST:]
    seen = (of_cis["rel_effect_size_ci_upper"] - of_cis["rel_effect_size_ci_lower"]) / 2.0
    expected = _expected_noise(aggregates, metric, mass, control)
    noise = np.where(np.isnan(expected), seen, np.maximum(seen, expected))
    scale = r_max / control if r_max is not None and control > 0.0 else float("nan")
    bias = scale * beyond
    small, unbiased = noise <= SOUGHT, bias <= SOUGHT
    told = bool((np.isfinite(noise) & np.isfinite(bias)).any())
    return {
        "metric": plan.metrics[metric],
        "capping": "max",
        "interval": "delta" if counts is None else "bootstrap",
        "confidence_level": a.confidence_level,
        "sought": SOUGHT,
        "cap": a.cap_number,
        "weight_bound": a.weight_bound,
        "r_max": r_max,
        "control": finite_or_none(control),
        "source": mass.source,
        "max_log10_weight": finite_or_none(aggregates.max_log_w / np.log(10.0)),
        "caps": _listed(PATH),
        "cis": {name: _listed(column) for name, column in of_cis.items()},
        "ncis": {name: _listed(column) for name, column in of_ncis.items()},
        "point-ncis": _point_path(aggregates, metric, counts, "caps", ALONG_CAP, caps_of(plan))
        if any(type(e) is PointNCIS for e in estimators)
        else None,
        "point-ncis-adaptive": _point_path(aggregates, metric, counts, "bounds", ALONG_BOUND, bounds_of(plan))
        if any(type(e) is AdaptivePointNCIS for e in estimators)
        else None,
        "effective_positives": _listed(_effective_positives(aggregates, metric)),
        "variance": _listed(variance),
        "treatment_mass_kept": _listed(1.0 - beyond),
        "share_above_cap": _listed(above),
        "noise_seen": _listed(seen),
        "noise_expected": _listed(expected),
        "noise": _listed(noise),
        "bias_bound": _listed(bias),
        "bias_bound_loose": _listed(scale * above),
        "sensitivity": _listed(noise + bias),
        "noise_band": _band(small),
        "bias_band": _band(unbiased),
        "both_band": _band(small & unbiased),
        "satisfies_both": bool((small & unbiased).any()) if told else None,
        "notes": _notes(aggregates, r_max),
    }


def _estimates(aggregates: Aggregates, metric: int, counts: Floats | None) -> tuple[Columns, Columns, Floats]:
    """The columns of CIS and of NCIS, and the variance of CIS's value."""
    h, hr = (sums[:, FIRST:] for sums in aggregates.bins.capped_sums(metric))
    # above the largest weight of the log all caps are one
    distinct = min(len(PATH), int(np.searchsorted(np.log(PATH), aggregates.max_log_w)) + 1)
    n, r, zero = aggregates.n[:, None], aggregates.r[metric][:, None], np.zeros((len(aggregates.n), 1))
    arrays = {"rows": n, "r": r, "n": n, "h": h[:, :distinct], "hr": hr[:, :distinct], "hv": zero, "v": zero}
    sums = BucketSums(arrays, 1.0, aggregates.plan.loggers)
    resampled = None if counts is None else sums.resampled(counts)
    units, level = aggregates.n_units, aggregates.plan.settings.analysis.confidence_level
    every = np.minimum(np.arange(len(PATH)), distinct - 1)
    of_cis, of_ncis = (
        {name: column[every] for name, column in _columns(estimator, sums, resampled, units, level).items()}
        for estimator in (CIS(), NCIS())
    )
    return of_cis, of_ncis, np.square(_errors(CIS().value, sums, units))[every]


def _point_path(
    aggregates: Aggregates, metric: int, counts: Floats | None, grid_name: str, column: str, grid: Floats
) -> dict[str, Any] | None:
    """The columns of a point estimator over its grid, from the rewarded rows: Σ h r by bucket of units at every place.

    Of more than 2^17 rewarded rows the smallest by unit hash are kept: they are then taken for the whole log, which
    has rows in proportion, so that the path has their noise. None where the estimator does not run.
    """
    if not len(grid):
        return None
    kept, buckets, rows = aggregates.rewarded.columns(), len(aggregates.n), aggregates.rows
    nothing = {name: _listed(np.full(len(grid), np.nan)) for name in _FIELDS}
    told = {grid_name: _listed(grid), "rewarded_rows": len(aggregates.rewarded), "notes": _kept_notes(aggregates)}
    if not rows or not kept:
        return {**told, **nothing, "effective_positives": _listed(np.full(len(grid), np.nan))}
    r = kept[f"r:{metric}"]
    with np.errstate(over="ignore"):
        hr = np.exp(kept[column].astype(np.float64)) * r[:, None]
    bucket = aggregates.plan.cells_at(kept["unit"], kept.get("logger"))
    worth = r * np.exp(kept["log_baseline"]) if "log_baseline" in kept else r

    def by_bucket(amounts: Floats) -> Floats:
        return np.asarray(np.bincount(bucket, weights=amounts, minlength=buckets), np.float64)

    n, rewards = aggregates.n, aggregates.r[metric]
    if not aggregates.rewarded.complete and rewards.sum() > 0.0:
        n, rewards = n * (worth.sum() / rewards.sum()), by_bucket(worth)
    zero = np.zeros((buckets, 1))
    held = np.stack([by_bucket(hr[:, k]) for k in range(len(grid))], axis=1)
    arrays = {"rows": n[:, None], "r": rewards[:, None], "n": n[:, None], "h": zero, "hr": held, "hv": zero, "v": zero}
    sums = BucketSums(arrays, 1.0, aggregates.plan.loggers)
    resampled = None if counts is None else sums.resampled(counts)
    level = aggregates.plan.settings.analysis.confidence_level
    columns = _columns(PointNCIS(), sums, resampled, aggregates.n_units, level)
    squares = np.square(hr).sum(axis=0)
    effective = np.divide(hr.sum(axis=0) ** 2, squares, out=np.full(len(grid), np.nan), where=squares > 0.0)
    return {
        **told,
        **{name: _listed(values) for name, values in columns.items()},
        "effective_positives": _listed(effective),
    }


_FIELDS = ("treatment", "std_error", *(
    f"{name}{part}" for name in ("effect_size", "rel_effect_size") for part in ("", "_ci_lower", "_ci_upper")
))  # fmt: skip


def _kept_notes(aggregates: Aggregates) -> list[str]:
    kept = aggregates.rewarded
    if kept.complete:
        return []
    return [f"from {len(kept):,} of {kept.seen:,} rewarded rows, those of the smallest unit hashes: a wider interval"]


def _columns(estimator: Estimator, sums: BucketSums, resampled: Sums | None, units: int, level: float) -> Columns:
    """The fields of an estimate, a column each; NaN where there is no number."""

    def absolute(s: Sums) -> Any:
        return uplift(estimator.value, s)

    def relative(s: Sums) -> Any:
        return relative_uplift(estimator.value, s)

    total = sums.total()
    columns = {"treatment": estimator.value(total)[0]}
    for name, statistic, exists in (
        ("effect_size", absolute, total.rows > 0),
        ("rel_effect_size", relative, total.r > 0),
    ):
        value = np.where(exists, statistic(total), np.nan)[0]
        error = _errors(statistic, sums, units)
        if np.isnan(value).all() or units < 2:
            lower = upper = np.full(len(value), np.nan)
        elif resampled is None:
            half = error * delta_interval(0.0, 1.0, units, level).upper
            lower, upper = value - half, value + half
        else:
            some = (resampled.r if statistic is relative else resampled.rows)[:, 0] > 0
            lower, upper = _percentiles(statistic(resampled)[some], level)
        if statistic is absolute:
            columns["std_error"] = error
        columns |= {name: value, f"{name}_ci_lower": lower, f"{name}_ci_upper": upper}
    return columns


def _errors(statistic: Any, sums: BucketSums, units: int) -> Floats:
    return np.array([std_error(column, sums.rows, units) for column in sums.influence(statistic).T])


def _percentiles(replicates: Floats, level: float) -> tuple[Floats, Floats]:
    """Percentile limits of every column."""
    if not len(replicates):
        return np.full(replicates.shape[1], np.nan), np.full(replicates.shape[1], np.nan)
    # a column's replicates side by side: its quantiles are then found among contiguous numbers
    beside = np.ascontiguousarray(replicates.T)
    lower, upper = np.quantile(beside, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=1, overwrite_input=True)
    return lower, upper


def _expected_noise(aggregates: Aggregates, metric: int, mass: TreatmentMass, control: float) -> Floats:
    """z·√(mean(r²)·E_p[(w̄ − 1)²]/n)/r̄: rewards taken to be as large where weights are large as elsewhere."""
    if mass.square is None or not control > 0.0:
        return np.full(len(PATH), np.nan)
    spread = np.maximum(0.0, mass.square - 2.0 * (1.0 - mass.beyond) + 1.0)[FIRST:]
    errors = np.sqrt(float(aggregates.r2[metric]) * spread) / aggregates.rows / control
    level = aggregates.plan.settings.analysis.confidence_level
    return errors * delta_interval(0.0, 1.0, aggregates.n_units, level).upper


def _effective_positives(aggregates: Aggregates, metric: int) -> Floats:
    """(Σw̄r)²/Σ(w̄r)² at every cap."""
    r, wr, r2, wr2 = aggregates.bins.by_metric[metric].reshape(4, -1, BINS).sum(axis=1)
    total, squares = (
        np.cumsum(below)[:-1] + power * np.cumsum(above[::-1])[::-1][1:]
        for below, above, power in ((wr, r, CAPS), (wr2, r2, CAPS**2))
    )
    answer = np.divide(total**2, squares, out=np.full(len(CAPS), np.nan), where=squares > 0.0)
    return np.asarray(answer[FIRST:])


def _listed(column: Floats) -> list[float | None]:
    """Twelve digits of each: what is drawn needs no more, and the file is read by browsers."""
    return [finite_or_none(float(f"{value:.12g}")) for value in column]


def _band(small: npt.NDArray[np.bool_]) -> list[float] | None:
    """The longest run of caps where it holds, as [lowest, highest]."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], small, [False]]).astype(np.int8)))
    if not len(changes):
        return None
    starts, ends = changes[::2], changes[1::2]
    longest = int((ends - starts).argmax())
    return [float(f"{PATH[k]:.12g}") for k in (starts[longest], ends[longest] - 1)]


def _notes(aggregates: Aggregates, r_max: float | None) -> list[str]:
    a = aggregates.plan.settings.analysis
    notes = []
    if r_max is None:
        notes.append("the bound on bias needs r_max, the largest possible reward of this metric, which is not set.")
    if a.capping == "zero":
        notes.append("the path is under max capping, the run's own estimates under zero capping.")
    if a.interval in BOUNDED:
        notes.append("intervals along the path are by the delta method.")
    if not aggregates.plan.can_draw:
        notes.append(
            "noise is that of this log: no ranking can be drawn, so weights larger than its own are not counted."
        )
    return notes

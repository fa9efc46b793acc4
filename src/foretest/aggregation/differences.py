"""Sums of metrics that have losses: those of their gains less those of their losses, once a log is folded.

Estimators are linear in the reward, so that the sums of a difference are differences of sums. Three kinds are not: what
counts rewards by their size (squares, effective positives, the slice test) adds both; the terms of the sensitivity band
are of gains, and beside them of losses, since what is not supported may earn more of either.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foretest.aggregation import noise_sums
from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.bound_sums import COUNT, PRODUCTS
from foretest.aggregation.bound_sums import GAINS as BOUND_GAINS
from foretest.aggregation.examination import sums_with_curve_error
from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import KeptRows
from foretest.aggregation.scaled_sums import ScaledSums
from foretest.aggregation.segment_sums import SegmentSums
from foretest.aggregation.thinning import Thinning
from foretest.aggregation.weight_bins import WeightBins
from foretest.displays.batch import Floats
from foretest.settings.metric_kinds import Difference
from foretest.weights.exposure_weights import ExposureWeighting
from foretest.weights.weightings import Weighting

SIZES = "hr_sizes"  # Σ h|r|, the rewards counted by their size
LOSSES_T = "t_losses"  # Σ t of the losses, beside that of the gains
_OF_SIZES = ("hr2", "hrr", "slice", "slice_expected", BOUND_GAINS, PRODUCTS[2], *noise_sums.OF_SIZES)
_OF_ROWS = (
    PRODUCTS[0],
    COUNT,
    *noise_sums.OF_ROWS,
)  # without a reward in them: those of the gains are those of the losses


def with_differences(aggregates: Aggregates) -> Aggregates:
    """Aggregates whose metrics with losses have sums, behind those of the parts; they themselves where none has."""
    plan = replace(aggregates.plan, combined=aggregates.plan.settings.definitions.combinations)
    if plan.metrics == aggregates.plan.metrics:
        return aggregates
    first = replace(
        aggregates,
        r=_appended(aggregates.r, plan, -1.0),
        r2=_appended(aggregates.r2, plan, 1.0),
        positives=_appended(aggregates.positives, plan, 1.0),
        h={w: _with_predictions(sums, plan) for w, sums in aggregates.h.items()},
        hr={**aggregates.hr, **_weighted_rewards(aggregates, plan)},
        v={**aggregates.v, **_expected(aggregates, plan)},
        bins=_bins(aggregates.bins, plan),
        rewarded=_rows(aggregates.rewarded, plan),
        sample=_rows(aggregates.sample, plan),
        thinned=None if aggregates.thinned is None else _thinned(aggregates.thinned, plan),
        segments={name: _segments(sums, plan) for name, sums in aggregates.segments.items()},
        treatments={name: with_differences(further) for name, further in aggregates.treatments.items()},
    )
    return first.under(plan)


def _appended(by_metric: Floats, plan: FoldPlan, sign: float) -> Floats:
    more = [by_metric[one.gains] + sign * by_metric[one.losses] for one in plan.differences.values()]
    return np.concatenate([by_metric, np.asarray(more)])


def _thinned(counts: Thinning, plan: FoldPlan) -> Thinning:
    """The counts of a thinned log with those of every difference: rows of both, and Σ m² r of the gains less the
    losses."""
    squares = np.append(counts.squares[:1], _appended(counts.squares[1:], plan, -1.0))
    return replace(counts, positives=_appended(counts.positives, plan, 1.0), squares=squares)


def _weighted_rewards(aggregates: Aggregates, plan: FoldPlan) -> dict[tuple[Weighting, int], ScaledSums]:
    """The weighted rewards of every difference, of each weighting that both of its parts have."""
    folded = {}
    for place, one in plan.differences.items():
        for weighting, m in aggregates.hr:
            if m == one.gains and (weighting, one.losses) in aggregates.hr:
                folded[weighting, place] = _difference(aggregates, weighting, one)
    return folded


def _difference(aggregates: Aggregates, weighting: Weighting, one: Difference) -> ScaledSums:
    """The sums of gains less those of losses."""
    gains, losses = (_with_curve_errors(aggregates, weighting, m) for m in (one.gains, one.losses))
    return _less(gains, losses)


def _with_curve_errors(aggregates: Aggregates, weighting: Weighting, metric: int) -> ScaledSums:
    """The sums of one part; of a fitted curve with its error in them, since each part has a curve of its own."""
    sums, fit = aggregates.hr[weighting, metric], aggregates.plan.fits.get(metric)
    if fit is None or not isinstance(weighting, ExposureWeighting):
        return sums
    exact = {name: sums_with_curve_error(sums, fit, name, len(aggregates.n)) for name in ("hr", "t")}
    rest = {name: array for name, array in sums.arrays.items() if not name.startswith("slope_")}
    return ScaledSums({**rest, **exact}, sums.exponent)


def _less(gains: ScaledSums, losses: ScaledSums) -> ScaledSums:
    """Gains less losses, with the sums that count rewards by their size, and the band's terms of the losses."""
    turned = {}
    for name, array in losses.arrays.items():
        if name in _OF_ROWS:
            turned[name] = array if name not in gains.arrays else np.zeros_like(array)
        else:
            turned[LOSSES_T if name == "t" else name] = array if name in ("t", *_OF_SIZES) else -array
    both = ScaledSums.total([gains, ScaledSums(turned, losses.exponent)])
    sizes = ScaledSums.total([ScaledSums({"hr": side.get("hr")}, side.exponent) for side in (gains, losses)])
    return ScaledSums({**both.arrays, SIZES: np.atleast_1d(sizes.get("hr").sum())}, both.exponent)


def _with_predictions(sums: ScaledSums, plan: FoldPlan) -> ScaledSums:
    """Σ h with the weighted predictions of every difference."""
    arrays = dict(sums.arrays)
    for place, one in plan.differences.items():
        for name in [name for name in sums.arrays if name.startswith("hv:") and name.endswith(f":{one.gains}")]:
            label = name.removesuffix(f":{one.gains}")
            arrays[f"{label}:{place}"] = sums.arrays[name] - sums.get(f"{label}:{one.losses}", len(sums.arrays[name]))
    return ScaledSums(arrays, sums.exponent)


def _expected(aggregates: Aggregates, plan: FoldPlan) -> dict[tuple[str, int], Floats]:
    """Σ E_t r̂ of every difference."""
    return {
        (label, place): value - aggregates.v[label, one.losses]
        for place, one in plan.differences.items()
        for (label, m), value in aggregates.v.items()
        if m == one.gains
    }


def _bins(bins: WeightBins, plan: FoldPlan) -> WeightBins:
    signs = np.array([-1.0, -1.0, 1.0, 1.0])[:, None]  # of r, wr, r², (wr)²
    more = [bins.by_metric[one.gains] + signs * bins.by_metric[one.losses] for one in plan.differences.values()]
    return replace(bins, metrics=len(plan.metrics), by_metric=np.concatenate([bins.by_metric, np.stack(more)]))


def _rows(rows: KeptRows, plan: FoldPlan) -> KeptRows:
    """The kept rows with the reward of every difference."""
    parts = []
    for part in rows.parts:
        more = {
            f"r:{place}": part[f"r:{one.gains}"] - part[f"r:{one.losses}"]
            for place, one in plan.differences.items()
            if f"r:{one.gains}" in part
        }
        parts.append({**part, **more})
    return replace(rows, parts=parts)


def _segments(sums: SegmentSums, plan: FoldPlan) -> SegmentSums:
    """The sums by segment with those of every difference."""
    plain, hr = dict(sums.sums), dict(sums.hr)
    for place, one in plan.differences.items():
        for name, gains in sums.sums.items():
            kind, _, metric = name.rpartition(":")
            if kind and metric == str(one.gains) and not kind.startswith("unsupported"):
                losses = sums.sums.get(f"{kind}:{one.losses}", np.zeros_like(gains))
                plain[f"{kind}:{place}"] = gains - losses if kind == "r" else gains + losses
        for (weighting, m), of_gains in sums.hr.items():
            of_losses = sums.hr.get((weighting, one.losses))
            if m == one.gains and of_losses is not None:
                hr[weighting, place] = _less_by_segment(of_gains, of_losses, sums.buckets)
    return replace(sums, sums=plain, hr=hr)


def _less_by_segment(gains: ScaledSums, losses: ScaledSums, buckets: int) -> ScaledSums:
    """The same of sums by segment, whose sizes are by segment too."""
    less = _less(gains, losses)
    sizes = ScaledSums.total([ScaledSums({"hr": side.get("hr")}, side.exponent) for side in (gains, losses)])
    return ScaledSums({**less.arrays, SIZES: sizes.get("hr").reshape(-1, buckets).sum(axis=1)}, less.exponent)

"""Figure 2 as data: CIS and NCIS at every cap from 1 to 1e25, and how small an uplift noise and bias let CIS show;
the point estimators along their own cap or bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.weight_bins import BINS, CAPS, LOWEST, STEPS
from foretest.diagnostics.path_estimates import EstimateColumns, column_errors, estimate_columns, listed
from foretest.diagnostics.point_path import path_along_bounds, path_along_caps
from foretest.diagnostics.weight_distribution import TreatmentMass, treatment_mass
from foretest.displays.batch import Floats
from foretest.estimators import CIS, NCIS, AdaptivePointNCIS, Estimator, PointNCIS
from foretest.files import finite_or_none
from foretest.inference.bound_choice import choose_bound
from foretest.inference.buckets import BucketSums
from foretest.inference.delta import delta_interval
from foretest.results.bound_choice import BoundChoice
from foretest.results.cap_path import Band, CapPath, PathCriteria
from foretest.settings.analysis import BOUNDED

FIRST = -LOWEST * STEPS  # the cap of 1: a smaller one would cut weights that all rows have where the policies agree
PATH = CAPS[FIRST:]
SOUGHT = 0.01  # the uplift to be seen; the paper's usual one

_UNKNOWN = np.full(len(CAPS), np.nan)
_NO_MASS = TreatmentMass(_UNKNOWN, _UNKNOWN, None, "log")


def cap_path(
    aggregates: Aggregates, metric: int, counts: Floats | None, r_max: float | None, estimators: Sequence[Estimator]
) -> CapPath:
    """Columns over the caps of the path, under max capping; a run at one of these caps gives the same numbers.

    Intervals are percentiles of the resamples `counts`, or delta limits where there are none. `point-ncis` and
    `point-ncis-adaptive`, where among the `estimators`, have a grid of their own (`caps`, `bounds`).
    """
    plan, a, rows = aggregates.plan, aggregates.plan.settings.analysis, aggregates.displays
    capped = _capped_estimates(aggregates, metric, counts)
    control = float(aggregates.r[metric].sum()) / rows if rows else float("nan")
    mass = treatment_mass(aggregates) if rows else _NO_MASS
    runs = {type(estimator) for estimator in estimators}
    choice = _choice(aggregates, metric, estimators)
    return CapPath(
        metric=plan.metrics[metric],
        capping="max",
        interval="delta" if counts is None else "bootstrap",
        confidence_level=a.confidence_level,
        sought=SOUGHT,
        cap=a.cap_number,
        weight_bound=a.bound_number if choice is None else choice.bound,
        r_max=r_max,
        control=finite_or_none(control),
        source=mass.source,
        max_log10_weight=finite_or_none(aggregates.max_log_w / np.log(10.0)),
        caps=listed(PATH),
        cis=capped.cis.listed(),
        ncis=capped.ncis.listed(),
        point_ncis=path_along_caps(aggregates, metric, counts) if PointNCIS in runs else None,
        point_ncis_adaptive=path_along_bounds(aggregates, metric, counts) if AdaptivePointNCIS in runs else None,
        effective_positives=listed(_effective_positives(aggregates, metric)),
        variance=listed(capped.cis_variance),
        treatment_mass_kept=listed(1.0 - mass.beyond[FIRST:]),
        share_above_cap=listed(mass.above[FIRST:]),
        criteria=_criteria(capped.cis, mass, _expected_noise(aggregates, metric, mass, control), control, r_max),
        notes=_notes(aggregates, r_max),
        bound_choice=None if choice is None else choice.to_dict(),
    )


def _choice(aggregates: Aggregates, metric: int, estimators: Sequence[Estimator]) -> BoundChoice | None:
    """How the bound of `point-ncis-adaptive` was chosen, where it was."""
    own = next((e for e in estimators if type(e) is AdaptivePointNCIS), None)
    return None if own is None else choose_bound(aggregates, own, metric)


class _CappedEstimates(NamedTuple):
    """CIS and NCIS at every cap of the path, and the variance of CIS's value."""

    cis: EstimateColumns
    ncis: EstimateColumns
    cis_variance: Floats


def _capped_estimates(aggregates: Aggregates, metric: int, counts: Floats | None) -> _CappedEstimates:
    h, hr = (sums[:, FIRST:] for sums in aggregates.bins.capped_sums(metric))
    # above the largest weight of the log all caps are one
    distinct = min(len(PATH), int(np.searchsorted(np.log(PATH), aggregates.max_log_w)) + 1)
    n, r, zero = aggregates.n[:, None], aggregates.r[metric][:, None], np.zeros((len(aggregates.n), 1))
    arrays = {"rows": n, "r": r, "n": n, "h": h[:, :distinct], "hr": hr[:, :distinct], "hv": zero, "v": zero}
    sums = BucketSums(arrays, 1.0, aggregates.plan.loggers)
    resampled = None if counts is None else sums.resampled(counts)
    units, level = aggregates.n_units, aggregates.plan.settings.analysis.confidence_level
    places = np.minimum(np.arange(len(PATH)), distinct - 1)
    cis, ncis = (estimate_columns(e, sums, resampled, units, level).take(places) for e in (CIS(), NCIS()))
    return _CappedEstimates(cis, ncis, np.square(column_errors(CIS().value, sums, units))[places])


def _criteria(
    cis: EstimateColumns, mass: TreatmentMass, expected: Floats, control: float, r_max: float | None
) -> PathCriteria:
    """Noise and bias of CIS, relative to the control's value r̄ so that they compare with the uplift sought (paper,
    section 4.3):

        noise        half the width of its relative uplift's interval: the larger of the one in this log
                     (`noise_seen`) and the one to expect from the weights (`noise_expected`), which counts heavy rows
                     that the log happens not to have: z·√(mean(r²)·E_p[(w̄ − 1)²]/n)/r̄, E_p[w̄²] = E_t[w̄²/w]
        bias_bound   r_max·(1 − q̄)/r̄, q̄ = E_t[w̄/w]: nothing cut off can have earned more
        sensitivity  noise + bias_bound: a true uplift beyond it shows, whatever the part that was cut off earned

    `bias_bound_loose` is r_max·P_t(W > c)/r̄, as the paper prints it. Bands are [lowest, highest] of the longest run of
    caps where noise, bias bound or both are at most `sought`; `satisfies_both` is None where the bound is unknown.
    """
    seen = (cis.rel_effect_size_ci_upper - cis.rel_effect_size_ci_lower) / 2.0
    noise = np.where(np.isnan(expected), seen, np.maximum(seen, expected))
    scale = r_max / control if r_max is not None and control > 0.0 else float("nan")
    with np.errstate(invalid="ignore"):  # a scale that no float holds, times 0
        bias, loose = scale * mass.beyond[FIRST:], scale * mass.above[FIRST:]
    small, unbiased = noise <= SOUGHT, bias <= SOUGHT
    known = bool((np.isfinite(noise) & np.isfinite(bias)).any())
    return PathCriteria(
        noise_seen=listed(seen),
        noise_expected=listed(expected),
        noise=listed(noise),
        bias_bound=listed(bias),
        bias_bound_loose=listed(loose),
        sensitivity=listed(noise + bias),
        noise_band=_band(small),
        bias_band=_band(unbiased),
        both_band=_band(small & unbiased),
        satisfies_both=bool((small & unbiased).any()) if known else None,
    )


def _expected_noise(aggregates: Aggregates, metric: int, mass: TreatmentMass, control: float) -> Floats:
    """z·√(mean(r²)·E_p[(w̄ − 1)²]/n)/r̄: as if rewards were as large where weights are large as elsewhere."""
    if mass.square is None or not control > 0.0:
        return np.full(len(PATH), np.nan)
    spread = np.maximum(0.0, mass.square - 2.0 * (1.0 - mass.beyond) + 1.0)[FIRST:]
    errors = np.sqrt(float(aggregates.r2[metric]) * spread) / aggregates.displays / control
    level = aggregates.plan.settings.analysis.confidence_level
    return errors * delta_interval(0.0, 1.0, aggregates.n_units, level).upper


def _effective_positives(aggregates: Aggregates, metric: int) -> Floats:
    """(Σw̄r)²/Σ(w̄r)² at every cap."""
    r, wr, r2, wr2 = (sums.reshape(-1, BINS).sum(axis=0) for sums in aggregates.bins.rewards(metric))
    total, squares = (
        np.cumsum(below)[:-1] + power * np.cumsum(above[::-1])[::-1][1:]
        for below, above, power in ((wr, r, CAPS), (wr2, r2, CAPS**2))
    )
    answer = np.divide(total**2, squares, out=np.full(len(CAPS), np.nan), where=squares > 0.0)
    return np.asarray(answer[FIRST:])


def _band(small: npt.NDArray[np.bool_]) -> Band | None:
    """The longest run of caps where `small` is true, as [lowest, highest]."""
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

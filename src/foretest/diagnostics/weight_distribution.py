"""Figure 1 as data: how the weights of the treatment's own rankings are distributed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.quantities import WEIGHTS
from foretest.aggregation.weight_bins import BINS, CAPS, LOWEST, STEPS
from foretest.displays.batch import Floats
from foretest.files import finite_or_none
from foretest.formatting import percent
from foretest.records import dataclass

LEVELS = (0.1, 0.5, 0.9)  # the median, and the limits of the 80 % band
MOST_BINS = 90
WIDTHS = (0.1, 0.25, 0.5, 1.0)  # of a bin, in decades
FARTHEST = 30  # decades from 1; weights beyond are counted apart


@dataclass(frozen=True)
class _Distribution:
    """The distribution of log10 w of the treatment's rankings; fields by their names in result.json."""

    source: str  # "draws" or "log"
    displays: int
    draws: int | None
    bin_width: float
    log10_lower: list[float]  # of each bin
    share: list[float]  # of each bin
    share_below: float
    share_beyond: float
    share_zero: float
    share_infinite: float
    share_unseen: float | None
    log10_quantiles: dict[str, float | None]


def weight_distribution(aggregates: Aggregates) -> dict[str, Any] | None:
    """The histogram of log10 w of rankings drawn from the treatment, its quantiles, and the share above the cap.

    Where both policies can be drawn from, rankings are drawn for the sampled displays (source "draws"). Else the rows
    of the log take their place (source "log"): P_t(W < c) = E_p[w·1(w < c)], estimated by Σ_{w<c} w/n and at most 1.
    That sum has a variance of at most c/n, so the distribution is good as far as the log goes; what it does not reach
    is `share_unseen`, the mass that no row represents. None for an empty log, and where rankings have no known weight.
    """
    if aggregates.rows == 0 or not aggregates.plan.prices_rankings:
        return None
    drawn = aggregates.sampled_displays.get("draws_treatment")
    cap = aggregates.plan.settings.analysis.cap_number
    if drawn is None:
        distribution, above = _of_log(aggregates), _log_above(aggregates)
    else:
        distribution, above = _of_draws(drawn), float((drawn > np.log(cap)).mean())
    return {**vars(distribution), "cap": cap, "share_above_cap": above, "notes": _notes(distribution)}


class TreatmentMass(NamedTuple):
    """The treatment's rankings against each of `weight_bins.CAPS`, under max capping."""

    beyond: Floats  # 1 − q̄ = E_t[1 − w̄/w], what the cap cuts off
    above: Floats  # P_t(W > c)
    square: Floats | None  # E_p[w̄²] = E_t[w̄²/w]; None where it is not known
    source: str


def treatment_mass(aggregates: Aggregates) -> TreatmentMass:
    """From draws: means over the treatment's rankings. From the log: 1 − Σ w̄/n and 1 − Σ_{w<c} w/n, at least 0;
    Σ w̄²/n is left out, as its large terms are those that a log does not show."""
    drawn = aggregates.sampled_displays.get("draws_treatment")
    return _mass_of_log(aggregates) if drawn is None else _mass_of_draws(drawn.ravel())


def _mass_of_draws(drawn: Floats) -> TreatmentMass:
    # how many caps lie below the weight; w = 1 up to rounding is not above a cap of 1
    drawn = np.clip(drawn, -745.0, 700.0)  # of doubles; no cap is beyond
    passed = np.ceil(np.clip(drawn * (STEPS / np.log(10.0)) - LOWEST * STEPS, 0, BINS - 1)).astype(np.int64)
    w = np.exp(np.maximum(drawn, -60.0))
    ones, capped_w, inverse = (
        np.bincount(passed, weights=amounts, minlength=BINS) / len(drawn)
        for amounts in (np.ones(len(drawn)), np.minimum(w, CAPS[-1]), 1.0 / w)
    )
    above, inverse_above = _from_the_top(ones), _from_the_top(inverse)
    square = np.cumsum(capped_w)[:-1] + CAPS**2 * inverse_above
    return TreatmentMass(np.maximum(0.0, above - CAPS * inverse_above), above, square, "draws")


def _mass_of_log(aggregates: Aggregates) -> TreatmentMass:
    n, w = (sums.reshape(-1, BINS).sum(axis=0) / aggregates.displays for sums in (aggregates.bins.n, aggregates.bins.w))
    below = np.cumsum(w)[:-1]
    beyond = np.maximum(0.0, 1.0 - below - CAPS * _from_the_top(n))
    return TreatmentMass(beyond, np.maximum(0.0, 1.0 - below), None, "log")


def _from_the_top(by_bin: Floats) -> Floats:
    """The sum over the bins above each cap: a difference of sums would leave rounding, and a cap of 1e25 would blow it
    up."""
    return np.asarray(np.cumsum(by_bin[::-1])[::-1][1:])


def _of_draws(drawn: Floats) -> _Distribution:
    log10 = drawn.ravel() / np.log(10.0)
    histogram = _histogram(log10, np.full(len(log10), 1.0 / len(log10)))
    quantiles = np.quantile(log10, LEVELS, method="inverted_cdf")
    return _Distribution(
        source="draws",
        displays=len(drawn),
        draws=log10.size,
        bin_width=histogram.width,
        log10_lower=histogram.lower,
        share=histogram.share,
        share_below=float(((log10 < -FARTHEST) & ~np.isneginf(log10)).mean()),
        share_beyond=float(((log10 >= FARTHEST) & ~np.isposinf(log10)).mean()),
        share_zero=float(np.isneginf(log10).mean()),
        share_infinite=float(np.isposinf(log10).mean()),
        share_unseen=None,
        log10_quantiles={f"{p:g}": finite_or_none(q) for p, q in zip(LEVELS, quantiles, strict=True)},
    )


def _of_log(aggregates: Aggregates) -> _Distribution:
    w = aggregates.bins.w.reshape(-1, BINS).sum(axis=0) / aggregates.displays
    reached = np.minimum(1.0, np.cumsum(w))
    share = np.diff(reached, prepend=0.0)
    edges = np.arange(BINS - 1) / STEPS + LOWEST  # log10 of CAPS
    some = share[1:-1] > 0.0
    histogram = _histogram(edges[:-1][some] + 0.5 / STEPS, share[1:-1][some], WIDTHS[1:])
    quantiles = [float(np.interp(p, reached[:-1], edges)) if reached[-2] >= p else None for p in LEVELS]
    return _Distribution(
        source="log",
        displays=aggregates.rows,
        draws=None,
        bin_width=histogram.width,
        log10_lower=histogram.lower,
        share=histogram.share,
        share_below=float(share[0]),
        share_beyond=float(share[-1]),
        share_zero=0.0,
        share_infinite=0.0,
        share_unseen=float(1.0 - reached[-1]),
        log10_quantiles={f"{p:g}": q for p, q in zip(LEVELS, quantiles, strict=True)},
    )


class _Histogram(NamedTuple):
    """Bins of one width, each a multiple of it: their lower edges, and the sum of amounts in each."""

    lower: list[float]
    width: float
    share: list[float]


def _histogram(log10: Floats, amounts: Floats, widths: tuple[float, ...] = WIDTHS) -> _Histogram:
    """The amounts by bin of log10, with the smallest of the widths that needs few enough bins."""
    inside = (log10 >= -FARTHEST) & (log10 < FARTHEST)
    log10, amounts = log10[inside], amounts[inside]
    if not len(log10):
        return _Histogram([], widths[0], [])
    span = float(log10.max() - log10.min())
    width = next((w for w in widths if span <= MOST_BINS * w), widths[-1])
    # w = 1 up to rounding belongs to the bin that begins there
    place = np.floor(log10 / width + 1e-9).astype(np.int64)
    first = int(place.min())
    share = np.bincount(place - first, weights=amounts)
    lower = [round((first + k) * width, 2) for k in range(len(share))]
    return _Histogram(lower, width, [float(s) for s in share])


def _log_above(aggregates: Aggregates) -> float:
    """1 − Σ_{w≤c} w/n, from the sums at the run's own cap, which need not be an edge."""
    weighting = aggregates.plan.health_weighting
    sums = aggregates.weights(weighting)
    below = sums.total(WEIGHTS) * float(np.exp(sums.log_unit))
    if weighting.capping == "max":
        below -= weighting.cap * aggregates.capped_rows
    return max(0.0, 1.0 - below / aggregates.displays)


def _notes(distribution: _Distribution) -> list[str]:
    if distribution.source == "log":
        return [
            "a policy cannot be drawn from: the rows of the log, weighted by w, stand for the treatment's rankings;"
            f" {percent(distribution.share_unseen)} of the treatment's mass was never seen."
        ]
    if distribution.share_infinite:
        return [
            f"{percent(distribution.share_infinite)} of the treatment's rankings are never shown by the control: their"
            " weight is infinite."
        ]
    return []

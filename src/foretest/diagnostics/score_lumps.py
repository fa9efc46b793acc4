"""Are the scores of some displays wrong, beside a bulk that is right? Rank correlations within displays are noisy, the
more the shorter a list: which true ones they come from says the most likely mixture of them.

A new model agrees with the control more in some displays and less in others, in every shade. Scores in another order
agree by chance alone, those of the wrong sign the other way round: a lump at 0 or below, with few displays between it
and the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats

FEWEST_ITEMS = 5  # of a list: the correlation of fewer has too few values
FEWEST_DISPLAYS = 1000  # independent of one another: of fewer a mixture is too uncertain
LEAST_SHARE, MOST_SHARE = 0.05, 0.6  # of the displays in a lump
LOW = 0.15  # true correlations below belong to a lump
REVERSED = -0.25  # and below this the other way round: most of a lump of the wrong sign
LEAST_BULK = 0.25  # the median of the others
MARGIN = 0.2  # below that median: what is lower is between the lump and the bulk
NEAR = 0.04  # how far from 0 the mean of a lump that agrees by chance may be
MOST_BETWEEN = 0.4  # times the displays of the lump may be between
LEAST_GAIN = 20.0  # twice the log-likelihood, against a mixture without a lump, in units
_ROUNDS = 300
_OUTLIERS = 1e-3  # of the displays, which may have any correlation

_TRUE = np.concatenate([[-0.98], np.linspace(-0.9, 0.9, 19), [0.98]])
_EDGES = np.linspace(-1.05, 1.05, 22)  # in whose middle are the correlations that five items can have
_FINE = 8  # points of each bin at which the density is taken


class Lump(NamedTuple):
    """A share of displays whose scores do not follow the control's."""

    share: float
    is_reversed: bool  # do they rank items the other way round, and not by chance?
    displays: npt.NDArray[np.bool_]  # which are likelier in it than not
    judged: npt.NDArray[np.bool_]  # of which it is known


def score_lump(correlation: Floats, items: npt.NDArray[np.integer], units: int) -> Lump | None:
    """The lump of some displays with their rank correlations and numbers of items; None where there is none."""
    judged = np.isfinite(correlation) & (items >= FEWEST_ITEMS)
    # half of a lump at 0 is below it
    if min(units, int(judged.sum())) < FEWEST_DISPLAYS or (correlation[judged] < LOW).mean() < 0.5 * LEAST_SHARE:
        return None
    bin_of = np.clip(np.searchsorted(_EDGES, correlation[judged]) - 1, 0, len(_EDGES) - 2)
    sizes, size_of = np.unique(items[judged], return_inverse=True)
    cell = size_of * (len(_EDGES) - 1) + bin_of
    counts = np.bincount(cell, minlength=len(sizes) * (len(_EDGES) - 1)).astype(np.float64)
    likely = np.concatenate([_likelihoods(int(size)) for size in sizes], axis=1)
    shares = _most_likely(counts, likely)
    true = _TRUE
    below = true < LOW
    share = float(shares[below].sum())
    middle = true[np.searchsorted(np.cumsum(shares), share + 0.5 * (1.0 - share))]  # of the others
    turned = float(shares[true < REVERSED].sum())
    reverse = turned > 0.5 * share  # then those near 0 are between
    lowest, highest = (REVERSED, -REVERSED) if reverse else (LOW, middle - MARGIN)
    between = float(shares[(true > lowest) & (true < highest)].sum())
    if not LEAST_SHARE <= share <= MOST_SHARE or middle < LEAST_BULK or between > MOST_BETWEEN * share:
        return None
    if not reverse and abs(float(shares[below] @ true[below])) > NEAR * share:
        return None
    without = likely[~below]
    apart = counts @ (np.log(shares @ likely) - np.log(_most_likely(counts, without) @ without))
    if 2.0 * apart * min(1.0, units / len(correlation)) < LEAST_GAIN:
        return None
    inside = shares[below] @ likely[below] > 0.5 * (shares @ likely)
    displays = np.zeros(len(correlation), np.bool_)
    displays[judged] = inside[cell]
    return Lump(share, reverse, displays, judged)


def _likelihoods(items: int) -> Floats:
    """The probability of each bin, for every true correlation: Hotelling's density of a correlation r of n normal
    pairs, (1 − ρ²)^((n−1)/2) (1 − r²)^((n−4)/2) / (1 − ρr)^(n−3/2)."""
    r = np.clip((np.arange((len(_EDGES) - 1) * _FINE) + 0.5) / ((len(_EDGES) - 1) * _FINE) * 2.1 - 1.05, -1.0, 1.0)
    with np.errstate(divide="ignore"):
        log_r = 0.5 * (items - 4) * np.log1p(-np.square(r * (1.0 - 1e-9)))
    density = np.exp(
        log_r - (items - 1.5) * np.log1p(-_TRUE[:, None] * r) + 0.5 * (items - 1) * np.log1p(-(_TRUE[:, None] ** 2))
    )
    bins = density.reshape(len(_TRUE), -1, _FINE).sum(axis=2)
    return np.asarray((1.0 - _OUTLIERS) * bins / bins.sum(axis=1, keepdims=True) + _OUTLIERS / bins.shape[1])


def _most_likely(counts: Floats, likely: Floats) -> Floats:
    """The shares of true correlations under which the counts are most likely, by expectation and maximisation."""
    shares = np.full(len(likely), 1.0 / len(likely))
    for _ in range(_ROUNDS):
        shares = shares * (likely @ (counts / (shares @ likely))) / counts.sum()
    return shares

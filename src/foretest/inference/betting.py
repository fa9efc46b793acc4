"""The betting interval of Waudby-Smith and Ramdas (2024): valid at any number of rewards, given the range of a row.

A bettor who wagers that the mean of terms in [0, 1] is above m, against odds that are fair if it is m, has the capital
K⁺(m) = ∏ (1 + λ_i (y_i − m)); one who wagers that it is below has K⁻(m) = ∏ (1 − λ_i (y_i − m)). Bets look at the past
alone. At the true mean both have mean 1, so that either is 2/α or more with probability at most α/2 (Markov): every m
at which one has so much is left out.

Each factor of K⁺ falls in m, whether or not the cap on its bet binds: what is left out below is [0, L), and the limit
is found by closing in on it. K⁻ at m is K⁺ of 1 − y at 1 − m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foretest.aggregation.aggregates import Aggregates
from foretest.displays.batch import Floats
from foretest.estimators import Estimator
from foretest.inference.buckets import NO_INTERVAL, Interval
from foretest.inference.row_terms import uplift_range, uplift_terms, worst_bias
from foretest.kernels import betting as kernel
from foretest.records import dataclass

# units without reward are placed by chance, from a stream of random numbers of its own
_ORDER = 0x0B17


@dataclass(frozen=True)
class OrderedTerms:
    """Terms in the order in which they are bet on: gaps[u] zeros, then values[u], …, and gaps[-1] zeros at the end."""

    gaps: npt.NDArray[np.int64]
    values: Floats
    horizon: int  # how many terms there are in all
    target: int = 0  # above 0 where they end early, after about so many values: the highest capital so far then counts


def betting_interval(
    aggregates: Aggregates, estimator: Estimator, metric: int, uplift: float, level: float, r_max: float
) -> Interval:
    """Limits of the uplift: on d = (h − 1) r, whose range is [−r_max, (b − 1) r_max], b the bound of h (for several
    loggers see `uplift_range`).

    For CIS the worst-case bias 0 ≤ B ≤ r_max·(1 − q̄) is added to the upper end.
    """
    weighting = aggregates.plan.weighting(estimator)
    terms = uplift_terms(aggregates, weighting, metric)
    lower, upper = betting_limits(aggregates, terms, uplift_range(aggregates, weighting, r_max), level)
    # limits from a part of the log, and lucky bets, may leave out the estimate itself: they are then moved to it
    lower, upper = min(lower, uplift), max(upper, uplift)
    return Interval(lower, upper + worst_bias(aggregates, weighting, r_max))


def betting_limits(aggregates: Aggregates, row_terms: Floats, row_range: tuple[float, float], level: float) -> Interval:
    """Limits, each at 1 − (1 − level)/2, of the mean over rows of a term that is 0 without reward.

    `row_terms` are those of the kept rewarded rows, in their order; the term of any row lies in `row_range`, which
    contains 0. The terms that are bet on are sums by unit, in [n_max·lowest, n_max·highest] with n_max the rows of the
    largest unit. As for Bernstein's limits, the number of rows per unit is taken as given.
    """
    if aggregates.rows == 0 or aggregates.n_units < 2:
        return NO_INTERVAL
    lowest, highest = (aggregates.largest_unit * end for end in row_range)
    terms = unit_terms(aggregates, row_terms)
    limits = mean_limits(terms, lowest, highest, level)
    units_per_row = aggregates.n_units / aggregates.rows
    return Interval(limits.lower * units_per_row, limits.upper * units_per_row)


def unit_terms(aggregates: Aggregates, row_terms: Floats) -> OrderedTerms:
    """Sums of the rows' terms by unit, in the order of the units' hashes, units without reward among them.

    Of more than 2^17 rewarded rows those of the smallest hashes are kept. Their units, but for the last, which may be
    incomplete, and those without reward before it are the first units in hash order. The bets stop there, as they may
    at any moment: Ville's inequality holds for the highest capital so far, whenever that is.
    """
    columns, units = aggregates.rewarded.columns(), aggregates.n_units
    hashes = columns["unit"] if columns else np.zeros(0, np.uint64)
    end = 1.0
    if not aggregates.rewarded.complete:
        whole = hashes < hashes[-1]
        end = float(hashes[-1]) * 2.0**-64
        hashes, row_terms = hashes[whole], row_terms[whole]
    if aggregates.units is not None and len(hashes):
        first = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
        hashes, row_terms = hashes[first], np.add.reduceat(row_terms, first)
    seed, rewarded, target = aggregates.plan.settings.analysis.seed, len(hashes), 0
    if end < 1.0:
        rewarded = aggregates.rewarded.seen if aggregates.units is None else round(len(hashes) / end)
        target = aggregates.rewarded.limit
    return in_hash_order(hashes, row_terms, units, seed, others=max(0, units - rewarded), end=end, target=target)


def in_hash_order(
    hashes: npt.NDArray[np.uint64],
    values: Floats,
    units: int,
    seed: int,
    *,
    others: int | None = None,
    end: float = 1.0,
    target: int = 0,
) -> OrderedTerms:
    """Terms of rewarded units, sorted by hash, with the zeros of the other units between them.

    The hashes of units without reward are not kept, but how many lie between two that are is known up to chance: each
    is anywhere in the range of hashes with equal probability, whatever the terms. So these numbers are drawn from
    their distribution, and the order has the distribution of hash order: every order of the terms is equally likely.

    Where the values are only those of hashes below `end` (a share of their range), `others` counts all units without
    reward. The bettor cannot know beforehand when that `end` comes: the bets count on `target` values, at the pace so
    far.
    """
    places = np.concatenate([[0.0], hashes.astype(np.float64) * 2.0**-64, [end]])
    generator = np.random.Generator(np.random.Philox([seed, _ORDER]))
    count = max(0, units - len(hashes)) if others is None else others
    gaps = generator.multinomial(count, np.append(np.diff(places), 1.0 - end))[:-1]
    return OrderedTerms(gaps, values, units, target)


def mean_limits(terms: OrderedTerms, lowest: float, highest: float, level: float) -> Interval:
    """Limits of the mean of terms in [lowest, highest], each at 1 − (1 − level)/2.

    >>> terms = OrderedTerms(np.array([40, 0, 59]), np.array([1.0, 1.0]), 101)
    >>> tuple(round(float(limit), 4) for limit in mean_limits(terms, 0.0, 1.0, 0.9))
    (0.0, 0.0831)
    """
    width = highest - lowest
    zero = -lowest / width
    scaled = np.clip((terms.values - lowest) / width, 0.0, 1.0)  # rounding must not leave the range
    wealth = float(np.log(2.0 / (1.0 - level)))
    bets = _bets(terms, scaled, zero, wealth)
    below = _limit(bets, zero, wealth)
    # 1 − y is as far from its running mean as y: the bets are the same
    above = _limit(replace(bets, own=1.0 - bets.own), 1.0 - zero, wealth)
    return Interval(lowest + width * below, highest - width * above)


def mean_lower_bound(terms: OrderedTerms, scale: float, level: float) -> float:
    """A lower bound of the mean of terms ≥ 0 without an upper bound; `scale` is what the bettor takes for large."""
    wealth = float(np.log(1.0 / (1.0 - level)))
    return scale * _limit(_bets(terms, terms.values / scale, 0.0, wealth), 0.0, wealth)


@dataclass(frozen=True)
class _Bets:
    """Blocks of terms with one bet λ per block: `zeros` terms of 0, then, where `ends` is true, the term `own`."""

    lam: Floats
    zeros: Floats
    own: Floats
    ends: npt.NDArray[np.bool_]
    at_best: bool

    def mean_and_error(self, zero: float) -> tuple[float, float]:
        """The mean of the terms and its error: where the limits are looked for first."""
        own, zeros = self.own[self.ends], float(self.zeros.sum())
        count = max(zeros + len(own), 1.0)
        mean = (float(own.sum()) + zero * zeros) / count
        squares = float(np.square(own - mean).sum()) + (zero - mean) ** 2 * zeros
        return mean, float(np.sqrt(squares)) / count


def _bets(terms: OrderedTerms, scaled: Floats, zero: float, wealth: float) -> _Bets:
    lam, zeros, own, ends = kernel.bets(
        terms.gaps, scaled, zero, 2.0 * wealth, float(terms.horizon), float(terms.target)
    )
    return _Bets(lam, zeros, own, ends, at_best=terms.target > 0)


def _limit(bets: _Bets, zero: float, wealth: float) -> float:
    """The largest m that K⁺ leaves out, log K⁺(m) ≥ wealth; 0 where it leaves none out."""

    def excess(m: float) -> float:
        return float(kernel.log_capital(bets.lam, bets.zeros, bets.own, bets.ends, zero, m, bets.at_best)) - wealth

    mean, error = bets.mean_and_error(zero)
    step = 2.0 * error + 1e-12
    high = mean
    while excess(high) >= 0.0:  # rare: large bets that were lucky; far above all terms none is
        high += step
        step *= 2.0
    while True:
        low = max(0.0, high - step)
        if excess(low) >= 0.0:
            return _crossing(excess, low, high)
        if low == 0.0:
            return 0.0
        high, step = low, 2.0 * step


def _crossing(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 0 between low (≥ 0) and high (< 0): the last point met with a value ≥ 0.

    Secant steps, which close in quickly on a smooth function; where three have not halved the bracket, a bisection.
    """
    above, below = excess(low), excess(high)
    small = 1e-9 * (high - low) + 1e-15
    widths = [high - low]
    while high - low > small:
        guess = low + (high - low) * above / (above - below)
        if len(widths) % 4 == 0 and high - low > 0.5 * widths[-4]:
            guess = 0.5 * (low + high)
        guess = min(max(guess, low + 0.25 * small), high - 0.25 * small)
        value = excess(guess)
        if value >= 0.0:
            low, above = guess, value
        else:
            high, below = guess, value
        widths.append(high - low)
    return low

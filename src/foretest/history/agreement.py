"""How well offline agreed with online over many tests: definitions on plain arrays.

The last axis of an array is that of tests, so that a figure of many resamples is one computation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.files import finite_or_none
from foretest.formatting import plural
from foretest.history.range_and_word import SEEN_FIGURES, SEEN_TRUTH_FIGURES, Figure, Seen, share
from foretest.records import dataclass

# insufficient evidence decides nothing: it counts as neutral
DECISIONS = {"negative": -1, "neutral": 0, "insufficient": 0, "positive": 1}
LOWER, UPPER = 0.1, 0.9  # the quantiles given beside every figure
QUARTILES = (0.25, 0.5, 0.75)  # beside the correlation: its box


@dataclass(frozen=True)
class Pairs:
    """One entry per test: offline x and online y (relative uplifts), their errors, limits and decisions.

    `covariance` is the covariance of the noise in x and in y, which share the control's log. `cis_width` is the width
    of the interval of CIS, `truth` the true relative uplift, `seen` the ranges and words. NaN where there is none.
    """

    x: Floats
    y: Floats
    x_error: Floats
    y_error: Floats
    covariance: Floats
    lower: Floats
    upper: Floats
    offline: npt.NDArray[np.int64]
    online: npt.NDArray[np.int64]
    cis_width: Floats
    truth: Floats
    seen: Seen | None = None
    covariance_bound: Floats | None = None  # NaN where the covariance is known; None where all are

    def take(self, tests: npt.NDArray[np.int64]) -> Pairs:
        """The entries of some tests, in the shape of `tests`."""
        columns = {name: column[tests] for name, column in vars(self).items() if isinstance(column, np.ndarray)}
        return Pairs(**columns, seen=None if self.seen is None else self.seen.take(tests))


def correlation(p: Pairs) -> Figure:
    """Pearson's correlation of (x, y) over tests."""
    return _over(_covariance(p.x, p.y), _geometric_mean(_covariance(p.x, p.x), _covariance(p.y, p.y)))


def precision(p: Pairs) -> Figure:
    """The share of tests in which offline decided as online did."""
    return share(p.offline == p.online)


def fnr(p: Pairs) -> Figure:
    """False negatives: the share of all tests in which offline < online, negative < neutral < positive."""
    return share(p.offline < p.online)


def fpr(p: Pairs) -> Figure:
    """False positives: the share of all tests in which offline > online."""
    return share(p.offline > p.online)


def ppv(p: Pairs) -> Figure:
    """P(online positive | offline positive)."""
    return share(p.online > 0, p.offline > 0)


def miss_rate(p: Pairs) -> Figure:
    """P(offline not positive | online positive)."""
    return share(p.offline <= 0, p.online > 0)


def ci_size(p: Pairs) -> Figure:
    """The mean over tests of the interval's width over that of CIS."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (p.upper - p.lower) / p.cis_width
    return _mean(ratios)


def noise_ceiling(p: Pairs) -> Figure:
    """√(rel_x·rel_y), rel = τ²/Var, τ² = Var − mean se²: the correlation of a perfect estimator. NaN if a τ² ≤ 0."""
    x, y = _signal(p.x, p.x_error), _signal(p.y, p.y_error)
    return _over(_geometric_mean(x, y), _geometric_mean(_covariance(p.x, p.x), _covariance(p.y, p.y)))


def deconvolved_correlation(p: Pairs) -> Figure:
    """(Cov(x, y) − mean noise covariance)/(τ_x τ_y): the correlation with the noise of both axes taken out."""
    with np.errstate(invalid="ignore"):
        shared = _covariance(p.x, p.y) - _mean(p.covariance)
    return _over(shared, _geometric_mean(_signal(p.x, p.x_error), _signal(p.y, p.y_error)))


def correlation_text(row: Mapping[str, float | None], name: str, form: Callable[[float | None], str]) -> str:
    """A correlation of an estimator's figures in words: noise that is taken out is itself estimated, and where more is
    taken out than there was, a number beyond 1 comes out, which says nothing.

    >>> correlation_text({"deconvolved_correlation": 1.96, "tests": 12}, "deconvolved_correlation", str)
    'not known from 12 tests'
    """
    value = row.get(name)
    if value is None or abs(value) <= 1.0:
        return form(value)
    return f"not known from {plural(int(row.get('tests') or 0), 'test')}"


def deconvolved_at_ends(p: Pairs) -> dict[str, float | None]:
    """The deconvolved correlation with every covariance that is not known at its upper, and at its lower end; nothing
    where all are known."""
    if p.covariance_bound is None:
        return {}
    bound = np.nan_to_num(p.covariance_bound)
    ends = {"low": p.covariance + bound, "high": p.covariance - bound}
    return {
        f"{deconvolved_correlation.__name__}_{name}": finite_or_none(
            float(deconvolved_correlation(replace(p, covariance=covariance)))
        )
        for name, covariance in ends.items()
    }


def bias(p: Pairs) -> Figure:
    """Mean of estimate − truth."""
    return _mean(p.x - p.truth)


def rmse(p: Pairs) -> Figure:
    """Root mean square of estimate − truth."""
    return np.sqrt(_mean(np.square(p.x - p.truth)))


def coverage(p: Pairs) -> Figure:
    """The share of tests whose relative interval contains the truth."""
    return share((p.lower <= p.truth) & (p.truth <= p.upper))


FIGURES: dict[str, Callable[[Pairs], Figure]] = {
    f.__name__: f
    for f in (correlation, precision, fnr, fpr, ppv, miss_rate, ci_size, noise_ceiling, deconvolved_correlation)
} | SEEN_FIGURES
TRUTH_FIGURES: dict[str, Callable[[Pairs], Figure]] = {
    f.__name__: f for f in (bias, rmse, coverage)
} | SEEN_TRUTH_FIGURES


def figures(pairs: Pairs, seed: int = 0, resamples: int = 1000) -> dict[str, float | None]:
    """Every figure with its 10 % and 90 % quantiles, by resampling tests; also figures against the truth, if all have
    one."""
    wanted = FIGURES | (TRUTH_FIGURES if len(pairs.x) and not np.isnan(pairs.truth).any() else {})
    generator = np.random.Generator(np.random.Philox(seed))
    n = len(pairs.x)
    resampled = pairs.take(np.array([generator.integers(0, n, n) for _ in range(resamples)])) if n else None
    row: dict[str, float | None] = {}
    for name, figure in wanted.items():
        row[name] = finite_or_none(float(figure(pairs))) if n else None
        values = np.empty(0) if resampled is None else np.asarray(figure(resampled))
        values = values[np.isfinite(values)]
        levels = (LOWER, *QUARTILES, UPPER) if name == "correlation" else (LOWER, UPPER)
        for level in levels:
            row[f"{name}_q{100 * level:.0f}"] = float(np.quantile(values, level)) if len(values) else None
    return row | deconvolved_at_ends(pairs) if n else row


def _mean(values: Floats) -> Figure:
    return values.mean(axis=-1) if values.shape[-1] else np.float64(np.nan)


def _covariance(a: Floats, b: Floats) -> Figure:
    n = a.shape[-1]
    if n < 2:
        return np.float64(np.nan)
    # of few numbers `mean` takes many times as long as `sum`
    a, b = (column - column.sum(axis=-1, keepdims=True) / n for column in (a, b))
    covariance: Figure = (a * b).sum(axis=-1) / (n - 1)
    return covariance


def _signal(values: Floats, errors: Floats) -> Figure:
    """τ² = Var − mean se²; NaN where it is not above 0."""
    if values.shape[-1] < 2:
        return np.float64(np.nan)
    with np.errstate(invalid="ignore"):
        signal = _covariance(values, values) - _mean(np.square(errors))
    return np.where(signal > 0.0, signal, np.nan)


def _geometric_mean(a: Figure, b: Figure) -> Figure:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.sqrt(a * b)


def _over(a: Figure, b: Figure) -> Figure:
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(b > 0.0, a / b, np.nan)

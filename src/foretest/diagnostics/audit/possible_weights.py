"""Can these weights be? Under right probabilities the mean of min(w, c) is at most 1, whatever the policies.

For every cap c, E_p[min(w, c) | x] = q_c(x) ≤ 1. Heavy tails push the mean of capped weights down, never up, so that a
mean above 1 by more than chance is impossible: the probabilities of the control or of the treatment are wrong. It needs
no draws, and so is the one test that every pair of policies can have. The mean is tested over all rows, at every cap
that the number of units bears, and over the sampled rows of each context, where q_c(x) ≤ 1 as well. Where units are few
all of it is by sampled rows.

Where no weight is large, the mean of w must be 1 too, unless the treatment shows what the control never does: a mean
below 1 is worth a look, and no more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.aggregation.audit_context import Feature
from foretest.aggregation.weight_bins import CAPS, WeightBins
from foretest.diagnostics.audit.by_unit import first_of_units
from foretest.displays.batch import Floats, Hashes
from foretest.inference.quantiles import median
from foretest.results.audit import PASS, WARN, WARNS_BELOW, Finding, grade
from foretest.special import ndtr

NAME = "possible weights"
FEWEST_AT_CAP = (
    100.0  # units·mean/c: below, the mean of weights up to c is not yet normal, and Bernstein's bound is used
)
SMALLEST_CAP = 1.5  # min(w, 1) has a mean of at most 1 whatever w is
GROUP_CAPS = (2.0, 10.0)  # of contexts, which have fewer rows
FEWEST_IN_GROUP = 200  # units
_LOG_MANY = 150.0  # log of a number of rankings that is not known
_NO_LARGE_WEIGHT = 1e-3  # of the units: no single weight then moves their mean by much


class CappedMean(NamedTuple):
    """The mean of min(w, c) over some rows, against 1."""

    cap: float
    mean: float
    z: float
    p_value: float  # of a mean as large, were it at most 1
    where: str = ""  # the context, if not all rows


def capped_means(bins: WeightBins, loggers: int, units: float, largest: int) -> list[CappedMean]:
    """The means over all rows at every cap that the units bear; `largest` is the number of rows of the largest unit."""
    capped = bins.capped_weights().reshape(loggers, -1, len(CAPS)).sum(axis=0)
    n = bins.n.reshape(loggers, -1, len(CAPS) + 1).sum(axis=(0, 2))
    rows = float(n.sum())
    mean = capped.sum(axis=0) / rows
    count = len(n) if units > len(n) else max(units, 2.0)
    spread = np.square(capped - n[:, None] * mean).sum(axis=0) * count / (count - 1.0)
    error = np.sqrt(spread) / rows
    # units of the largest one's size: as many as these rows are worth at the least
    worth = min(units, rows / max(largest, 1))
    # the two smallest caps always; more while enough units are worth each of them
    able = (CAPS >= SMALLEST_CAP) & ((CAPS < 4.0) | (worth * np.minimum(mean, 1.0) / CAPS > FEWEST_AT_CAP))
    return [
        CappedMean(float(CAPS[k]), float(mean[k]), *_above_one(mean[k], error[k], float(CAPS[k]), worth))
        for k in np.flatnonzero(able)
    ]


def _above_one(mean: float, error: float, cap: float, units: float) -> tuple[float, float]:
    """z = (mean − 1)/error and its upper p-value: normal, or where the units are few for the cap by the bound of Maurer
    and Pontil (2009) solved for the level, √(2 ln(2/δ))·error + 7·c·ln(2/δ)/(3·(units − 1))."""
    excess, error = mean - 1.0, _with_a_unit_more(error, mean, units)
    z = excess / error if error > 0.0 else 0.0
    if excess <= 0.0:
        return float(z), 1.0
    if units * min(mean, 1.0) / cap > FEWEST_AT_CAP:
        return float(z), float(ndtr(-z))
    first, second = np.sqrt(2.0) * error, 7.0 * cap / (3.0 * max(units - 1.0, 1.0))
    root = (np.sqrt(first**2 + 4.0 * second * excess) - first) / (2.0 * second)
    return float(z), float(min(1.0, 2.0 * np.exp(-(root**2))))


def _with_a_unit_more(error: float, mean: float, units: float) -> float:
    """The error of a mean, at least what one unit more or less would change: equal weights have only a rounding."""
    return max(error, mean / units)


def means_of_rows(log_w: Floats) -> tuple[list[CappedMean], CappedMean | None]:
    """The means over sampled rows, each independent of the others, at every cap that they bear; and that of w itself,
    where no weight is large."""
    rows = np.arange(len(log_w))
    means = [_sampled_mean(log_w, rows, cap) for cap in CAPS[CAPS >= SMALLEST_CAP].tolist() if cap < len(rows)]
    able = [m for m in means if m.cap < 4.0 or len(rows) * min(m.mean, 1.0) / m.cap > FEWEST_AT_CAP]
    w = np.exp(np.minimum(log_w, 700.0))
    return able, mean_below_one(w, np.ones(len(w)), float(len(w)), float(w.max()))


def _sampled_mean(log_w: Floats, starts: npt.NDArray[np.int64], cap: float, where: str = "") -> CappedMean:
    w = np.exp(np.minimum(log_w, np.log(cap)))
    mean = float(w.mean())
    error = float(np.sqrt(np.square(np.add.reduceat(w - mean, starts)).sum())) / len(w)
    return CappedMean(cap, mean, *_above_one(mean, error, cap, len(starts)), where)


def group_means(features: list[Feature], log_w: Floats, unit: Hashes) -> list[CappedMean]:
    """The means over the sampled rows of each context: values of texts, halves of numbers. Rows are sorted by unit."""
    means = []
    for feature in features:
        for name, inside in _groups(feature):
            starts = first_of_units(unit[inside])
            if len(starts) < FEWEST_IN_GROUP:
                continue
            caps = [cap for cap in GROUP_CAPS if len(starts) / cap > FEWEST_AT_CAP]
            means += [_sampled_mean(log_w[inside], starts, cap, name) for cap in caps]
    return means


def _groups(feature: Feature) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """The rows with a value, of an indicator; both halves, of a number."""
    values = feature.values
    if np.isin(values, (0.0, 1.0)).all():
        return [(feature.name, values == 1.0)]
    middle = median(values)
    return [(f"{feature.name} ≤ {middle:.4g}", values <= middle), (f"{feature.name} > {middle:.4g}", values > middle)]


def possible_weights(
    over_all: list[CappedMean], in_groups: list[CappedMean], mean_weight: CappedMean | None
) -> Finding:
    """The finding: the worst mean over all rows (Bonferroni over caps), the worst context (Benjamini-Hochberg), and the
    mean of w itself where no weight is large (its lower side only warns)."""
    worst = min(over_all, key=lambda m: m.p_value)
    p = min(1.0, worst.p_value * len(over_all))
    group_p, group = _benjamini_hochberg(in_groups)
    if group is not None and group_p < p and grade(group_p) != PASS:
        return _impossible(group, group_p)
    if grade(p) != PASS:
        return _impossible(worst, p)
    if mean_weight is not None and grade(mean_weight.p_value) != PASS:
        return _too_small(mean_weight)
    meaning = f"capped weights average {worst.mean:.3f} at cap {worst.cap:.3g}; right probabilities give at most 1"
    return Finding(NAME, PASS, p, worst.z, meaning, None)


def _benjamini_hochberg(means: list[CappedMean]) -> tuple[float, CappedMean | None]:
    """The smallest adjusted p-value, and the mean with the smallest p-value of all."""
    if not means:
        return 1.0, None
    ordered = sorted(means, key=lambda m: m.p_value)
    return min(1.0, *(m.p_value * len(means) / k for k, m in enumerate(ordered, start=1))), ordered[0]


def _impossible(mean: CappedMean, p: float) -> Finding:
    where = f" where {mean.where}" if mean.where else ""
    return Finding(
        NAME, grade(p), p, mean.z,
        f"capped weights average {mean.mean:.3f} at cap {mean.cap:.3g}{where}, and right probabilities cannot give more"
        f" than 1 (z = {mean.z:+.1f})",
        "The probabilities of the control or of the treatment are wrong. Likely mistakes: the two columns are swapped;"
        " a join is off by a row, or belongs to another display; the probability of one slot, or a marginal frequency,"
        " in place of the whole ranking's; a product of softmaxes in place of Plackett-Luce; logarithms of another base"
        " (log10 in place of ln); rows that were chosen by their reward.",
    )  # fmt: skip


def _too_small(mean: CappedMean) -> Finding:
    return Finding(
        NAME, WARN, mean.p_value, mean.z,
        f"no weight is large, and yet weights average {mean.mean:.3f}, not 1 (z = {mean.z:+.1f})",
        "Either the treatment shows rankings that the control never shows, which this log cannot price; or some rows"
        " were never randomised (a fixed rule, a fallback, users who could not be shown anything else), and belong"
        " filtered out; or the probabilities are wrong, as with logarithms of another base (log10 in place of ln), with"
        " the probability of one slot in place of the ranking's, or with a product of softmaxes in place of"
        " Plackett-Luce.",
    )  # fmt: skip


def impossible_rankings(log_p: Floats, log_rankings: Floats) -> Finding | None:
    """A finding where a ranking was shown that is too improbable ever to be shown; None where there is none.

    Of N rankings those less likely than δ/N have a probability below δ together: n·N·π is the p-value of the least
    likely ranking among n. Where N is not known it is taken to be e^150, beyond all but the longest rankings.
    """
    log_expected = np.log(len(log_p)) + log_p + np.where(np.isnan(log_rankings), _LOG_MANY, log_rankings)
    worst = int(np.argmin(log_expected))
    p = float(np.exp(min(0.0, log_expected[worst])))
    if grade(p) == PASS:
        return None
    count = int((log_expected < np.log(WARNS_BELOW)).sum())
    return Finding(
        NAME, grade(p), p, float(log_p[worst]),
        f"{count:,} of {len(log_p):,} sampled displays show a ranking whose probability under the control is"
        f" too small for it ever to be shown (down to e^{log_p[worst]:.0f})",
        "Zeros were probably floored (at e^-700, 1e-300 or the like), and the control is not the policy that showed"
        " these rows; or the probabilities are of other rankings. Log the probability under the policy that served.",
    )  # fmt: skip


def mean_below_one(w_by_bucket: Floats, n: Floats, units: float, largest_weight: float) -> CappedMean | None:
    """The mean of w with the p-value of its being as far below 1; None where a weight is large enough to move it."""
    rows = float(n.sum())
    if not largest_weight <= units * _NO_LARGE_WEIGHT:
        return None
    mean = float(w_by_bucket.sum()) / rows
    count = min(units, float(len(n)))
    error = float(np.sqrt(np.square(w_by_bucket - n * mean).sum() * count / (count - 1.0))) / rows
    error = _with_a_unit_more(error, mean, units)
    if error <= 0.0:
        return None
    z = (mean - 1.0) / error
    return CappedMean(np.inf, mean, z, float(min(1.0, 2.0 * ndtr(z))))

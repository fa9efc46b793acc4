"""Is what was shown as likely as the control says? The log-likelihood against its expectation, and among draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from foretest.diagnostics.audit.by_unit import two_sided, z_by_unit
from foretest.displays.batch import Floats
from foretest.results.audit import FAIL, Finding, tested
from foretest.special import kolmogorov

CALIBRATION, PIT = "log-likelihood", "rank among draws"
_ROUNDING = 1e-12  # of a log-probability


def kolmogorov_smirnov(u: Floats, information_ratio: float = 0.0) -> tuple[float, float]:
    """The largest distance of the distribution of u from the uniform one, and its p-value (Stephens 1970).

    Where the control was fitted, the distance over √(1 + I_audit/I_fit) has the p-value: the error of the fit adds to
    the covariance of u's distribution at most that many times itself, so that no larger distance is due to it.

    >>> kolmogorov_smirnov((np.arange(50) + 0.5) / 50)[1] > 0.99
    True
    """
    n = len(u)
    ordered = np.sort(u)
    distance = float(max((np.arange(1, n + 1) / n - ordered).max(), (ordered - np.arange(n) / n).max()))
    return distance, float(
        kolmogorov((np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n)) * distance / np.sqrt(1.0 + information_ratio))
    )


def calibration(
    log_p: Floats, expected: Floats, starts: npt.NDArray[np.int64], information_ratio: float = 0.0
) -> Finding:
    """mean(log π_p(a)) − mean(E_p log π_p) = 0, z by unit. It is the first to show a wrong temperature.

    A temperature that was fitted on other units has an error of its own: z² is divided by 1 + I_audit/I_fit.
    """
    impossible = ~np.isfinite(log_p) | ~np.isfinite(expected)
    if impossible.any():
        many = f"{int(impossible.sum()):,} of {len(log_p):,} sampled displays"
        return Finding(
            CALIBRATION, FAIL, None, float(impossible.mean()),
            f"on {many} the scores give probability 0 to what was shown, or to a ranking drawn from them",
            "Check that scores and ranking are of the same display; and, of a policy of your own, that sample and"
            " log_prob agree.",
        )  # fmt: skip
    apart = log_p - expected
    apart[np.abs(apart) <= _ROUNDING * (1.0 + np.abs(log_p))] = 0.0  # all rankings equally likely: no z from rounding
    z = float(z_by_unit(apart[:, None], starts)[0]) / np.sqrt(1.0 + information_ratio)
    mean, expected_mean = float(log_p.mean()), float(expected.mean())
    less = mean < expected_mean
    numbers = f"mean log-probability {mean:.4f}, expected {expected_mean:.4f} (z = {z:+.1f})"
    return tested(
        CALIBRATION, two_sided(z), z,
        f"what was shown is as likely as the control says: {numbers}",
        f"what was shown is {'less' if less else 'more'} likely than the control says: {numbers}",
        f"The temperature in [control] (or sigma, dispersion, epsilon) is perhaps too {'low' if less else 'high'}; or"
        " the scores are not those of the model that served, after every change made to them; or, in a policy of your"
        " own, sample and log_prob do not agree.",
    )  # fmt: skip


MOST_TIMES = 20.0  # what was given, that a right number may be


def with_likelier_number(finding: Finding, name: str, given: float, fitted: float) -> Finding:
    """A finding of wrong probabilities that says which temperature, sigma or epsilon would make them right, to the two
    digits that a fit to a sample, or to those of several days, has. Where these are the digits of the number given,
    something else is wrong, and nothing is said of it; where it is far larger, hardly anything follows the scores."""
    if f"{fitted:.2g}" in (f"{given:.2g}", f"{given:.3g}"):
        return finding
    if fitted > MOST_TIMES * given:
        looks = f"What was shown hardly follows these scores at any {name}: are they of this model and this display?"
        return replace(finding, remedy=f"{looks} {finding.remedy}")
    looks = (
        f'The log looks as if drawn at {name} {fitted:.2g}, not {given:.3g}: set {name} = "fit", or ask who changed it.'
    )
    return replace(finding, remedy=f"{looks} {finding.remedy}")


def ranks(u: Floats, information_ratio: float = 0.0) -> Finding:
    """Kolmogorov-Smirnov on the places among draws, one u per unit."""
    distance, p = kolmogorov_smirnov(u, information_ratio)
    lean = (u.mean() - 0.5) * np.sqrt(12.0 * len(u))
    if abs(lean) > 3.0:
        where = "among the likely ones" if lean > 0.0 else "among the unlikely ones"
    else:
        where = "in the middle" if u.std() < np.sqrt(1.0 / 12.0) else "at both ends"
    numbers = f"{len(u):,} displays, distance from uniform {distance:.4f}"
    return tested(
        PIT, p, distance,
        f"what was shown ranks among draws from the control as one more draw would ({numbers})",
        f"among rankings drawn from the control, those shown stand too often {where} ({numbers})",
        "The shown rankings were not drawn from [control] as it is described. Compare scores, temperature, slots and"
        " eligible items with what served, and look for rules that changed a ranking after it was drawn.",
    )  # fmt: skip

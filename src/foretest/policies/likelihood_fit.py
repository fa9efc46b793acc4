"""The number of a policy that makes what was shown most likely: the maximum of Σ m log π(a_i | x_i) in one dimension.

The number is moved on a scale without ends, the logarithm (of ε the logit), by τ. With u_i = ∂ log π(a_i)/∂τ the
maximum has Σ m u = 0; in 1/T a Plackett-Luce log-likelihood is concave, in ε that of epsilon-greedy, so that there is
one. Derivatives are central differences of `log_prob`: a few 1e-7 of their size off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.policies.base import Policy, ScorePolicy
from foretest.policies.epsilon_greedy import EpsilonGreedy
from foretest.policies.fitted_parameter import Parameter, parameter_of, with_number
from foretest.policies.own_candidates import OwnCandidates

CERTAIN = 0.999  # a display with a ranking of a higher probability
MOST_CERTAIN = 0.99  # share of displays that may be such
_STEP = 2e-3
_FIRST_DISPLAYS = 4096  # that the search starts on
_AT_ONCE = 8192
_WIDEST = np.log(1000.0)  # how far from the spread of scores a temperature is looked for
_MOST_STEPS = 50


class CannotFit(Exception):
    """Why a log does not show the number of its policy, in words."""


class _Limits(NamedTuple):
    """Where the search for τ starts, and between what it stays."""

    start: float
    lowest: float
    highest: float


class Curvature(NamedTuple):
    """How the log-likelihood of each display moves with τ: its slope u, and its second derivative."""

    slope: Floats
    second: Floats


class LikelihoodFit(NamedTuple):
    """The number with the greatest likelihood."""

    value: float
    slope: Floats  # u of each display at the maximum
    information: float  # −Σ m ∂²log π/∂τ²: the influence of a display on τ is m u/information


def fit_number(policy: Policy, displays: Displays, displays_per_row: Floats) -> LikelihoodFit:
    """The number of a policy from displays that it showed, each of which stands for so many."""
    parameter = parameter_of(policy)
    assert parameter is not None
    if isinstance(policy, OwnCandidates):
        displays = policy.own(displays).displays
        policy = policy.policy
    assert isinstance(policy, ScorePolicy)
    m = displays_per_row
    start = _start(policy, parameter, displays, m)
    tau, curvature = _maximum(policy, parameter, displays, m, start)
    value = float(parameter.from_scale(tau))
    _refuse_certain(with_number(policy, value), displays, m)
    return LikelihoodFit(value, curvature.slope, float(-(m @ curvature.second)))


def log_likelihoods(policy: Policy, parameter: Parameter, displays: Displays, tau: float) -> Floats:
    """log π of what was shown, at τ."""
    at_tau = with_number(policy, float(parameter.from_scale(tau)))
    return np.asarray(at_tau.log_prob(displays, displays.ranking), np.float64)


def _curvature(policy: Policy, parameter: Parameter, displays: Displays, tau: float) -> Curvature:
    low, mid, high = (log_likelihoods(policy, parameter, displays, tau + step) for step in (-_STEP, 0.0, _STEP))
    return Curvature((high - low) / (2.0 * _STEP), (high - 2.0 * mid + low) / _STEP**2)


def _start(policy: ScorePolicy, parameter: Parameter, displays: Displays, m: Floats) -> float:
    """τ at which some thousand displays are most likely: between two values of τ at which Σ m u has other signs."""
    from scipy.optimize import brentq

    some = np.arange(min(len(displays), _FIRST_DISPLAYS))
    part, weights = displays.take(some), m[some]

    def total_slope(tau: float) -> float:
        low, high = (log_likelihoods(policy, parameter, part, tau + step) for step in (-_STEP, _STEP))
        return float(weights @ (high - low))

    middle, lowest, highest = _limits(policy, parameter, displays)
    low = high = middle
    while total_slope(low) <= 0.0:
        low = max(low - 1.0, lowest)
        if low == lowest and total_slope(low) <= 0.0:
            _refuse_certain(with_number(policy, float(parameter.from_scale(low))), displays, m)
            raise CannotFit(_AT_AN_END.format(what="hardly varies"))
    while total_slope(high) >= 0.0:
        high = min(high + 1.0, highest)
        if high == highest and total_slope(high) >= 0.0:
            raise CannotFit(_AT_AN_END.format(what="does not follow the scores"))
    return float(brentq(total_slope, low, high, xtol=1e-3))


_AT_AN_END = "what was shown {what}, and the likelihood has no maximum. Check that the scores are those that served"
_NOT_EXPLORING = (
    "the log does not explore: more than 99 % of its displays have a ranking of probability above .999, and how likely"
    " others were cannot be told from it. Log a control that explores"
)
_ALIKE = "the scores of each display are alike, so that every number gives the same probabilities"


def _limits(policy: ScorePolicy, parameter: Parameter, displays: Displays) -> _Limits:
    """Where the search starts and ends: around the spread of scores in a display; ε from 1e-6 to .999."""
    spread = np.concatenate([_spreads(displays.take(rows)[policy.scores]) for rows in _pieces(len(displays))])
    spread = spread[spread > 0.0]
    if not len(spread):
        raise CannotFit(_ALIKE)
    if isinstance(policy, EpsilonGreedy):
        return _Limits(*(float(parameter.to_scale(value)) for value in (0.1, 1e-6, 0.999)))
    middle = float(np.log(np.median(spread) / 4.0))
    return _Limits(middle, middle - _WIDEST, middle + _WIDEST)


def _spreads(scores: Ragged) -> Floats:
    """The largest less the smallest score of each display."""
    highest, lowest = (scores.padded(fill).astype(np.float64) for fill in (-np.inf, np.inf))
    return np.asarray(highest.max(axis=1, initial=-np.inf) - lowest.min(axis=1, initial=np.inf))


def _maximum(
    policy: Policy, parameter: Parameter, displays: Displays, m: Floats, start: float
) -> tuple[float, Curvature]:
    """τ of the greatest likelihood of all displays, by Newton's method from that of some."""
    tau = start
    for _ in range(_MOST_STEPS):
        curvature = _curvature(policy, parameter, displays, tau)
        information = -float(m @ curvature.second)
        if information <= 0.0:
            break
        step = float(np.clip(float(m @ curvature.slope) / information, -1.0, 1.0))
        if abs(step) < 1e-9:
            return tau, curvature
        tau += step
    raise CannotFit("the likelihood has no maximum that could be found")


def _refuse_certain(policy: ScorePolicy | Policy, displays: Displays, m: Floats) -> None:
    """Refuse displays of which nearly all have one ranking that is nearly certain."""
    assert isinstance(policy, ScorePolicy)
    certain = 0.0
    for rows in _pieces(len(displays)):
        part = displays.take(rows)
        likely = np.asarray(policy.log_prob(part, _best_rankings(part[policy.scores], part.slots)))
        certain += float(m[rows] @ (likely > np.log(CERTAIN)))
    if certain > MOST_CERTAIN * float(m.sum()):
        raise CannotFit(_NOT_EXPLORING)


def _best_rankings(scores: Ragged, slots: npt.NDArray[np.int64]) -> Ragged:
    """The items of each display by score, best first, as many as it shows; ties: the lower position first."""
    order = np.argsort(-scores.padded(-np.inf).astype(np.float64), axis=1, kind="stable")
    most = int(slots.max(initial=0))
    return Ragged.packed(order[:, :most][np.arange(most) < slots[:, None]].astype(np.int32), slots)


def _pieces(count: int) -> list[npt.NDArray[np.int64]]:
    """The numbers of displays in pieces, whose padded lists fit in memory."""
    return np.array_split(np.arange(count), max(1, -(-count // _AT_ONCE)))

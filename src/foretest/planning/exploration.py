"""What a little exploration would buy: the weights, if the control had shown a random ranking in a share ε of displays.

The mixed control is π_ε = (1 − ε) π_p + ε/|A(x)|, |A| = M!/(M − K)! the number of rankings: with probability ε a
display shows K items at random, of those that the control may show. Its weights w_ε = π_t/π_ε are at most w/(1 − ε),
and at most π_t·|A|/ε ≤ |A|/ε where the treatment has no items of its own.
Nothing has to be drawn again: over rankings a drawn from π_t and from π_p, half each, with m = (π_t + π_p)/2,

    Σ_a f(a) = E_m[f(a)/m(a)],    so that α = π_t/m and β = π_ε/m are to π_ε what 2W/(1+W) and 2/(1+W) are to π_p,

and q_c(x) = Σ_a min(π_t, c π_ε), E_{π_ε}[w̃²|x] and the adaptive cap follow as for the control itself. Rankings that
neither policy draws have no part in either sum: the treatment has next to nothing there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.kernels.enumeration import masses_of_rankings
from foretest.policies import Policy
from foretest.policies.own_candidates import items_of
from foretest.special import gammaln
from foretest.weights.policy_pair import FROM_CONTROL, FROM_TREATMENT, PolicyPair
from foretest.weights.weightings import Adaptive, Capped, Pointwise, Weighting

Mask = npt.NDArray[np.bool_]

DRAWS = 64  # rankings per display, half from each policy


def ranking_draws(displays: Displays, pair: PolicyPair, control: Policy) -> dict[str, Floats]:
    """log π_t and log π_p of rankings drawn from both policies, the treatment's first, and log |A|, by display;
    `control` is the policy that names the items to explore."""
    pairs = [
        _log_probabilities(displays, pair, policy, stream, control)
        for policy, stream in ((pair.treatment, FROM_TREATMENT), (pair.control, FROM_CONTROL))
    ]
    log_t, log_p, showable = (np.hstack(side) for side in zip(*pairs, strict=True))
    m, k = items_of(control, displays), displays.slots
    log_rankings = gammaln(m + 1.0) - gammaln(m - k + 1.0)
    return {"log_t": log_t, "log_p": log_p, "showable": showable, "log_rankings": log_rankings}


def _log_probabilities(
    displays: Displays, pair: PolicyPair, policy: Any, stream: int, control: Policy
) -> tuple[Floats, Floats, Mask]:
    """log π_t and log π_p of rankings drawn from a policy, and whether the control has all of their items: one row per
    display."""
    count = DRAWS // 2
    part = displays.take(np.repeat(np.arange(len(displays)), count))
    rankings = policy.sample(part, pair.uniforms(displays, stream, 0, count))
    log_t, log_p = (p.log_prob(part, rankings) for p in (pair.treatment, pair.control))
    last = rankings.padded(-1).max(axis=1, initial=-1)  # items that the control has come first
    showable = last < items_of(control, part)
    return log_t.reshape(-1, count), log_p.reshape(-1, count), showable.reshape(-1, count)


class Moments(NamedTuple):
    """The weights of displays under a control; arrays have one entry per display."""

    second: Floats  # E[h²|x] of an estimator's weight h, normalised
    mass_kept: Floats  # q(x), the part of the treatment that the cap leaves
    largest: float  # the largest weight among the treatment's rankings drawn
    bound: float  # no weight can be larger: |A|/ε, infinite where the treatment has items that the control has not


def moments(columns: dict[str, Any], weighting: Weighting, epsilon: float) -> Moments:
    """The weights under the control mixed with a share ε of uniform rankings, from rankings drawn of
    both policies; ε = 0 is the control as it is."""
    log_t, log_p, log_rankings = columns["log_t"], columns["log_p"], columns["log_rankings"][:, None]
    with np.errstate(divide="ignore"):
        log_uniform = np.where(columns["showable"], -log_rankings, -np.inf)
        log_mixed = np.logaddexp(np.log1p(-epsilon) + log_p, np.log(epsilon) + log_uniform)
    log_m = np.logaddexp(log_t, log_p) - np.log(2.0)
    draws = log_t.shape[1]
    alpha, beta = (np.exp(log - log_m) / draws for log in (log_t, log_mixed))
    drawn = (log_t - log_mixed)[:, : draws // 2]  # the treatment's own
    cap = weighting.cap if isinstance(weighting, Capped | Pointwise) else 1e300
    zero = getattr(weighting, "capping", "max") == "zero"
    bound = weighting.bound if isinstance(weighting, Adaptive) else np.nan
    starts = np.arange(len(alpha)) * draws
    adaptive, q, squares, _ = masses_of_rankings(
        alpha.ravel(), beta.ravel(), starts, np.full(len(alpha), draws), cap, zero, bound
    )
    caps = np.full(len(alpha), cap) if np.isnan(bound) else adaptive  # 0 where there is no adaptive one
    log_caps = np.log(np.maximum(caps, 1e-300))[:, None]
    left = drawn < log_caps if zero else np.exp(np.minimum(0.0, log_caps - drawn))
    supported = np.where(caps > 0.0, left.mean(axis=1), 0.0)
    # a display without support has h = 1; estimators that are not pointwise divide by one mean for all
    mass = q if weighting.pointwise else np.full(len(q), q.mean())
    # of a mass below 1e-162 there is no square
    second = np.maximum(1.0, np.divide(squares, mass**2, out=np.ones(len(q)), where=mass**2 > 0.0))
    with np.errstate(over="ignore"):
        bounded = epsilon > 0.0 and bool(columns["showable"].all())
        bound = float(np.exp(log_rankings.max())) / epsilon if bounded else np.inf
        return Moments(second, supported, float(np.exp(drawn.max())), bound)

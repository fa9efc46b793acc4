"""Is a user's own policy a distribution? Its probabilities sum to 1 over all rankings, and its draws have them."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.own_policies import (
    DOUBT,
    MOST_RANKINGS,
    OF_POLICY,
    OF_PROPOSAL,
    ROLES,
    SURPRISE,
    TOTAL,
    VARIANCE,
)
from foretest.results.audit import FAIL, PASS, Finding, not_made

NAME = "own policy"
TOLERANCE = 1e-3  # of a sum of probabilities: weights are wrong by as much
LARGEST_Z = 6.0  # of the draws: a right policy has it once in 500 million logs
LEAST_OVERLAP = 0.02  # of the draws with the proposal: below, both means are near 0 whatever the policy is
DETECTABLE = 0.5  # a sum this far from 1 must be seen, or nothing is said
_REMEDY = "Correct the policy's log_prob or sample; foretest.testing.check_policy(policy) shows more, without a log."


def own_policy(sample: Columns) -> Finding | None:
    """The finding over both roles: the first that fails, else that all is well; None where neither is a user's own."""
    findings = [_of_role(sample, role) for role in ROLES if (TOTAL, role) in sample]
    if not findings:
        return None
    return next(
        (f for f in findings if f.outcome == FAIL), next((f for f in findings if f.outcome == PASS), findings[0])
    )


def _of_role(sample: Columns, role: str) -> Finding:
    totals, variance = (np.asarray(sample[name, role]) for name in (TOTAL, VARIANCE))
    enumerated = ~np.isnan(variance) | ~np.isnan(totals)
    looked_at = int(enumerated.sum())
    if not looked_at:
        return _by_draws(sample, role)
    wrong = totals[enumerated & ~(np.abs(totals - 1.0) <= TOLERANCE)]
    if len(wrong):
        worst = float(wrong[np.argmax(np.nan_to_num(np.abs(wrong - 1.0), nan=np.inf))])
        return _fail(
            f"the {role}'s probabilities of all rankings of a display sum to {worst:.4g}, not 1 (wrong in {len(wrong)}"
            f" of {looked_at} displays)",
            worst,
        )
    gap = float(np.asarray(sample[SURPRISE, role])[enumerated].sum())
    if gap == -np.inf:
        return _fail(f"the {role}'s sample draws rankings to which its log_prob gives probability 0")
    spread = float(np.sqrt(variance[enumerated].sum()))
    z = gap / spread if spread > 0.0 else 0.0 if abs(gap) < 1e-6 else np.copysign(np.inf, gap)
    if abs(z) > LARGEST_Z:
        return _fail(
            f"the {role}'s draws do not have its probabilities: they are {'more' if z > 0 else 'less'} probable than"
            f" its log_prob says (z = {z:+.1f}, {looked_at} displays)",
            z,
        )
    meaning = f"the {role}'s probabilities sum to 1 over all rankings of {looked_at} displays, and its draws have them"
    return Finding(NAME, PASS, None, None, meaning, None)


def _by_draws(sample: Columns, role: str) -> Finding:
    """Where no display has few enough rankings: both means of the bridge over all displays."""
    columns = (np.asarray(sample[name, role]) for name in (OF_PROPOSAL, OF_POLICY, DOUBT))
    proposal, policy, doubt = (column[~np.isnan(column)] for column in columns)
    displays = len(doubt)
    if not displays:
        return not_made(NAME, "no sampled display has a known number of items and a number for each of its rankings")
    up, down, error = float(proposal.mean()), float(policy.mean()), float(np.sqrt(doubt.sum())) / displays
    z = (up - down) / error if error > 0.0 else 0.0 if up == down else np.inf
    total = f"{up / down:.2g}" if down > 0.0 else "far more than 1"
    if abs(z) > LARGEST_Z:
        return _fail(
            f"the {role}'s probabilities of all rankings of a display sum to about {total}, not 1, or its draws do not"
            f" have them (estimated from draws of {displays} displays, z = {z:+.1f})",
            z,
        )
    if down < LEAST_OVERLAP or LARGEST_Z * error > DETECTABLE * down:
        return not_made(
            NAME, f"its displays have more than {MOST_RANKINGS:,} rankings, and draws show too little of them"
        )
    meaning = f"the {role}'s probabilities sum to about {total} over all rankings, by draws of {displays} displays"
    return Finding(NAME, PASS, None, float(z), meaning, None)


def _fail(meaning: str, statistic: float | None = None) -> Finding:
    exists = statistic is not None and np.isfinite(statistic)
    return Finding(NAME, FAIL, None, statistic if exists else None, meaning, _REMEDY)

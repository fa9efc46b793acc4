"""The examination curve from the control's own exploration.

With F_kl of `engines/examination_pairs.py`, A = F_kl and B = F_lk for slots k < l: E B/E A = θ_l/θ_k whatever items are
worth. log θ, with θ_1 = 1, is fitted to log(B/A) over all pairs by least squares, weights 1/(Σa²/A² + Σb²/B²), a and
b the terms of A and B. Its influence by cell is that of log(B/A), b_cell/B − a_cell/A, through the same matrix.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from foretest.aggregation.examination import FittedCurve, SlotPair
from foretest.displays.batch import Floats
from foretest.engines.examination_pairs import Pairs
from foretest.formatting import some_of

FEWEST_REWARDS = 30.0  # effective, of each of two slots, for the pair to connect them


class CannotFit(Exception):
    """Why a log does not show its examination curve, in words."""


def fit_curve(pairs: Pairs, loggers: int = 1) -> FittedCurve:
    """θ of a metric with its standard errors; CannotFit where its slots are not connected by enough rewards."""
    slots = len(pairs.squares)
    if slots <= 1:
        return FittedCurve((1.0,), (0.0,), (), np.zeros((len(pairs.sums), 1)))
    total = pairs.sums.sum(axis=0)
    known = [(k, j) for k in range(slots) for j in range(k + 1, slots) if total[k, j] > 0.0 and total[j, k] > 0.0]
    effective = {pair: _effective(total, pairs.squares, *pair) for pair in known}
    apart = _not_connected(slots, (pair for pair, count in effective.items() if count >= FEWEST_REWARDS))
    if apart:
        raise CannotFit(_sentence(apart, slots))
    design = np.zeros((len(known), slots - 1))
    log_ratio, weight = np.empty(len(known)), np.empty(len(known))
    by_cell = np.empty((len(pairs.sums), len(known)))
    for at, (k, j) in enumerate(known):
        a, b = total[k, j], total[j, k]
        design[at, j - 1] = 1.0
        if k > 0:
            design[at, k - 1] = -1.0
        log_ratio[at] = np.log(b / a)
        weight[at] = 1.0 / (pairs.squares[k, j] / a**2 + pairs.squares[j, k] / b**2)
        by_cell[:, at] = pairs.sums[:, j, k] / b - pairs.sums[:, k, j] / a
    solve = np.linalg.solve(design.T @ (weight[:, None] * design), design.T * weight)
    log_theta = np.concatenate([[0.0], solve @ log_ratio])
    influence = np.column_stack([np.zeros(len(by_cell)), by_cell @ solve.T])
    theta = np.exp(log_theta)
    return FittedCurve(
        tuple(map(float, theta)),
        tuple(map(float, theta * _errors(influence, loggers))),
        tuple(SlotPair(k, j, float(total[j, k] / total[k, j]), effective[k, j]) for k, j in known),
        influence,
    )


def _effective(total: Floats, squares: Floats, k: int, j: int) -> float:
    """Effective rewards of a pair: those of the slot that has fewer, (Σa)²/Σa²."""
    return float(min(total[k, j] ** 2 / squares[k, j], total[j, k] ** 2 / squares[j, k]))


def _not_connected(slots: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The slots that no chain of pairs connects with the first."""
    reached, pairs = {0}, list(pairs)
    while True:
        more = {j for k, j in pairs if k in reached} | {k for k, j in pairs if j in reached}
        if more <= reached:
            return [slot for slot in range(slots) if slot not in reached]
        reached |= more


def _errors(influence: Floats, loggers: int) -> Floats:
    """Standard errors of log θ, by bucket of units."""
    by_bucket = influence.reshape(loggers, -1, influence.shape[1]).sum(axis=0)
    count = int((by_bucket != 0.0).any(axis=1).sum())
    if count < 2:
        return np.full(influence.shape[1], np.nan)
    return np.asarray(np.sqrt(count / (count - 1.0) * np.square(by_bucket).sum(axis=0)))


def _sentence(apart: list[int], slots: int) -> str:
    named = some_of([str(slot + 1) for slot in apart])
    which = f"slot{'s' if len(apart) > 1 else ''} {named} of {slots}"
    return (
        f"the log does not show how likely users look at {which}: a slot is compared with another by the rewards of"
        f" items that the control shows now in one, now in the other, and there are fewer than {FEWEST_REWARDS:.0f}"
        " effective ones. Give the curve, as in [analysis] examination = [1.0, 0.6, 0.4], or let the control explore"
    )

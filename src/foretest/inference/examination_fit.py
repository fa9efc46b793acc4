"""The examination curve from the control's own exploration.

With F_kl of `engines/examination_pairs.py`, A = F_kl and B = F_lk for slots k < l: E B/E A = θ_l/θ_k whatever items are
worth. log θ, with θ_1 = 1, is fitted to log(B/A) over all pairs by least squares, weights 1/(Σa²/A² + Σb²/B²), a and
b the terms of A and B. Its influence by cell is that of log(B/A), b_cell/B − a_cell/A, through the same matrix.

The same sums test the model. *Trust*: items of high and of low score have one curve. *Chain*: θ_3/θ_1 is the product of
θ_2/θ_1 and θ_3/θ_2, and so on down the slots. Both are χ² of differences of log ratios, by unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from foretest.aggregation.examination import CurveTest, FittedCurve, SlotPair
from foretest.displays.batch import Floats
from foretest.engines.examination_pairs import HalfPairs, Pairs
from foretest.formatting import some_of
from foretest.special import chdtrc

FEWEST_REWARDS = 30.0  # effective, of each of two slots, for the pair to connect them
TRUST, CHAIN = "trust", "chain"


class CannotFit(Exception):
    """Why a log does not show its examination curve, in words."""


class LogRatios(NamedTuple):
    """log θ_l/θ_k of the pairs of slots that both have rewards, with the influence of every bucket of units."""

    pairs: list[tuple[int, int]]
    value: Floats
    influence: Floats  # by cell and pair
    effective: Floats  # rewards of the slot that has fewer, (Σa)²/Σa²
    weight: Floats  # 1/(Σa²/A² + Σb²/B²)

    @classmethod
    def of(cls, sums: HalfPairs) -> LogRatios:
        total, squares = sums.sums.sum(axis=0), sums.squares
        slots = len(squares)
        pairs = [(k, j) for k in range(slots) for j in range(k + 1, slots) if total[k, j] > 0.0 and total[j, k] > 0.0]
        first, second = np.array(pairs, np.int64).reshape(-1, 2).T
        a, b = total[first, second], total[second, first]
        a_share, b_share = squares[first, second] / a**2, squares[second, first] / b**2
        influence = sums.sums[:, second, first] / b - sums.sums[:, first, second] / a
        return cls(pairs, np.log(b / a), influence, 1.0 / np.maximum(a_share, b_share), 1.0 / (a_share + b_share))


def fit_curve(pairs: Pairs, loggers: int = 1) -> FittedCurve:
    """θ of a metric with its standard errors; CannotFit where its slots are not connected by enough rewards."""
    slots = pairs.slots
    if slots <= 1 or not pairs.squares.any():  # one slot, or no reward: any curve weighs alike
        size = max(1, slots)
        return FittedCurve((1.0,) * size, (0.0,) * size, (), np.zeros((pairs.sums.shape[1], size)))
    ratios = LogRatios.of(pairs.together)
    apart = _not_connected(slots, _strong(ratios))
    if apart:
        raise CannotFit(_sentence(apart, slots))
    solve = _least_squares(ratios, slots)
    theta = np.exp(np.concatenate([[0.0], solve @ ratios.value]))
    influence = np.column_stack([np.zeros(len(ratios.influence)), ratios.influence @ solve.T])
    tests = (_trust(pairs, loggers), _chain(ratios, slots, loggers))
    return FittedCurve(
        tuple(map(float, theta)),
        tuple(map(float, theta * np.sqrt(np.diag(_covariance(influence, loggers))))),
        tuple(
            SlotPair(k, j, float(np.exp(value)), float(count))
            for (k, j), value, count in zip(ratios.pairs, ratios.value, ratios.effective, strict=True)
        ),
        influence,
        tuple(test for test in tests if test is not None),
    )


def _least_squares(ratios: LogRatios, slots: int) -> Floats:
    """The matrix that takes log ratios of pairs to log θ of the slots after the first."""
    design = np.zeros((len(ratios.pairs), slots))
    for at, (k, j) in enumerate(ratios.pairs):
        design[at, [k, j]] = -1.0, 1.0
    design = design[:, 1:]
    return np.asarray(np.linalg.solve(design.T @ (ratios.weight[:, None] * design), design.T * ratios.weight))


def _covariance(influence: Floats, loggers: int) -> Floats:
    """The covariance of statistics from their influence by cell, by bucket of units."""
    by_bucket = influence.reshape(loggers, -1, influence.shape[1]).sum(axis=0)
    count = int((by_bucket != 0.0).any(axis=1).sum())
    factor = count / (count - 1.0) if count > 1 else np.nan
    return np.asarray(factor * by_bucket.T @ by_bucket)


def _trust(pairs: Pairs, loggers: int) -> CurveTest | None:
    """Have items of low and of high score one curve? None where either half says nothing about some slot."""
    slots = pairs.slots
    both = [LogRatios.of(half) for half in pairs.halves]
    if any(_not_connected(slots, _strong(ratios)) for ratios in both):
        return None
    low, high = ((r, _least_squares(r, slots)) for r in both)
    difference = low[1] @ low[0].value - high[1] @ high[0].value
    influence = low[0].influence @ low[1].T - high[0].influence @ high[1].T
    return _chi_square(TRUST, difference, influence, loggers, min(float(r.effective.min()) for r in both))


def _chain(ratios: LogRatios, slots: int, loggers: int) -> CurveTest | None:
    """Is θ_{k+2}/θ_k the product over the slots between? None below three slots, or where rewards are few."""
    place = {pair: at for at, pair in enumerate(ratios.pairs)}
    strong, contrasts = set(_strong(ratios)), []
    for k in range(slots - 2):
        steps = ((k, k + 2), (k, k + 1), (k + 1, k + 2))
        if strong.issuperset(steps):
            contrast = np.zeros(len(ratios.pairs))
            contrast[[place[step] for step in steps]] = 1.0, -1.0, -1.0
            contrasts.append(contrast)
    if not contrasts:
        return None
    matrix = np.array(contrasts)
    fewest = min(float(ratios.effective[place[pair]]) for pair in strong)
    return _chi_square(CHAIN, matrix @ ratios.value, ratios.influence @ matrix.T, loggers, fewest)


def _chi_square(name: str, value: Floats, influence: Floats, loggers: int, rewards: float) -> CurveTest | None:
    covariance = _covariance(influence, loggers)
    if not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance) < len(value):
        return None
    statistic = float(value @ np.linalg.solve(covariance, value))
    return CurveTest(name, statistic, len(value), float(chdtrc(len(value), statistic)), rewards)


def _strong(ratios: LogRatios) -> list[tuple[int, int]]:
    """The pairs with enough rewards on both sides."""
    return [pair for pair, count in zip(ratios.pairs, ratios.effective, strict=True) if count >= FEWEST_REWARDS]


def _not_connected(slots: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The slots that no chain of pairs connects with the first."""
    reached, pairs = {0}, list(pairs)
    while True:
        more = {j for k, j in pairs if k in reached} | {k for k, j in pairs if j in reached}
        if more <= reached:
            return [slot for slot in range(slots) if slot not in reached]
        reached |= more


def _sentence(apart: list[int], slots: int) -> str:
    named = some_of([str(slot + 1) for slot in apart])
    which = f"slot{'s' if len(apart) > 1 else ''} {named} of {slots}"
    return (
        f"the log does not show how likely users look at {which}: a slot is compared with another by the rewards of"
        f" items that the control shows now in one, now in the other, and there are fewer than {FEWEST_REWARDS:.0f}"
        " effective ones. Give the curve, as in [analysis] examination = [1.0, 0.6, 0.4], or let the control explore"
    )

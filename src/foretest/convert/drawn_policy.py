"""How production draws, where a log has both its scores and its probabilities: the policy that gives these numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.optimize import minimize_scalar

from foretest.convert.column_guesses import Column
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.policies import EpsilonGreedy, Mallows, PlackettLuce, Policy, SwapNeighbours, TopK
from foretest.special import expit

ROWS = 200  # that are looked at
_SAME = 1e-6  # of a log-probability, relative to 1 + its size
_GRID = np.linspace(-10.0, 10.0, 101)
_SCORES = "scores"


class _Family(NamedTuple):
    """Policies that differ in one number, which is looked for on a scale without ends."""

    policy: str
    number: str
    from_scale: Callable[[Any], Any]
    make: Callable[[float], Policy]


_FAMILIES = (
    _Family("plackett-luce", "temperature", np.exp, lambda value: PlackettLuce(_SCORES, value)),
    _Family("epsilon-greedy", "epsilon", expit, lambda value: EpsilonGreedy(_SCORES, value)),
    _Family("mallows", "dispersion", expit, lambda value: Mallows(_SCORES, value)),
    _Family("swap-neighbours", "swap", lambda place: expit(place) / 2.0, lambda value: SwapNeighbours(_SCORES, value)),
)


def drawn_policy(scores: Column, shown: Column, items: Column | None, logged: Column) -> dict[str, Any] | None:
    """The policy, and its number, by which what was shown has its logged probability; None where none has.

    `items` are the ids of the candidates; without them, what was shown are positions among the scores.
    """
    rows = slice(0, ROWS)
    lists = (scores, shown, *([] if items is None else [items]))
    if any(column.values[rows].null_count for column in (*lists, logged)):
        return None
    log_prob = logged.flat[rows] if logged.is_logarithm else np.log(np.maximum(logged.flat[rows], 1e-300))
    places = _places(shown.values[rows], None if items is None else items.values[rows])
    own = Ragged.of([np.asarray(one, np.float64) for one in scores.values[rows].to_pylist()])
    if places is None or not _are_places(places, own):
        return None
    ranking = Ragged.of([np.array(of_row, np.int32) for of_row in places])
    displays = Displays({_SCORES: own}, ranking, own.lengths, np.arange(len(own), dtype=np.uint64))
    if not log_prob.any():
        return {"policy": "top-k"} if not TopK(_SCORES).log_prob(displays, ranking).any() else None
    if all(len(set(own[row].tolist())) < 2 for row in range(len(own))):  # any number gives what was logged
        return None
    for family in _FAMILIES:
        value = _number(family, displays, log_prob)
        if value is not None:
            return {"policy": family.policy, family.number: value}
    return None


def _places(shown: pa.Array, items: pa.Array | None) -> list[list[Any]] | None:
    """The positions of what was shown, in each row; None where something is not among the candidates."""
    rankings = [one if isinstance(one, list) else [one] for one in shown.to_pylist()]
    if items is None:
        return rankings
    try:
        return [[ids.index(one) for one in of_row] for of_row, ids in zip(rankings, items.to_pylist(), strict=True)]
    except ValueError:
        return None


def _are_places(places: list[list[Any]], scores: Ragged) -> bool:
    """Are these positions among the scores of their rows?"""
    return all(
        isinstance(place, int) and 0 <= place < m
        for of_row, m in zip(places, scores.lengths, strict=True)
        for place in of_row
    )


def _number(family: _Family, displays: Displays, logged: Floats) -> float | None:
    """The number of a family that gives the logged log-probabilities, if one does: as short as it can be written."""

    def errors(value: float) -> Floats:
        try:
            policy = family.make(value)
        except BadInput:  # rounded to an end of the scale
            return np.full(len(logged), np.inf)
        with np.errstate(all="ignore"):
            given = policy.log_prob(displays, displays.ranking)
            return np.asarray(np.abs(given - logged) / (1.0 + np.abs(logged)))

    def loss(place: float) -> float:
        total = float(np.square(errors(float(family.from_scale(place)))).sum())
        return total if np.isfinite(total) else 1e300

    near = _GRID[np.argmin([loss(place) for place in _GRID])]
    step = _GRID[1] - _GRID[0]
    best = minimize_scalar(loss, bounds=(near - step, near + step), method="bounded", options={"xatol": 1e-12})
    value = float(family.from_scale(best.x))
    for short in (*(float(f"{value:.{digits}g}") for digits in (1, 2, 3, 4, 6)), value):
        if (errors(short) <= _SAME).all():
            return short
    return None

"""Controls that explore: the control as it is, a share of random rankings, neighbours swapped, Plackett-Luce and
epsilon-greedy on the control's own scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.policies import EpsilonGreedy, Mixture, PlackettLuce, Policy, Probabilities, SwapNeighbours
from foretest.policies.own_candidates import OwnCandidates, candidates_of, without_list

UNIFORM = "uniform"
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
SWAPS = (0.05, 0.1, 0.25, 0.5)
EPSILONS = (0.01, 0.05, 0.1, 0.2)
TEMPERATURES = (0.5, 1.0, 2.0, 4.0)  # times the present one
_ROUNDING = 1e-9  # of the largest score: a smaller gap is none
GAPS = (0.25, 0.5, 1.0, 2.0)  # temperatures of a control that has none, times the usual gap of neighbouring scores
#: how far each way is searched, from little to much exploration
SEARCHED_SHARES = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9)  # of random rankings
SEARCHED_EPSILONS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
SEARCHED_SWAPS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)  # beyond a half it is less exploration again
SEARCHED_TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # times the present one, or the usual gap


class Exploration(NamedTuple):
    """A control that explores."""

    kind: str  # the name of its policy, or `uniform`
    policy: Policy | None  # None where nothing in the log could make it
    settings: dict[str, Any] | None  # the [control] table that makes it
    epsilon: float | None = None  # the share of random rankings, where that is what it does


class Way(NamedTuple):
    """A way to explore with one number to choose: more of it is more exploration."""

    kind: str
    parameter: str  # what the number is called
    values: tuple[float, ...]  # from little to much
    at: Callable[[float], Exploration]


def explorations(plan: FoldPlan, displays: Displays) -> list[Exploration]:
    """What the control could do: first as it is, then by kind."""
    scores = _scores_of(plan.settings.control)
    rows = [mixed(plan, share) for share in SHARES]
    if scores is None:
        return rows
    policies: list[Policy] = [SwapNeighbours(scores, swap) for swap in SWAPS]
    policies += [PlackettLuce(scores, t) for t in _temperatures(plan.settings.control, scores, displays)]
    policies += [EpsilonGreedy(scores, epsilon) for epsilon in EPSILONS]
    present = _unlogged(plan.settings.control)
    others = [_in_place_of(plan, policy) for policy in policies]
    return [*rows, *(row for row in others if row.settings != present)]


def as_it_is(plan: FoldPlan) -> Exploration:
    """The control without any further exploration."""
    return mixed(plan, 0.0)


def ways_to_explore(plan: FoldPlan, displays: Displays) -> list[Way]:
    """The ways that the control has; none where nothing in the log could make them."""
    control = plan.settings.control
    if mixed(plan, SEARCHED_SHARES[0]).policy is None:
        return []
    ways = [Way(UNIFORM, "share", SEARCHED_SHARES, lambda share: mixed(plan, share))]
    scores = _scores_of(control)
    if scores is None:
        return ways
    unit = _temperature_unit(control, scores, displays)
    temperatures = () if unit is None else tuple(float(f"{factor * unit:.3g}") for factor in SEARCHED_TEMPERATURES)
    return [
        *ways,
        Way("swap-neighbours", "swap", SEARCHED_SWAPS, lambda p: _in_place_of(plan, SwapNeighbours(scores, p))),
        Way("plackett-luce", "temperature", temperatures, lambda t: _in_place_of(plan, PlackettLuce(scores, t))),
        Way("epsilon-greedy", "epsilon", SEARCHED_EPSILONS, lambda e: _in_place_of(plan, EpsilonGreedy(scores, e))),
    ]


def _in_place_of(plan: FoldPlan, policy: Policy) -> Exploration:
    """A policy on the control's scores, over its items."""
    over = _of_its_items(policy, plan.settings.control)
    return Exploration(policy.key, over, over.settings())


def mixed(plan: FoldPlan, share: float) -> Exploration:
    """The control with K items at random in a share of displays."""
    control, present = plan.normaliser.control, _unlogged(plan.settings.control)
    if share == 0.0:
        return Exploration(UNIFORM, control, present, share)
    lists = (*plan.settings.control.score_columns, *plan.settings.treatment.score_columns)
    if not lists:
        return Exploration(UNIFORM, None, None, share)
    at_random = EpsilonGreedy(lists[0], 1.0)  # of any list: it only counts the items
    rest = round(1.0 - share, 9)  # 0.68, and not 0.6799999999999999
    parts = [{"share": rest, **present}, {"share": share, **at_random.settings()}]
    listed = {"candidates": parts[0].pop("candidates")} if "candidates" in present else {}
    table = {"policy": "mixture", "components": parts, **listed}
    mixed = Mixture([(rest, control), (share, _of_its_items(at_random, plan.settings.control))])
    return Exploration(UNIFORM, mixed, table, share)


def _scores_of(control: Policy) -> str | None:
    """The column with the control's scores: of a mixture, those of its largest part that has any."""
    control = without_list(control)
    if isinstance(control, Probabilities):  # no scores
        return None
    if isinstance(control, Mixture):
        parts = sorted(control.components, key=lambda part: -part[0])
        return next((scores for _, part in parts if (scores := _scores_of(part)) is not None), None)
    return control.score_columns[0] if control.score_columns else None


def _unlogged(control: Policy) -> dict[str, Any]:
    """The control's table without the column of logged probabilities, which would be others, and its draws' seed."""
    left_out = ("log_prob", "prob", "replay_seed")
    return {key: value for key, value in control.settings().items() if key not in left_out}


def _of_its_items(policy: Policy, control: Policy) -> Policy:
    """The policy over the control's own candidates, where it has any: the scores are in their order."""
    candidates = candidates_of(control)
    return policy if candidates is None else OwnCandidates(policy, candidates)


def _temperatures(control: Policy, scores: str, displays: Displays) -> list[float]:
    """Temperatures around the present one, or around the gap between neighbouring scores; none where all are equal."""
    unit = _temperature_unit(control, scores, displays)
    if unit is None:
        return []
    if isinstance(without_list(control), PlackettLuce):
        return [factor * unit for factor in TEMPERATURES]
    return [float(f"{factor * unit:.3g}") for factor in GAPS]


def _temperature_unit(control: Policy, scores: str, displays: Displays) -> float | None:
    """The present temperature, or the gap between neighbouring scores; None where all are equal."""
    control = without_list(control)
    return control.temperature if isinstance(control, PlackettLuce) else usual_gap(displays[scores], displays)


def usual_gap(scores: Ragged, displays: Displays) -> float | None:
    """The median gap between the scores of neighbouring places, among the K + 1 best of each display.

    >>> displays = Displays({}, Ragged.of([[0, 1]]), np.array([4]), np.zeros(1, np.uint64))
    >>> usual_gap(Ragged.of([[9.0, 0.0, 6.0, 8.0]]), displays)
    1.5
    """
    best = -np.sort(-scores.padded(np.nan).astype(np.float64), axis=1)  # NaN, beyond a list's end, comes last
    within = np.arange(1, best.shape[1]) < np.minimum(displays.slots + 1, scores.lengths)[:, None]
    with np.errstate(over="ignore"):
        gaps = (best[:, :-1] - best[:, 1:])[within] if best.shape[1] > 1 else np.empty(0)
    gaps = gaps[(gaps > _ROUNDING * np.abs(scores.values).max()) & np.isfinite(gaps)]
    return float(np.median(gaps)) if len(gaps) else None

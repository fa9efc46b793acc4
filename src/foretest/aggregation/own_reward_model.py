"""A user's own reward model in DR: its predictions for what was shown, and their expectation under the treatment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.weights.item_probabilities import action_probabilities, every_action
from foretest.weights.policy_pair import MODEL
from foretest.weights.slot_marginals import in_pieces


class OwnPredictions(NamedTuple):
    """r̂ of the shown rankings and E_t r̂, one column per metric."""

    shown: Floats
    expected: Floats


def own_predictions(plan: FoldPlan, model: Any, draws: int, displays: Displays) -> OwnPredictions:
    """E_t r̂ is exact where one item is shown, over all that might be; else the mean over some draws."""
    expected = np.empty((len(displays), len(plan.metrics)))
    single = displays.slots == 1
    for rows, expectation in ((np.flatnonzero(single), _exact), (np.flatnonzero(~single), _drawn)):
        if len(rows):
            expected[rows] = expectation(plan, model, draws, displays.take(rows))
    return OwnPredictions(_predicted(plan, model, displays, displays.ranking), expected)


def _exact(plan: FoldPlan, model: Any, draws: int, displays: Displays) -> Floats:
    """Σ_a π_t(a|x) r̂(x, a), over all eligible items."""
    expected = np.empty((len(displays), len(plan.metrics)))
    for rows in in_pieces(displays):
        part = displays.take(rows)
        actions = every_action(part)
        terms = action_probabilities(plan.settings.treatment, part)[:, None] * _predicted(
            plan, model, actions, actions.ranking
        )
        expected[rows] = np.add.reduceat(terms, np.cumsum(part.eligible) - part.eligible, axis=0)
    return expected


def _drawn(plan: FoldPlan, model: Any, draws: int, displays: Displays) -> Floats:
    """The mean of r̂ over rankings drawn from the treatment."""
    total = np.zeros((len(displays), len(plan.metrics)))
    for draw in range(draws):
        u = plan.normaliser.pair.uniforms(displays, MODEL, draw, 1)
        total += _predicted(plan, model, displays, plan.settings.treatment.sample(displays, u))
    return total / draws


def _predicted(plan: FoldPlan, model: Any, displays: Displays, rankings: Ragged) -> Floats:
    metrics = len(plan.metrics)
    answer = np.asarray(model.predict(displays, rankings), dtype=np.float64).reshape(len(displays), -1)
    if answer.shape[1] != metrics:
        raise BadInput(f"the reward model predicts {answer.shape[1]} columns, expected one per metric ({metrics}).")
    return answer

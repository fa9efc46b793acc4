"""Predicted rewards of a batch: of what was shown, and their expectation over all that the policies may show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.item_model import all_cells, shown_cells
from foretest.displays.batch import Displays, Floats
from foretest.log.rows import Rows
from foretest.weights.item_probabilities import item_probabilities
from foretest.weights.slot_marginals import in_pieces


class ItemRewards(NamedTuple):
    """r̂ of a batch for one treatment, with one column per metric."""

    slots: Floats  # of what was shown, slot by slot
    shown: Floats  # of each row, the sum over its slots
    control: Floats  # E_p r̂; 0 where no estimator asks for it
    treatment: Floats  # E_t r̂

    @property
    def uplift(self) -> Floats:
        """What the model says of the uplift of each row."""
        return self.treatment - self.control


def item_rewards(plans: Sequence[FoldPlan], rows: Rows, log_w: Sequence[Floats]) -> list[ItemRewards]:
    """r̂ of a batch for every treatment: the model and the control are asked once. `log_w` is by treatment, too."""
    first, displays, metrics = plans[0], rows.displays, len(plans[0].metrics)
    assert first.item_model is not None
    cells = shown_cells(displays)
    of_slots = np.empty((len(cells.row), metrics))
    begin = np.cumsum(displays.slots) - displays.slots
    expected = np.zeros((1 + len(plans), len(rows), metrics))  # of the control, then of the treatments
    nothing = np.zeros(len(rows))
    for at in in_pieces(displays):
        part = displays.take(at)
        predicted = first.item_model.predict(rows, all_cells(displays, at))
        here = slice(int(begin[at[0]]), int(begin[at[-1]] + displays.slots[at[-1]]))
        of_slots[here] = predicted[_shown_places(part)]
        row = np.repeat(np.arange(len(at)), part.eligible * part.slots)
        asked = [(1 + t, plan.settings.treatment, log_w[t]) for t, plan in enumerate(plans)]
        if any(e.uses_items for e in first.estimators):
            asked.append((0, first.settings.control, nothing))
        for which, policy, weights in asked:
            p = item_probabilities(policy, part, plans[max(which, 1) - 1].normaliser.pair, weights[at])
            for m in range(metrics):
                expected[which, at, m] = np.bincount(row, weights=p * predicted[:, m], minlength=len(at))
    shown = np.zeros((len(rows), metrics))
    np.add.at(shown, cells.row, of_slots)
    return [ItemRewards(of_slots, shown, expected[0], of_treatment) for of_treatment in expected[1:]]


def _shown_places(displays: Displays) -> np.ndarray:
    """Where the shown items are among all items in all slots of the displays."""
    cells, lengths = shown_cells(displays), displays.eligible * displays.slots
    begin = np.cumsum(lengths) - lengths
    return np.asarray(begin[cells.row] + cells.slot * displays.eligible[cells.row] + cells.item)

"""Probabilities: a list with the probability of every eligible action, for displays that show one item."""

from __future__ import annotations

from datetime import date

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import RowFault
from foretest.kernels import action_probabilities as kernel
from foretest.policies.base import Policy

SUM_ERROR = 1e-6
_LEAST = 1e-12  # of a probability, as a score


class Probabilities(Policy):
    """Single actions with the probabilities that a bandit logged.

    π(a) = p_a, read from a list column; for single actions, as bandits log them.

    Parameters
    ----------
    probs: the list column with one probability per eligible action, in the order of the row's lists; zeros are allowed,
        and the list sums to 1 within 1e-6 (it is divided by its sum).
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    >>> import foretest as ft
    >>> import pyarrow as pa
    >>> actions = {"action": [[0], [1]] * 50, "click": [1, 0] * 50}
    >>> actions |= {"old": [[0.5, 0.5]] * 100, "new": [[0.8, 0.2]] * 100}
    >>> test = ft.OfflineTest(
    ...     log=ft.LogColumns(rewards=["click"], ranking="action"),
    ...     control=ft.Probabilities("old"), treatment=ft.Probabilities("new"), estimators=["is"],
    ... )
    >>> round(test.run(pa.table(actions)).metrics["click"].estimates["is"].treatment, 6)
    0.8
    """

    def __init__(self, probs: str, *, trained_until: date | str | None = None) -> None:
        self.probs = probs
        self.remember_training(trained_until)

    @property
    def score_columns(self) -> tuple[str, ...]:
        return (self.probs,)

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        several = np.flatnonzero(rankings.lengths != 1)
        if len(several):
            raise RowFault(
                "probs-slots", self.probs, several, f"the row shows {rankings.lengths[several[0]]} items",
                'A list of probabilities is of single actions: for rankings give scores (policy = "plackett-luce"), or'
                ' the probability of each slot (policy = "logged-slots").',
            )  # fmt: skip
        lists, out = displays[self.probs], np.empty(len(rankings))
        fault = kernel.log_probabilities(
            lists.values, lists.starts, lists.lengths, rankings.values, rankings.starts, SUM_ERROR, out
        )
        if fault != kernel.RIGHT:
            self._refuse(lists, fault)
        return out

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        lists, out = displays[self.probs], np.empty(len(displays), np.int32)
        kernel.draw_actions(lists.values, lists.starts, lists.lengths, np.ascontiguousarray(uniforms[:, 0]), out)
        return Ragged.packed(out, np.ones(len(out), np.int64))

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot): the list itself."""
        lists: Ragged = displays[self.probs]
        p = lists.flat().astype(np.float64)
        totals = np.add.reduceat(p, np.cumsum(lists.lengths) - lists.lengths) if len(p) else p
        return Ragged.packed(p / np.repeat(totals, lists.lengths), lists.lengths)

    def as_scores(self, lists: Ragged) -> Ragged:
        """log p of every action, the scores of a Plackett-Luce policy that shows the same; of a zero that of 1e-12."""
        return Ragged.packed(np.log(np.maximum(lists.flat().astype(np.float64), _LEAST)), lists.lengths)

    def _refuse(self, lists: Ragged, fault: int) -> None:
        """Name all rows that have the fault of the first one."""
        p, row = lists.flat().astype(np.float64), np.repeat(np.arange(len(lists)), lists.lengths)
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(~((p >= 0.0) & (p <= 1.0 + SUM_ERROR)))
        if fault == kernel.NO_PROBABILITY:
            value = "NaN" if np.isnan(p[wrong[0]]) else f"{p[wrong[0]]:g}"
            raise RowFault(
                "probs-value", self.probs, np.unique(row[wrong]), f"a probability is {value}",
                'Probabilities lie between 0 and 1; for scores or logarithms use policy = "plackett-luce".',
            )  # fmt: skip
        p[wrong] = np.nan  # rows with another fault
        totals = np.bincount(row, weights=p, minlength=len(lists))
        others = np.flatnonzero(np.abs(totals - 1.0) > SUM_ERROR)
        raise RowFault(
            "probs-sum", self.probs, others, f"the probabilities sum to {totals[others[0]]:.7g}, not 1",
            "Give one probability for each eligible action of the row, in the order of its lists.",
        )  # fmt: skip

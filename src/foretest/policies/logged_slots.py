"""Logged slots: the probability that each shown item was in its slot, or of every item in every slot, from a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.errors import BadInput, RowFault
from foretest.policies.base import Policy

Ints = npt.NDArray[np.int64]

SUM_ERROR = 1e-6  # of the probabilities of one slot, or of one item
_CHECK = (
    "Check the column: slot by slot it holds the probability of each eligible item, in the order of the row's lists."
)


class LoggedSlots(Policy):
    """The probability that the log already has for each shown slot.

    P(a_k in slot k) as it was logged; a control only. It can neither draw rankings nor price a whole one.

    Parameters
    ----------
    probs: the list column with K numbers, the probability that the shown item was in its slot.
    matrix: the list column with M·K numbers, slot by slot the probability of every eligible item; one of the two.

    >>> import foretest as ft
    >>> ft.LoggedSlots(probs="slot_propensities").columns
    ('slot_propensities',)
    """

    can_draw = False
    prices_rankings = False

    def __init__(self, *, probs: str | None = None, matrix: str | None = None) -> None:
        if (probs is None) == (matrix is None):
            raise BadInput('the policy "logged-slots" needs probs = "column" or matrix = "column", one of them.')
        self.probs, self.matrix = probs, matrix
        self.knows_all_slots = matrix is not None

    @property
    def slot_columns(self) -> tuple[str, ...]:
        return (self._column,)

    @property
    def _column(self) -> str:
        return self.probs or self.matrix or ""

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        raise BadInput("logged slots do not say how likely a whole ranking is.")

    def settings(self) -> dict[str, Any]:
        return {"policy": self.key, "probs" if self.matrix is None else "matrix": self._column}

    def shown_slots(self, displays: Displays) -> Floats:
        """P(a_k in slot k) of every shown slot, one after the other; what cannot be a probability is refused."""
        slots = displays.slots
        lists, row, slot = displays[self._column], np.repeat(np.arange(len(displays)), slots), places_within(slots)
        if self.matrix is None:
            self._refuse_length(lists, slots, "one number for each shown slot, in the ranking's order")
        else:
            self._refuse_length(lists, slots * displays.eligible, "slot by slot a number for each eligible item")
        values = lists.flat().astype(np.float64)
        self._refuse_no_probability(values, np.repeat(np.arange(len(lists)), lists.lengths))
        if self.matrix is None:
            shown: Floats = values
        else:
            self._refuse_sums(values, displays)
            first = np.cumsum(lists.lengths) - lists.lengths
            shown = values[first[row] + slot * displays.eligible[row] + displays.ranking.flat()]
        never = np.flatnonzero(shown == 0.0)
        if len(never):
            raise RowFault(
                "slot-prob-0", self._column, np.unique(row[never]),
                f"the item shown in slot {slot[never[0]] + 1} has the logged probability 0 there",
                "The control must be the policy that produced the log: check the column.",
            )  # fmt: skip
        return shown

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot): the matrix as it was logged."""
        if self.matrix is None:
            raise BadInput("logged slots of the shown items alone do not say how likely another item is in a slot.")
        lists: Ragged = displays[self.matrix]
        return Ragged.packed(lists.flat().astype(np.float64), lists.lengths)

    def _refuse_length(self, lists: Ragged, wanted: Ints, what: str) -> None:
        wrong = np.flatnonzero(lists.lengths != wanted)
        if len(wrong):
            has, needs = int(lists.lengths[wrong[0]]), int(wanted[wrong[0]])
            raise RowFault(
                "slot-probs-length", self._column, wrong, f"the list has length {has} where the row needs {needs}",
                f"Give {what}.",
            )  # fmt: skip

    def _refuse_no_probability(self, values: Floats, row: Ints) -> None:
        """Refuse what is NaN, infinite, negative or above 1."""
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(~((values >= 0.0) & (values <= 1.0 + SUM_ERROR)))
        if len(wrong):
            value = values[wrong[0]]
            what = "NaN" if np.isnan(value) else f"{value:g}"
            raise RowFault(
                "slot-prob", self._column, np.unique(row[wrong]), f"a logged probability is {what}",
                "Probabilities lie between 0 and 1.",
            )  # fmt: skip

    def _refuse_sums(self, values: Floats, displays: Displays) -> None:
        """Refuse slots that do not show one item, and items that are in more than one slot."""
        slots, eligible = displays.slots, displays.eligible
        row = np.repeat(np.arange(len(displays)), slots)
        widths = eligible[row]  # of each slot
        totals = np.add.reduceat(values, np.cumsum(widths) - widths) if len(values) else values
        wrong = np.flatnonzero(np.abs(totals - 1.0) > SUM_ERROR)
        if len(wrong):
            slot = places_within(slots)[wrong[0]] + 1
            raise RowFault(
                "slot-sum", self._column, np.unique(row[wrong]),
                f"the probabilities of slot {slot} sum to {totals[wrong[0]]:.7g}, not 1", _CHECK,
            )  # fmt: skip
        first = np.cumsum(eligible) - eligible
        item = np.repeat(first[row], widths) + places_within(widths)
        in_any = np.bincount(item, weights=values, minlength=int(eligible.sum()))
        wrong = np.flatnonzero(in_any > 1.0 + SUM_ERROR)
        if len(wrong):
            rows = np.repeat(np.arange(len(displays)), eligible)[wrong]
            raise RowFault(
                "item-sum", self._column, np.unique(rows),
                f"the probabilities of one item sum to {in_any[wrong[0]]:.7g} over its slots, above 1", _CHECK,
            )  # fmt: skip

"""Rewards as they would come from a control that explores, from those of the log.

Within a list of items (those of one slot, or of a display by exposure) the control shows item i with probability ρ(i),
one that explores with β(i), and the treatment with α(i). If a reward depends on the item and its place alone, what a
function g of the item would bring under exploration is

    E'[r g] = Σ_i β(i) γ(i) g(i) = E[r·u(a)·g(a)],    u = β/ρ,

a the item that earned r in the log. What ρ hardly shows is not known: beyond u = c the rest of β is worth m(i) times
what the list's rewards are (`item_worth`),

    E'[r g] ≈ mean over the log of r·[min(u(a), c)·g(a) + Σ_i (β(i) − c ρ(i))⁺ m(i) g(i)].
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged, places_within
from foretest.kernels import exposure as kernel
from foretest.kernels.slot_marginals import slot_caps
from foretest.records import dataclass
from foretest.weights.examination import Curves

Ints = npt.NDArray[np.int64]


class Tables(NamedTuple):
    """P(item in slot) of displays under three policies: K lists of M numbers each, one after the other."""

    treatment: Floats
    explored: Floats
    control: Floats


@dataclass(frozen=True)
class ItemLists:
    """Lists of items with their probabilities, and the rewards, each of one item of a list."""

    treatment: Floats  # α, one list after the other
    explored: Floats  # β
    control: Floats  # ρ
    lengths: Ints
    owner: Ints  # of each reward: its list
    cell: Ints  # of each reward: the place of its item among all lists
    reward: Floats
    display: Ints  # of each reward
    most: float  # c
    worth: Floats | None = None  # m of every cell; None: 1

    @cached_property
    def starts(self) -> Ints:
        """Where each list begins."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def of_cell(self) -> Ints:
        """The list of every cell."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def known(self) -> Floats:
        """min(u, c) of every reward."""
        rho = self.control[self.cell]
        with np.errstate(over="ignore"):  # beyond a float, and cut at `most`
            ratio = np.divide(self.explored[self.cell], rho, out=np.zeros(len(rho)), where=rho > 0.0)
        return np.minimum(ratio, self.most)

    @cached_property
    def rest(self) -> Floats:
        """(β − c ρ)⁺ m of every cell."""
        rest = np.maximum(self.explored - self.most * self.control, 0.0)
        return rest if self.worth is None else rest * self.worth

    def expected(self, g: Floats, power: int = 1) -> float:
        """Σ r^power·g as it would be under exploration; `g` has a number per cell."""
        known, rest = self._weights[power - 1]
        return float(known @ g[self.cell] + rest @ g)

    @cached_property
    def _weights(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """What a reward, and what a cell, counts in sums of r and of r²."""
        return self._weights_of(self.reward), self._weights_of(self.reward**2)

    def _weights_of(self, r: Floats) -> tuple[Floats, Floats]:
        by_list = np.bincount(self.owner, weights=r, minlength=len(self.lengths))
        return r * self.known, by_list[self.of_cell] * self.rest

    def capped(self, bound: float) -> Capped:
        """w̃ of every item at the adaptive cap of a bound."""
        out, once = np.empty((3, len(self.lengths))), np.ones(len(self.lengths), np.int64)
        # as lists: kernels are compiled for their values, which are read-only
        t, p = (Ragged(values, self.starts, self.lengths).values for values in (self.treatment, self.explored))
        slot_caps(t, self.starts, p, self.starts, self.lengths, once, float(bound), out)
        cap, q = out[0][self.of_cell], out[1][self.of_cell]
        # where the exploring control shows nothing the weight is never met
        with np.errstate(over="ignore"):  # beyond a float, and capped
            w = np.divide(self.treatment, self.explored, out=np.zeros(len(cap)), where=self.explored > 0.0)
        weight = np.divide(np.minimum(w, cap), q, out=np.ones(len(cap)), where=q > 0.0)
        return Capped(bound, out[0], out[1], weight)


class Capped(NamedTuple):
    """Weights at the adaptive cap of a bound."""

    bound: float
    cap: Floats  # of every list; 0 where there is none
    q: Floats  # of every list, 0 where there is no cap
    weight: Floats  # w̃ of every cell, 1 where there is no cap


def slot_lists(displays: Displays, tables: Tables, earned: Ragged, most: float) -> ItemLists:
    """The lists of slots."""
    lengths = np.repeat(displays.eligible, displays.slots)
    starts = np.cumsum(lengths) - lengths
    r = earned.flat().astype(np.float64)
    [paid] = np.nonzero(r)
    display = np.repeat(np.arange(len(displays)), displays.slots)[paid]
    cell = starts[paid] + displays.ranking.flat()[paid]
    return ItemLists(
        tables.treatment, tables.explored, tables.control, lengths, paid, cell, r[paid], display, most
    )  # fmt: skip


def exposure_lists(displays: Displays, tables: Tables, earned: Ragged, theta: Floats, most: float) -> ItemLists:
    """The lists of displays by exposure, e(i)/Θ; `theta` has a curve per display."""
    lengths = displays.eligible
    starts = np.cumsum(lengths) - lengths
    r = earned.flat().astype(np.float64)
    [paid] = np.nonzero(r)
    display = np.repeat(np.arange(len(displays)), displays.slots)[paid]
    cell = starts[display] + displays.ranking.flat()[paid]
    alpha, beta, rho = (exposures(displays, table, theta) for table in tables)
    return ItemLists(alpha, beta, rho, lengths, display, cell, r[paid], display, most)


def exposures(displays: Displays, table: Floats, theta: Floats) -> Floats:
    """e(i)/Θ of every item, one display after the other."""
    cells = displays.eligible * displays.slots
    lengths, codes = displays.eligible, np.arange(len(displays))
    out = np.empty(int(lengths.sum()))
    starts = np.cumsum(lengths) - lengths
    lists = Ragged.packed(table, cells)
    kernel.exposures(lists.values, lists.starts, lengths, displays.slots, theta, codes, out, starts)
    return out


def curve_by_display(displays: Displays, curves: Curves, variant: int = 0) -> Floats:
    """θ of every display, a row each, 0 beyond its slots."""
    theta = curves.table(variant)[curves.codes(displays)]
    width = int(displays.slots.max(initial=1))
    return np.ascontiguousarray(np.where(np.arange(width) < displays.slots[:, None], theta[:, :width], 0.0))


def items_of_slots(displays: Displays) -> Ints:
    """The item of every cell of P(item in slot), as a place among the items of all displays."""
    lengths = np.repeat(displays.eligible, displays.slots)
    first = np.cumsum(displays.eligible) - displays.eligible
    return np.repeat(np.repeat(first, displays.slots), lengths) + places_within(lengths)


def by_slot(displays: Displays, table: Floats) -> Floats:
    """P(item in slot) with a row per slot and a column per item of all displays, 0 beyond a display's slots."""
    out = np.zeros((int(displays.slots.max(initial=1)), int(displays.eligible.sum())))
    slot = np.repeat(places_within(displays.slots), np.repeat(displays.eligible, displays.slots))
    out[slot, items_of_slots(displays)] = table
    return out

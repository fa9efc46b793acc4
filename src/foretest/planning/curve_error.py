"""What an examination curve adds to the error of an uplift by exposure, under a control that explores.

A curve that was given may be wrong: the uplift moves by S·Δ log θ for steeper and flatter ones, S_l = ∂V/∂log θ_l. A
curve that is fitted from the exploration has an error. With F_kl the sums of the fit (`engines/examination_pairs`) as
they would be, W_kl the weight of a pair of slots and L the Laplacian of these weights, a reward of item i in slot k
moves log θ̂, and so the uplift, by

    z(i, k) = Σ_l W_kl (y_k − y_l)·P(i, l)/(P(i, k) + P(i, l))/F_kl,    y = L⁻¹ S,

and the uplift's variance is Σ r²·E'[Σ_k P(k | i)·(w̃(i) − 1 + z(i, k))²], P(k | i) = θ_k P(i, k)/(Θ e(i)).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.inference.examination_fit import FEWEST_REWARDS
from foretest.planning.item_lists import Capped, ItemLists, Tables, by_slot
from foretest.records import dataclass
from foretest.weights.examination import VARIANTS


@dataclass(frozen=True)
class ExposedSlots:
    """The slots behind lists by exposure: P(item in slot) of the treatment and of the control that explores, a row per
    slot and a column per item of all displays, and θ_k/Θ likewise."""

    lists: ItemLists
    treatment: Floats
    explored: Floats
    share: Floats
    theta: Floats  # a row per display

    @classmethod
    def of(cls, displays: Displays, lists: ItemLists, tables: Tables, theta: Floats) -> ExposedSlots:
        share = (theta / theta.sum(axis=1, keepdims=True)).T[:, lists.of_cell]
        treatment, explored = (by_slot(displays, table) for table in (tables.treatment, tables.explored))
        return cls(lists, treatment, explored, share, theta)

    def slopes(self, capped: Capped) -> Floats:
        """∂w̃/∂log θ_l of every item, a row per slot l. As `kernels/exposure.slopes` has it, for all items
        and not for those alone that were shown."""
        lists, e_t, e_p = self.lists, self.lists.treatment, self.lists.explored
        moves_t, moves_p = self.share * (self.treatment - e_t), self.share * (self.explored - e_p)
        cap, q, count = capped.cap[lists.of_cell], capped.q[lists.of_cell], len(lists.lengths)
        below = (q > 0.0) & (e_t <= cap * e_p)
        above = (q > 0.0) & ~below
        mass = np.bincount(lists.of_cell, weights=below * e_t, minlength=count)
        own = below & (e_t > 0.0) & (e_p > 0.0)
        out = np.zeros_like(self.share)
        for slot, (of_t, of_p) in enumerate(zip(moves_t, moves_p, strict=True)):
            moved = np.where(below, of_t, 0.0) + np.where(above, capped.bound * q * of_p, 0.0)
            falls = np.bincount(lists.of_cell, weights=moved, minlength=count)
            falls = np.divide(falls, mass, out=np.zeros(count), where=mass > 0.0)[lists.of_cell]
            rises = np.divide(of_t, e_t, out=np.zeros(len(e_t)), where=own) - np.divide(
                of_p, e_p, out=np.zeros(len(e_t)), where=own
            )
            out[slot] = np.where(own, capped.weight * (rises - falls), 0.0)
        return out

    def half_range(self, capped: Capped) -> float:
        """Half of how far Σ w̃ r moves over curves steeper and flatter than the one that was given."""
        slopes, lists = self.slopes(capped), self.lists
        with np.errstate(divide="ignore"):
            log_theta = np.where(self.theta > 0.0, np.log(np.maximum(self.theta, 1e-300)), 0.0)
        log_place = np.log(np.arange(1.0, self.theta.shape[1] + 1.0))
        shifts = [0.0]
        for power, tilt in VARIANTS[1:]:
            change = ((power - 1.0) * log_theta + tilt * log_place).T[:, lists.of_cell]
            shifts.append(lists.expected((slopes * change).sum(axis=0)))
        return 0.5 * (max(shifts) - min(shifts))

    def fitted(self, capped: Capped, scale: float) -> float | None:
        """Σ r²·E'[(w̃ − 1 + z)²] with the curve fitted; None where too few rewards connect the slots. The log has
        `scale` times the rewards of these displays."""
        if len(self.share) == 1:
            return self.lists.expected((capped.weight - 1.0) ** 2, power=2)
        moves = self._moves(capped, scale)
        if moves is None:
            return None
        squares = np.zeros(len(capped.weight))
        for k, by_item in enumerate(self.chance):
            z = sum(
                (moves[k, j] * self.ratio(k, j) for j in range(len(moves)) if j != k), np.zeros(len(squares))
            )  # fmt: skip
            squares += by_item * (capped.weight - 1.0 + z) ** 2
        return self.lists.expected(squares, power=2)

    @cached_property
    def chance(self) -> Floats:
        """P(k | i): in which slot a reward of an item would be, a row per slot."""
        e_p = self.lists.explored
        return np.asarray(np.divide(self.share * self.explored, e_p, out=np.zeros_like(self.share), where=e_p > 0.0))

    def ratio(self, k: int, j: int) -> Floats:
        """P(i, j)/(P(i, k) + P(i, j)) of every item."""
        both = self.explored[k] + self.explored[j]
        return np.asarray(np.divide(self.explored[j], both, out=np.zeros(len(both)), where=both > 0.0))

    @cached_property
    def pairs(self) -> tuple[Floats, Floats]:
        """F_kl and the sums of its terms' squares, as they would be."""
        count = len(self.share)
        sums, squares = np.zeros((count, count)), np.zeros((count, count))
        for k in range(count):
            for j in range(count):
                if j != k:
                    ratio = self.ratio(k, j)
                    sums[k, j] = self.lists.expected(self.chance[k] * ratio)
                    squares[k, j] = self.lists.expected(self.chance[k] * ratio**2, power=2)
        return sums, squares

    def _moves(self, capped: Capped, scale: float) -> Floats | None:
        """W_kl (y_k − y_l)/F_kl by pair of slots; None where too few rewards connect the slots."""
        sums, squares = self.pairs
        known = (sums**2 > 0.0) & (squares > 0.0)  # of a chance of 1e-200 there is no square
        some = known & known.T
        noise = np.divide(squares, sums**2, out=np.zeros_like(sums), where=some)
        strong = some & (scale >= FEWEST_REWARDS * np.maximum(noise, noise.T))
        weight = np.divide(1.0, noise + noise.T, out=np.zeros_like(sums), where=some)
        if np.linalg.matrix_rank(_laplacian(strong.astype(np.float64))) < len(sums) - 1:
            return None
        slope = np.array([self.lists.expected(row) for row in self.slopes(capped)])
        y = np.concatenate([[0.0], np.linalg.solve(_laplacian(weight)[1:, 1:], slope[1:])])
        return np.asarray(np.divide(weight * (y[:, None] - y), sums, out=np.zeros_like(sums), where=some))


def _laplacian(weight: Floats) -> Floats:
    """The matrix of a graph with these weights of its edges."""
    return np.asarray(np.diag(weight.sum(axis=1)) - weight)

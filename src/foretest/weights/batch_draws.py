"""What was drawn and enumerated for one batch of displays: made once, shared by all estimators that need it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.weights.enumeration import Priced, all_priced
from foretest.weights.policy_pair import PolicyPair, weights_of

Indices = npt.NDArray[np.int64]


class MeansAt(NamedTuple):
    """A cap, and whether weights above it count as 0."""

    cap: float
    zero: bool


class BatchDraws:
    """For one batch of displays, filled when first needed: w of two-sided draws, and the most that log w can be; of
    rows that are priced through `log_prob`, log w of these draws and the probabilities of all rankings.

    pair: the policies; draws: S, half from each of them; cap: of which the kernel is to find the means of z, w̄/w of the
    treatment's draws, while it draws.
    """

    def __init__(self, displays: Displays, pair: PolicyPair, draws: int, cap: MeansAt | None = None) -> None:
        self.displays = displays
        self.most: Floats | None = None
        self._alpha, self._beta = np.empty(0), np.empty(0)  # of all rankings of some rows, one row after the other
        self._starts, self._counts = np.full(len(displays), -1), np.zeros(len(displays), np.int64)
        self._pair, self._draws = pair, draws
        self._weights: Floats | None = None
        self._log_weights: Floats | None = None
        self._drawn = np.zeros(len(displays), np.bool_)
        self._cap, self._means = cap, np.full((len(displays), 2), np.nan)

    def missing(self, rows: Indices) -> Indices:
        """The rows among `rows` whose weights have yet to be drawn."""
        return np.asarray(rows[~self._drawn[rows]])

    def put(self, rows: Indices, w: Floats) -> None:
        """Store the weights of some rows."""
        self._weights = self._with(self._weights, rows, w)
        self._drawn[rows] = True

    def weights(self, rows: Indices) -> Floats:
        """w of the two-sided draws of some rows."""
        self._draw_missing(rows)
        assert self._weights is not None
        return self._some(self._weights, rows)

    def log_weights(self, rows: Indices) -> Floats:
        """log w of the same draws. The kernel's are drawn again: of them no more than w is stored."""
        if self._pair.is_fused:
            return np.hstack(self._pair.two_sided_draws(self.displays.take(rows), self._draws))
        self._draw_missing(rows)
        assert self._log_weights is not None
        return self._some(self._log_weights, rows)

    def priced(self, rows: Indices) -> Priced:
        """The probabilities of all rankings of some rows."""
        missing = rows[self._starts[rows] < 0]
        if len(missing):
            parts, size = [*all_priced(self._pair, self.displays.take(missing))], len(self._alpha)
            for part in parts:
                some = missing[part.rows]
                self._starts[some], self._counts[some] = size + part.starts, part.counts
                size += len(part.alpha)
            self._alpha = np.concatenate([self._alpha, *(part.alpha for part in parts)])
            self._beta = np.concatenate([self._beta, *(part.beta for part in parts)])
        return Priced(np.arange(len(rows)), self._alpha, self._beta, self._starts[rows], self._counts[rows])

    def _draw_missing(self, rows: Indices) -> None:
        missing = self.missing(rows)
        if not len(missing):
            return
        part = self.displays.take(missing)
        if self._pair.is_fused:
            if self._cap is None:
                self.put(missing, self._pair.two_sided_weights(part, self._draws))
                return
            means = np.empty((len(missing), 2))
            cap, zero = self._cap
            self.put(missing, self._pair.two_sided_weights(part, self._draws, cap=cap, zero=zero, means=means))
            self._means[missing] = means
            return
        log_w = np.hstack(self._pair.two_sided_draws(part, self._draws))
        self._log_weights = self._with(self._log_weights, missing, log_w)
        self.put(missing, weights_of(log_w))

    def means_at(self, cap: MeansAt, rows: Indices) -> Floats | None:
        """The means of z at a cap and at a third of it, of some rows; None where they were not found with the draws."""
        if cap != self._cap or np.isnan(self._means[rows]).any():
            return None
        return np.asarray(self._means[rows])

    def _with(self, stored: Floats | None, rows: Indices, values: Floats) -> Floats:
        """What is stored of all rows, with the values of some."""
        if len(rows) == len(self.displays):  # all at once: no copy
            return values
        stored = np.empty((len(self.displays), values.shape[1])) if stored is None else stored
        stored[rows] = values
        return stored

    def _some(self, stored: Floats, rows: Indices) -> Floats:
        return stored if len(rows) == len(self.displays) else stored[rows]

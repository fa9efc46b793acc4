"""Thurstone: every score gets Gaussian noise of its own, and the noisy scores are sorted."""

from __future__ import annotations

from datetime import date

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ints, Ragged
from foretest.kernels import slot_marginals
from foretest.kernels import thurstone as kernel
from foretest.kernels import thurstone_grid as grid
from foretest.policies.base import ScorePolicy, known, marginal_places, number_or_word, scale_of_noise
from foretest.special import ndtri


class Thurstone(ScorePolicy):
    """Sorts the scores after adding normal noise to each.

    The top K of s + σ·normal  (Thurstone 1927, case V); its log-probability is a nested integral.

    It takes some thousand times as long as a Plackett-Luce probability, and longer where scores spread over many σ.

    Parameters
    ----------
    scores: the list column with one score per eligible item.
    sigma: σ, the standard deviation of the noise; 1 where none is given. "fit": as the control's log shows it;
        "control": of a treatment, the control's.
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    The probability that it shows items 1 and 2 of three:

    >>> import numpy as np
    >>> import foretest as ft
    >>> shown = ft.Ragged.of([[1, 2]])
    >>> scores = {"scores": ft.Ragged.of([[0.3, 1.2, 0.7]])}
    >>> display = ft.Displays(scores, shown, eligible=np.array([3]), identity=np.zeros(1, np.uint64))
    >>> policy = ft.Thurstone("scores", sigma=0.5)
    >>> float(np.exp(policy.log_prob(display, shown))[0].round(3))
    0.496
    """

    full_support = True

    def __init__(
        self, scores: str, sigma: float | str | None = None, *, log_prob: str | None = None, prob: str | None = None,
        trained_until: date | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(scores, log_prob=log_prob, prob=prob, trained_until=trained_until)
        self.sigma = number_or_word(1.0 if sigma is None else sigma, lambda value: scale_of_noise("sigma", value))
        self._given_number = sigma

    @property
    def _noise(self) -> float:
        """σ, once it is known."""
        return known("sigma", self.sigma)

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        s = displays[self.scores]
        log_p = np.full(len(rankings.lengths), np.inf)
        left = _alike_together(s, rankings)
        for fineness in (grid.COARSE, grid.FINE):
            log_p[left] = grid.log_prob(
                s.values, s.starts[left], s.lengths[left],
                rankings.values, rankings.starts[left], rankings.lengths[left],
                self._noise, *fineness, *grid.tables(),
            )  # fmt: skip
            left = left[log_p[left] > 0.0]
        if len(left):
            s, rankings = s.take(left), rankings.take(left)
            log_p[left] = kernel.log_prob(
                s.values, s.starts, s.lengths, rankings.values, rankings.starts, rankings.lengths,
                self._noise, *kernel.tables(),
            )  # fmt: skip
        return log_p

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        scores = displays[self.scores].padded(-np.inf)
        noisy = scores + self._noise * ndtri(uniforms[:, : scores.shape[1]])
        most = int(displays.slots.max(initial=0))
        order = np.argsort(-noisy, axis=1, kind="stable")[:, :most]
        return Ragged.packed(order[np.arange(most) < displays.slots[:, None]].astype(np.int32), displays.slots)

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot), exactly, by the race of noisy scores, the highest first."""
        s, slots = displays[self.scores], displays.slots
        starts, out = marginal_places(displays)
        slot_marginals.thurstone(s.values, s.starts, s.lengths, slots, self._noise, out, starts)
        return Ragged(out, starts, displays.eligible * slots)


def _alike_together(scores: Ragged, rankings: Ragged) -> Ints:
    """The rows in an order in which rankings of one display follow one another, those that begin alike side by side."""
    if len(scores.starts) < 2 or (np.diff(scores.starts) != 0).all():
        return np.arange(len(scores.starts))
    first = rankings.padded(-1)[:, : max(1, int(rankings.lengths.max(initial=1)) - 1)]
    return np.lexsort((*first.T[::-1], scores.starts))

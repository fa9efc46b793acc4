"""Mallows: rankings near the sort by score are likelier, by a factor φ for each step away from it."""

from __future__ import annotations

from datetime import date

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.policies.base import positive
from foretest.policies.by_rank import ByResidualRank


class Mallows(ByResidualRank):
    """The sort by score, with every step down the list less likely by the factor `dispersion`.

    At slot k the item of residual rank j has probability φ^j (1−φ)/(1−φ^{M−k+1})  (Mallows 1957, top-K form).

    Parameters
    ----------
    scores: the list column whose sort is the centre (ties: the lower position first).
    dispersion: φ in (0, 1); near 0 the sort itself, near 1 uniform.
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    replay_seed: the seed of the service that drew the log, if it is to be replayed (`foretest.serving`).
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    The probability that it shows items 1 and 2 of three:

    >>> import numpy as np
    >>> import foretest as ft
    >>> shown = ft.Ragged.of([[1, 2]])
    >>> scores = {"scores": ft.Ragged.of([[0.3, 1.2, 0.7]])}
    >>> display = ft.Displays(scores, shown, eligible=np.array([3]), identity=np.zeros(1, np.uint64))
    >>> policy = ft.Mallows("scores", dispersion=0.2)
    >>> float(np.exp(policy.log_prob(display, shown))[0].round(3))
    0.672
    """

    full_support = True

    def __init__(
        self, scores: str, dispersion: float, *, log_prob: str | None = None, prob: str | None = None,
        replay_seed: int | None = None, trained_until: date | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(scores, log_prob=log_prob, prob=prob, trained_until=trained_until)
        self.remember_replay(replay_seed)
        self.dispersion = positive("dispersion", dispersion, below=1.0)

    def _log_slot(self, rank: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> Floats:
        log_phi = np.log(self.dispersion)
        # log(1−φ^m) = log(−expm1(m log φ)) keeps its digits for φ near 1
        return np.asarray(rank * log_phi + np.log(-np.expm1(log_phi)) - np.log(-np.expm1(left * log_phi)))

    def _rank_at(self, u: Floats, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        log_phi = np.log(self.dispersion)
        return np.asarray(np.floor(np.log1p(u * np.expm1(left * log_phi)) / log_phi), np.int64)

"""Top-K: the best scores in order, always."""

from __future__ import annotations

from datetime import date

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.policies.by_rank import ByResidualRank


class TopK(ByResidualRank):
    """Always the best scores in order: a production without exploration.

    π(a) = 1 for the K best scores in order, 0 for any other ranking.

    Parameters
    ----------
    scores: the list column whose sort is shown (ties: the lower position first).
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    replay_seed: the seed of the service that drew the log, if it is to be replayed (`foretest.serving`).
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    The probability that it shows items 1 and 2 of three:

    >>> import numpy as np
    >>> import foretest as ft
    >>> shown = ft.Ragged.of([[1, 2]])
    >>> scores = {"scores": ft.Ragged.of([[0.3, 1.2, 0.7]])}
    >>> display = ft.Displays(scores, shown, eligible=np.array([3]), identity=np.zeros(1, np.uint64))
    >>> policy = ft.TopK("scores")
    >>> float(np.exp(policy.log_prob(display, shown))[0].round(3))
    1.0
    """

    deterministic = True

    def __init__(
        self, scores: str, *, log_prob: str | None = None, prob: str | None = None, replay_seed: int | None = None,
        trained_until: date | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(scores, log_prob=log_prob, prob=prob, trained_until=trained_until)
        self.remember_replay(replay_seed)

    def _log_slot(self, rank: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> Floats:
        return np.where(rank == 0, 0.0, -np.inf)

    def _rank_at(self, u: Floats, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.zeros(len(u), np.int64)

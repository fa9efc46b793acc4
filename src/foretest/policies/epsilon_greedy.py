"""Epsilon-greedy, slot by slot: the best item left, or with probability ε any item left."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.errors import BadInput
from foretest.policies.base import is_open, known, number_or_word
from foretest.policies.by_rank import ByResidualRank


class EpsilonGreedy(ByResidualRank):
    """At every slot the best item left, or with probability epsilon any item left.

    log π(a) = Σ_k log[(1−ε)·1(a_k is the best left) + ε/(M−k+1)].

    Parameters
    ----------
    scores: the list column whose sort is followed (ties: the lower position first).
    epsilon: ε in [0, 1], the exploration of each slot; "fit": as the control's log shows it; "control": of a
        treatment, the control's.
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    replay_seed: the seed of the service that drew the log, if it is to be replayed (`foretest.serving`).
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    The probability that it shows items 1 and 2 of three:

    >>> import numpy as np
    >>> import foretest as ft
    >>> shown = ft.Ragged.of([[1, 2]])
    >>> scores = {"scores": ft.Ragged.of([[0.3, 1.2, 0.7]])}
    >>> display = ft.Displays(scores, shown, eligible=np.array([3]), identity=np.zeros(1, np.uint64))
    >>> policy = ft.EpsilonGreedy("scores", epsilon=0.1)
    >>> float(np.exp(policy.log_prob(display, shown))[0].round(3))
    0.887
    """

    def __init__(
        self, scores: str, epsilon: float | str, *, log_prob: str | None = None, prob: str | None = None,
        replay_seed: int | None = None, trained_until: date | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(scores, log_prob=log_prob, prob=prob, trained_until=trained_until)
        self.remember_replay(replay_seed)
        self.epsilon = number_or_word(epsilon, _share)
        self._given_number = epsilon

    @property
    def full_support(self) -> bool:  # type: ignore[override]
        return is_open(self.epsilon) or self.epsilon > 0.0

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.epsilon == 0.0

    def _log_slot(self, rank: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> Floats:
        epsilon = known("epsilon", self.epsilon)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((1.0 - epsilon) * (rank == 0) + epsilon / left))

    def _rank_at(self, u: Floats, left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        epsilon = known("epsilon", self.epsilon)
        if epsilon == 0.0:
            return np.zeros(len(u), np.int64)
        # the best item owns [0, 1−ε+ε/m), every other ε/m after it
        beyond = np.maximum(0.0, u - (1.0 - epsilon))
        return np.floor(beyond * left / epsilon).astype(np.int64)


def _share(value: Any) -> float:
    """ε as a float, if it is in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise BadInput(f"epsilon = {value!r}: expected a number between 0 and 1.")
    return float(value)

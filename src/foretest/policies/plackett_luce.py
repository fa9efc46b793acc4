"""Plackett-Luce: items leave an urn one by one, each with odds exp(score/T)."""

from __future__ import annotations

from datetime import date

import numpy as np

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.kernels import plackett_luce as kernel
from foretest.kernels import slot_marginals
from foretest.policies.base import ScorePolicy, known, marginal_places, number_or_word, scale_of_noise


class PlackettLuce(ScorePolicy):
    """Draws item by item, each with a probability proportional to exp(score/temperature) among those left.

    log π(a) = Σ_k s[a_k]/T − LSE over items not in a_1..a_{k−1} of s/T  (Plackett 1975; Luce 1959).

    With K = 1 it is the softmax. By Luce's choice axiom a Bradley-Terry-Luce ranking is a Plackett-Luce ranking.

    Parameters
    ----------
    scores: the list column with one score per eligible item.
    temperature: T; the smaller, the closer to always showing the best scores; 1 where none is given. "fit": as the
        control's log shows it; "control": of a treatment, the control's.
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    replay_seed: the seed of the service that drew the log, if it is to be replayed (`foretest.serving`).
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    The probability that it shows items 1 and 2 of three:

    >>> import numpy as np
    >>> import foretest as ft
    >>> shown = ft.Ragged.of([[1, 2]])
    >>> scores = {"scores": ft.Ragged.of([[0.3, 1.2, 0.7]])}
    >>> display = ft.Displays(scores, shown, eligible=np.array([3]), identity=np.zeros(1, np.uint64))
    >>> policy = ft.PlackettLuce("scores", temperature=0.5)
    >>> float(np.exp(policy.log_prob(display, shown))[0].round(3))
    0.45
    """

    full_support = True

    def __init__(
        self, scores: str, temperature: float | str | None = None, *, log_prob: str | None = None,
        prob: str | None = None, replay_seed: int | None = None, trained_until: date | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(scores, log_prob=log_prob, prob=prob, trained_until=trained_until)
        self.remember_replay(replay_seed)
        number = 1.0 if temperature is None else temperature
        self.temperature = number_or_word(number, lambda value: scale_of_noise("temperature", value))
        self._given_number = temperature

    @property
    def _inverse(self) -> float:
        """1/T."""
        return 1.0 / known("temperature", self.temperature)

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        s = displays[self.scores]
        return kernel.log_prob(  # type: ignore[no-any-return]
            s.values,
            s.starts,
            s.lengths,
            rankings.values,
            rankings.starts,
            rankings.lengths,
            self._inverse,
        )

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        s = displays[self.scores]
        slots = displays.slots
        drawn = np.empty(int(slots.sum()), np.int32)
        kernel.sample(s.values, s.starts, s.lengths, slots, self._inverse, uniforms, drawn)
        return Ragged.packed(drawn, slots)

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot), exactly, by the race of exponentials."""
        s, slots = displays[self.scores], displays.slots
        starts, out = marginal_places(displays)
        slot_marginals.plackett_luce(s.values, s.starts, s.lengths, slots, self._inverse, out, starts)
        return Ragged(out, starts, displays.eligible * slots)

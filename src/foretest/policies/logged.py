"""Logged: only a column with the probability of the ranking that was shown."""

from __future__ import annotations

from datetime import date

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.policies.base import Policy
from foretest.policies.pricing import shown_log_prob


class Logged(Policy):
    """The probability that the log already has for what was shown.

    π(a) of the shown ranking, read from a column; it can neither draw rankings nor price others.

    Parameters
    ----------
    log_prob, prob: the column with the (natural log of the) probability of the shown ranking; one of the two.
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    >>> import foretest as ft
    >>> ft.Logged(prob="propensity").columns
    ('propensity',)
    """

    can_draw = False

    def __init__(
        self, *, log_prob: str | None = None, prob: str | None = None, trained_until: date | str | None = None
    ) -> None:
        if log_prob is None and prob is None:
            raise BadInput('the policy "logged" needs log_prob = "column" or prob = "column".')
        self.remember_logged(log_prob, prob)
        self.remember_training(trained_until)

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        if rankings is not displays.ranking:
            raise BadInput("a logged policy cannot price a ranking that was not shown.")
        return shown_log_prob(self, displays, is_control=False)

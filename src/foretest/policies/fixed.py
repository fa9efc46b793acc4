"""Fixed: the ranking that a column holds, always."""

from __future__ import annotations

from datetime import date

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.policies.one_ranking import OneRanking


class Fixed(OneRanking):
    """Always the row's own list: what another system would show, as it was computed.

    π(a) = 1 for the first K items of the row's own list, 0 for any other ranking.

    Parameters
    ----------
    ranking: the list column with the items that the policy shows, best slot first, at least as many as the display
        shows: positions, or item ids where the log names `candidates`.
    log_prob, prob: the column, if any, with the logged (log-)probability of the shown ranking.
    trained_until: of a treatment, the last day that its model has seen: rows of the log up to it are left out.

    >>> import foretest as ft
    >>> ft.Fixed(ranking="new_list").columns
    ('new_list',)
    """

    def __init__(
        self, ranking: str, *, log_prob: str | None = None, prob: str | None = None,
        trained_until: date | str | None = None,
    ) -> None:  # fmt: skip
        self.ranking = ranking
        self.remember_logged(log_prob, prob)
        self.remember_training(trained_until)

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return (self.ranking,)

    def _list(self, displays: Displays) -> Ragged:
        lists: Ragged = displays[self.ranking]
        return lists

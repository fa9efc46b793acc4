"""As shown: a control that always shows the same, priced by what the rows show and not by what it would show.

Between the model and the page there are filters, caches and fallbacks. Where the control is `top-k` or `fixed`, the
exposure of an item is that of the place where it was shown; how often that is not the policy's own ranking is for the
audit to say.
"""

from __future__ import annotations

from foretest.displays.batch import Displays
from foretest.displays.ragged import Ragged
from foretest.policies.base import Policy, logged_column
from foretest.policies.fixed import Fixed
from foretest.policies.one_ranking import OneRanking
from foretest.policies.own_candidates import without_list
from foretest.policies.top_k import TopK


class AsShown(OneRanking):
    """π(a) = 1 for the ranking that the row shows, 0 for any other."""

    def __init__(self, control: Policy) -> None:
        self._control = control
        self._logged = logged_column(control)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._control.columns

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self._control.score_columns

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return self._control.ranking_columns

    def _list(self, displays: Displays) -> Ragged:
        return displays.ranking


def shows_one_ranking(control: Policy) -> bool:
    """Is the control declared to show one ranking per display, `top-k` or `fixed`?"""
    return isinstance(without_list(control), TopK | Fixed)


def served(control: Policy) -> Policy:
    """The control as weights and marginals are priced by: `AsShown` for `top-k` and `fixed`, else the control itself.

    >>> [type(served(policy)).__name__ for policy in (TopK("scores"), Fixed("ranking"))]
    ['AsShown', 'AsShown']
    """
    return AsShown(control) if shows_one_ranking(control) else control

"""A policy that ranks items of its own: control and treatment may choose from different lists.

Over the union of both lists a policy gives 0 to rankings with an item outside its list. The union of a display is the
control's list followed by the items that only the treatment has, so that what was shown, which is in the control's
list, has the same positions whatever the treatment is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.displays.ragged import Ragged
from foretest.errors import BadInput
from foretest.kernels import own_lists as kernel
from foretest.policies.adapter import as_policy
from foretest.policies.base import Policy, logged_column, marginal_places


class OwnDisplays(NamedTuple):
    """Displays as a policy sees them that has a list of its own."""

    displays: Displays  # rankings are positions in that list
    places: Ragged  # of the list's items in the union
    outside: npt.NDArray[np.bool_]  # shows the display an item that is not in the list? Its ranking is then any


class OwnCandidates(Policy):
    """A policy whose candidates differ from the other policy's.

    The policy over its own list: π(a) of the wrapped policy, 0 for a ranking with an item outside the list.

    Parameters
    ----------
    policy: a policy with scores, one per item of its own list in that order, or `fixed`.
    candidates: the list column with the ids of the policy's own items.

    >>> import foretest as ft
    >>> ft.OwnCandidates(ft.PlackettLuce("new_scores"), candidates="new_items").columns
    ('new_scores',)
    """

    def __init__(self, policy: Any, candidates: str) -> None:
        if not isinstance(candidates, str):
            raise BadInput(f"candidates = {candidates!r}: expected the name of a column.")
        inner = as_policy(policy)
        if not inner.can_draw:
            raise BadInput(
                f'candidates = "{candidates}": a policy without scores has no use for a list of its own; it is for'
                " policies that rank by scores, and for fixed."
            )
        if any(isinstance(part, OwnCandidates) for part in (inner, *(p for _, p in getattr(inner, "components", ())))):
            raise BadInput(
                f'candidates = "{candidates}": a part of the policy has candidates too. Give one list for the whole.'
            )
        self.policy, self.candidates = inner, candidates
        self._logged = logged_column(inner)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.policy.columns

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self.policy.score_columns

    @property
    def ranking_columns(self) -> tuple[str, ...]:
        return self.policy.ranking_columns

    @property
    def components(self) -> tuple[tuple[Any, Policy], ...]:
        """The components of a mixture; none of any other policy."""
        return tuple(getattr(self.policy, "components", ()))

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.policy.deterministic

    def log_prob(self, displays: Displays, rankings: Ragged) -> Floats:
        own = self.own(displays)
        mine, outside = own.displays.ranking, own.outside
        if rankings is not displays.ranking:
            mine, outside = _positions(own.places, rankings)
        answer = np.array(self.policy.log_prob(own.displays, mine), np.float64)
        answer[outside] = -np.inf
        return answer

    def sample(self, displays: Displays, uniforms: Floats) -> Ragged:
        own = self.own(displays)
        drawn = self.policy.sample(own.displays, uniforms)
        row = np.repeat(np.arange(len(drawn)), drawn.lengths)
        return Ragged.packed(own.places.values[own.places.starts[row] + drawn.flat()], drawn.lengths)

    def slot_marginals(self, displays: Displays) -> Ragged:
        """P(item in slot) over the union, 0 for items outside the list; the wrapped policy must know its own."""
        own = self.own(displays)
        marginals: Ragged = self.policy.slot_marginals(own.displays)  # type: ignore[attr-defined]
        starts, out = marginal_places(displays)
        kernel.scatter_marginals(
            marginals.values, marginals.starts, own.places.values, own.places.starts, own.places.lengths,
            displays.slots, displays.eligible, out, starts,
        )  # fmt: skip
        return Ragged(out, starts, displays.eligible * displays.slots)

    def settings(self) -> dict[str, Any]:
        return {**self.policy.settings(), "candidates": self.candidates}

    def __repr__(self) -> str:
        return f"OwnCandidates({self.policy!r}, candidates={self.candidates!r})"

    def list_lengths(self, displays: Displays) -> npt.NDArray[np.int64]:
        """How many items each display's own list has."""
        places: Ragged = displays[places_column(self.candidates)]
        return places.lengths

    def own(self, displays: Displays) -> OwnDisplays:
        """Displays of the union as the wrapped policy sees them."""
        places: Ragged = displays[places_column(self.candidates)]
        ranking, outside = _positions(places, displays.ranking)
        return OwnDisplays(replace(displays, ranking=ranking, eligible=places.lengths), places, outside)


def _positions(places: Ragged, rankings: Ragged) -> tuple[Ragged, npt.NDArray[np.bool_]]:
    """Rankings of the union as positions in a policy's own list, and which of them have an item outside of it."""
    own = np.empty(int(rankings.lengths.sum()), np.int32)
    outside = kernel.own_positions(
        rankings.values, rankings.starts, rankings.lengths, places.values, places.starts, places.lengths, own
    )
    return Ragged.packed(own, rankings.lengths), outside


def places_column(candidates: str) -> str:
    """The column of a display that has the places of a list's items in the union: a name that no log's column has."""
    return f"foretest: places of {candidates}"


def union_column(candidates: str) -> str:
    """The column of a display that has the size of the union of the control's list and another."""
    return f"foretest: union with {candidates}"


def candidates_of(policy: Policy) -> str | None:
    """The list column of a policy's own items; None where all items of the log are its own."""
    return policy.candidates if isinstance(policy, OwnCandidates) else None


def without_list(policy: Policy) -> Policy:
    """The policy that ranks a list of its own, or the policy itself."""
    return policy.policy if isinstance(policy, OwnCandidates) else policy


def with_union(displays: Displays, treatment: Policy) -> Displays:
    """The displays with all items that the control or this treatment may show; as they are where one list is all."""
    if not isinstance(treatment, OwnCandidates):
        return displays
    return replace(displays, eligible=displays[union_column(treatment.candidates)])


def items_of(policy: Policy, displays: Displays) -> npt.NDArray[np.int64]:
    """How many items the policy may show on each display."""
    return policy.list_lengths(displays) if isinstance(policy, OwnCandidates) else displays.eligible

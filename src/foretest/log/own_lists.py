"""Displays whose policies choose from lists of their own: what was shown and each list as places in one union."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.ragged import Ragged, common_codes
from foretest.errors import RowFault
from foretest.formatting import plural
from foretest.kernels.own_lists import union_places
from foretest.log.column_values import SplitLists, eligible_items, lists_of
from foretest.log.shown_rankings import fixed_rankings, shown_rankings
from foretest.policies.own_candidates import OwnCandidates, places_column, union_column
from foretest.settings.settings import Settings

Ints = npt.NDArray[np.int64]


class OwnLists(NamedTuple):
    """What the lists of all policies say of some rows."""

    eligible: Ints  # the control's items
    ranking: Ragged  # what was shown, as positions in the control's list, with which every union begins
    columns: dict[str, Any]  # places and sizes of unions, and fixed rankings as positions in their policy's list


def own_lists(batch: pa.RecordBatch, settings: Settings, columns: dict[str, Any]) -> OwnLists:
    """The lists of some rows, of which `columns` are those that the policies read."""
    policies = [p for p in (settings.control, *settings.treatments.values()) if isinstance(p, OwnCandidates)]
    names = tuple(dict.fromkeys(policy.candidates for policy in policies))  # the control's first
    lists = {name: lists_of(name, batch[name]) for name in names}
    for policy in policies:
        scores = {n: columns[n].lengths for n in policy.columns if isinstance(columns.get(n), Ragged)}
        eligible_items({policy.candidates: lists[policy.candidates].lengths, **scores}, batch.num_rows)
    first = lists[names[0]]
    ranking = shown_rankings(batch, replace(settings.log, candidates=names[0]), first.lengths, known=True)
    more: dict[str, Any] = {}
    for name in names:
        _refuse_short(name, lists[name].lengths, ranking.lengths)
        more |= _places(name, lists[name], first)
    for policy in policies:
        of_policy = replace(settings.log, candidates=policy.candidates)
        own = lists[policy.candidates].lengths
        for name in policy.ranking_columns:
            more[name] = fixed_rankings(batch, name, of_policy, own, True, ranking.lengths)
    return OwnLists(first.lengths, ranking, more)


def _places(name: str, own: SplitLists, first: SplitLists) -> dict[str, Any]:
    """The columns of one list: where its items are in the union with the control's list, and how large that is."""
    codes, first_codes = common_codes(own.values, first.values)
    places, size, repeated = union_places(codes, own.starts, own.lengths, first_codes, first.starts, first.lengths)
    if repeated.any():
        raise RowFault("candidates-repeat", name, np.flatnonzero(repeated),
                       "a candidate is listed twice", "List each eligible item once.")  # fmt: skip
    return {places_column(name): Ragged.packed(places, own.lengths), union_column(name): size}


def _refuse_short(name: str, items: Ints, slots: Ints) -> None:
    short = np.flatnonzero(items < slots)
    if len(short):
        has, shows = int(items[short[0]]), int(slots[short[0]])
        raise RowFault("candidates-short", name, short,
                       f"the list has {plural(has, 'candidate')}, but the row shows {shows}",
                       "A policy needs an item for every slot: complete its candidates, or leave the row out."
                       )  # fmt: skip

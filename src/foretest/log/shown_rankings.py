"""What each row shows or would show, and what each of its slots earned, checked in every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.batch import Floats
from foretest.displays.keys import refuse_nulls
from foretest.displays.ragged import Ragged, common_codes, integers, is_list, numbers, plain
from foretest.errors import RowFault
from foretest.formatting import plural
from foretest.kernels.checks import positions_in, ranking_faults, slot_faults
from foretest.log.column_values import SplitLists, lists_of
from foretest.log.reward_parts import least_reward
from foretest.settings.log_columns import LogColumns
from foretest.settings.settings import Settings

MOST_ITEMS = 10_000  # of a row without a list of items: larger numbers are ids
_TOO_FAR = f"is beyond {MOST_ITEMS:,}, and the row has no list of items"


def shown_rankings(batch: pa.RecordBatch, log: LogColumns, eligible: npt.NDArray[np.int64], known: bool) -> Ragged:
    """Rankings as positions into the row's lists; `known`: does `eligible` say how many items a row has?"""
    assert log.ranking is not None
    return _checked(
        batch, log.ranking, _positions(batch, log.ranking, log.candidates, "shown item"), log, eligible, known
    )


def fixed_rankings(
    batch: pa.RecordBatch, name: str, log: LogColumns, eligible: npt.NDArray[np.int64], known: bool,
    slots: npt.NDArray[np.int64],
) -> Ragged:  # fmt: skip
    """The rankings of a policy that always shows the same, from a column: an item at least for every shown slot."""
    ranking = _positions(batch, name, log.candidates, "item")
    short = np.flatnonzero(ranking.lengths < slots)
    if len(short):
        has, shows = int(ranking.lengths[short[0]]), int(slots[short[0]])
        raise RowFault(
            "fixed-short", name, short,
            f"the fixed ranking has {plural(has, 'item')}, but the row shows {shows}",
            "A fixed ranking holds an item for every slot that is shown, best slot first: give it in full, or leave"
            " the row out.",
        )  # fmt: skip
    return _checked(batch, name, ranking, log, eligible, known)


def items_reached(rankings: dict[str, Ragged]) -> npt.NDArray[np.int64]:
    """How many items each row has at least, from the positions in its rankings: for rows without any list of items."""
    items = np.zeros(len(next(iter(rankings.values()))), np.int64)
    for name, ranking in rankings.items():
        last = ranking.padded(-1).max(axis=1, initial=-1).astype(np.int64)
        far = np.flatnonzero(last >= MOST_ITEMS)
        if len(far):
            raise RowFault(
                "position-far", name, far,
                f"the position {last[far[0]]} {_TOO_FAR}",
                _RANKING_REMEDY[False],
            )  # fmt: skip
        items = np.maximum(items, last + 1)
    return items


def _checked(
    batch: pa.RecordBatch, name: str, ranking: Ragged, log: LogColumns, eligible: npt.NDArray[np.int64], known: bool
) -> Ragged:
    """Rankings of which none is empty, too long, out of range or repeats an item."""
    items = eligible if known else np.full(len(ranking), -1)
    fault = ranking_faults(ranking.values, ranking.starts, ranking.lengths, items)
    for code in sorted({*fault[fault > 0].tolist()}):
        rows = np.flatnonzero(fault == code)
        at = int(rows[0])
        single = bool((ranking.lengths == 1).all())
        what = _ranking_fault(code, _items_of(batch[name][at]), int(eligible[at]) if known else None, single)
        remedy = _ACTION_REMEDY if single and log.candidates is None else _RANKING_REMEDY[log.candidates is not None]
        raise RowFault(f"ranking-{code}", name, rows, what, remedy)
    return ranking


def _positions(batch: pa.RecordBatch, name: str, candidates: str | None, called: str) -> Ragged:
    """A column of rankings as positions; ids, called so in messages, are looked up among the row's candidates."""
    values, starts, lengths = _lists_or_ones(name, batch[name])
    if candidates is None:
        return Ragged(integers(values), starts, lengths)
    items, item_starts, item_lengths = lists_of(candidates, batch[candidates])
    item_codes, shown_codes = common_codes(items, values)
    place, absent, repeated = positions_in(shown_codes, starts, lengths, item_codes, item_starts, item_lengths)
    if repeated.any():
        raise RowFault("candidates-repeat", candidates, np.flatnonzero(repeated),
                       "a candidate is listed twice", "List each eligible item once.")  # fmt: skip
    rows = np.flatnonzero(absent & (lengths <= item_lengths))
    if len(rows):
        listed = batch[candidates][int(rows[0])].as_py()
        item = next(item for item in _items_of(batch[name][int(rows[0])]) if item not in listed)
        raise RowFault("ranking-absent", name, rows,
                       f"the {called} {item!r} is not among the row's candidates (column '{candidates}')",
                       "Add it to the candidates, or leave the row out.")  # fmt: skip
    return Ragged.packed(place, lengths)


def _lists_or_ones(name: str, array: pa.Array) -> SplitLists:
    """A list column; a plain one, such as the action in the log of a bandit, has a list of one in each row."""
    if not is_list(array.type):
        array = plain(array)  # a dictionary may hold a null
        refuse_nulls(name, array)
        return SplitLists(array, np.arange(len(array)), np.ones(len(array), np.int64))
    return lists_of(name, array)


def _items_of(shown: pa.Scalar) -> list[Any]:
    """What one row shows, also where the column is a plain one."""
    items = shown.as_py()
    return items if isinstance(items, list) else [items]


def slot_rewards(
    batch: pa.RecordBatch, settings: Settings, shown: npt.NDArray[np.int64], rewards: Floats
) -> dict[int, Ragged]:
    """What each slot earned, by metric: one entry per shown item, 0 or more, in sum the reward of the row."""
    by_metric, log = {}, settings.log
    for metric, name in (log.slot_rewards or {}).items():
        m = log.rewards.index(metric)
        values, starts, lengths = _lists_or_ones(name, batch[name])
        lists = Ragged(numbers(values), starts, lengths)
        if least_reward(settings, metric) < 0.0:
            fault = _signed_slot_faults(lists, shown, rewards[:, m])
        else:
            fault = slot_faults(lists.values, lists.starts, lists.lengths, shown, rewards[:, m])
        for code in sorted({*fault[fault > 0].tolist()}):
            rows = np.flatnonzero(fault == code)
            at = int(rows[0])
            what, remedy = _slot_fault(code, lists[at], int(shown[at]), metric, float(rewards[at, m]))
            if code == 1 and not is_list(batch[name].type):
                what = f"the column has one number per row, but the row shows {int(shown[at])} items"
            raise RowFault(f"slots-{code}", name, rows, what, remedy)
        by_metric[m] = lists
    return by_metric


def _signed_slot_faults(lists: Ragged, shown: npt.NDArray[np.int64], rewards: Floats) -> npt.NDArray[Any]:
    """The faults of slots whose rewards may be negative: those of their sizes, and of their sum."""
    sizes = np.abs(lists.flat().astype(np.float64))
    row = np.repeat(np.arange(len(lists)), lists.lengths)
    size, total = (
        np.bincount(row, weights=values, minlength=len(lists)) for values in (sizes, lists.flat().astype(np.float64))
    )
    whole = Ragged.packed(sizes, lists.lengths)
    fault = np.array(slot_faults(whole.values, whole.starts, whole.lengths, shown, size))
    other_sum = np.abs(total - rewards) > 1e-6 * np.maximum(size, np.abs(rewards))
    fault[(fault == 0) & other_sum] = 4  # not the reward in sum
    return fault


_RANKING_REMEDY = {
    False: "A ranking holds distinct positions into the row's lists, from 0, best slot first; if these are item ids,"
    " name the column of eligible ids in [log] candidates.",
    True: "A ranking holds distinct ids of the row's candidates, best slot first.",
}
_ACTION_REMEDY = (
    "An action is a position in the row's lists, from 0; if these are ids, name the column of eligible ids in [log]"
    " candidates."
)


def _ranking_fault(code: int, ranking: list[Any], eligible: int | None, single: bool) -> str:
    """What is wrong with a row's ranking, by the codes of `ranking_faults`; `single`: do all rows show one action?"""
    items = f"{eligible} eligible {'action' if single else 'item'}{'' if eligible == 1 else 's'}"
    if code == 1:
        return "the ranking is empty"
    if code == 2:
        return f"the ranking shows {len(ranking)} items, more than the row's {items}"
    if code == 3:
        limit = MOST_ITEMS if eligible is None else eligible  # without a list, only what fits no position comes here
        place = next(place for place in ranking if place < 0 or place >= limit)
        where = f"the action {place}" if single else f"the position {place} in the ranking"
        if eligible is not None:
            return f"{where} is outside the row's lists of {items}"
        return f"{where} is negative" if place < 0 else f"{where} {_TOO_FAR}"
    return f"the ranking shows the item {next(i for i in ranking if ranking.count(i) > 1)!r} twice"


def _slot_fault(code: int, slots: npt.NDArray[Any], shown: int, metric: str, reward: float) -> tuple[str, str]:
    """What is wrong with the rewards of a row's slots, by the codes of `slot_faults`, and what to do."""
    if code == 1:
        what = f"the list has length {len(slots)}, but the row shows {shown} item{'' if shown == 1 else 's'}"
        return what, "Give one number for each shown slot, in the ranking's order, 0 where it earned nothing."
    if code == 2:
        return "the reward of a slot is NaN or infinite", "Every slot needs a finite number, 0 where it earned nothing."
    if code == 3:
        what = f"the reward of a slot is negative ({slots.min():g})"
        return what, f"Rewards must be 0 or more. If it may have losses, write [metrics.{metric}] signed = true."
    what = f"the slots sum to {float(slots.astype(np.float64).sum()):g}, but the reward '{metric}' is {reward:g}"
    return what, "The slots must share out the row's whole reward: fix them, or take slot_rewards out of [log]."

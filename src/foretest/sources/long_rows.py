"""Logs with one row per display and item, folded to one row per display.

Rows come sorted by display and item (DuckDB sorts, on disk where they are many), so that what a display's items have is
a slice of a column: lists are the columns themselves, with other offsets. Only the order of the shown items is looked
up. Batches hold whole displays: the rows of the last display wait for the next batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.arrow_numbers import to_arrow
from foretest.errors import BadInput, RowFault
from foretest.records import dataclass
from foretest.sources.long_times import FirstRewards, LongTimes, fold_times

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LongColumns:
    """Which columns of a long log are what; any other has one value per display."""

    display: str
    item: str
    slot: str
    first_slot: int
    rewards: tuple[str, ...]
    by_item: tuple[str, ...]  # a value for each item: lists in the order of the items
    by_slot: tuple[str, ...]  # a value for each shown item: lists in the order of the slots
    ranking: str  # the names of new columns: the positions of the shown items, and what each slot earned
    slot_rewards: dict[str, str]
    times: LongTimes | None = None  # where rows say when rewards came

    def needed(self, columns: Sequence[str]) -> list[str]:
        """The columns of the long log behind columns of the folded one."""
        made = {self.ranking: self.slot, **{name: reward for reward, name in self.slot_rewards.items()}}
        times = [] if self.times is None else [self.times.time, *self.times.rewards.values()]
        names = [self.display, self.item, self.slot, *self.rewards, *times]
        names += [made.get(name, name) for name in columns]
        return list(dict.fromkeys(names))

    def schema(self, long: pa.Schema, columns: Sequence[str]) -> pa.Schema:
        """The schema of the folded log, from that of the long one."""
        return pa.schema([(name, self._type(long, name)) for name in columns])

    def _type(self, long: pa.Schema, name: str) -> pa.DataType:
        if name == self.ranking:
            return pa.list_(pa.int32())
        if name in self.slot_rewards.values():
            return pa.list_(pa.float64())
        if name in self.rewards:
            return pa.float64()
        kind = long.field(name).type
        if self.times is not None and name in self.times.rewards.values():
            return self.times.folded_type(kind)
        return pa.list_(kind) if name == self.item or name in (*self.by_item, *self.by_slot) else kind


@dataclass
class Marks:
    """What all displays of a long log have in common, as far as they were folded."""

    all_shown: bool = True  # no display has a candidate beyond the items that it shows
    one_zero: bool = True  # every display has one row of slot 0
    has_null: bool = False  # some rows have no slot
    displays: int = 0

    def refuse_first_slot(self, source: str, columns: LongColumns) -> None:
        """Refuse rows of slot 0 that look like the best slot: one in every display, beside rows without a slot."""
        if self.displays and columns.first_slot == 1 and self.one_zero and self.has_null:
            raise BadInput(
                f"{source}: column '{columns.slot}': every display has one row of slot 0, and candidates without a"
                " slot. Where 0 is the best slot, add first_slot = 0 to [log]; where it means that an item was not"
                " shown, write null."
            )

    def notes(self, columns: LongColumns) -> list[str]:
        """What a reader should ask of such a log."""
        if not self.displays:
            return []
        notes = []
        if self.all_shown:
            notes.append(
                "every item of every display was shown: the log has no other candidate. If other items were eligible,"
                " the log lacks them, and the probabilities of what was shown are too large: add a row with a null slot"
                " for each."
            )
        if columns.first_slot == 1 and self.one_zero:
            notes.append(
                f"every display has one row whose '{columns.slot}' is 0, which is read as not shown. Where 0 is the"
                " best slot, add first_slot = 0 to [log]."
            )
        return notes


class _Shown(NamedTuple):
    """The shown rows of some displays, by display and slot."""

    rows: Ints
    counts: Ints  # of each display


@dataclass(frozen=True)
class _Displays:
    """Long rows of whole displays."""

    rows: pa.Table
    columns: LongColumns
    source: str
    marks: Marks

    def fault(self, column: str, row: int, what: str, remedy: str) -> BadInput:
        """A fault of one display."""
        display = self.rows[self.columns.display][row].as_py()
        return BadInput(f"{self.source}: column '{column}', display {display!r}: {what}. {remedy}")

    def folded(self, columns: Sequence[str]) -> pa.RecordBatch:
        """One row per display, with these columns."""
        starts = _starts(self.rows[self.columns.display])
        owner = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(self.rows))))
        self._refuse_items(owner)
        shown = self._shown(starts, owner)
        self.marks.displays += len(starts)
        self.marks.all_shown &= len(shown.rows) == len(owner)
        earned = {name: self._rewards(name, shown) for name in self.columns.rewards}
        times = self.columns.times
        first = None if times is None else self._first_rewards(times, starts, owner, earned)
        arrays = [self._array(name, starts, owner, shown, earned, first) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.columns.schema(self.rows.schema, columns))

    def _array(
        self, name: str, starts: Ints, owner: Ints, shown: _Shown, earned: dict[str, Any], first: FirstRewards | None
    ) -> pa.Array:
        c, offsets = self.columns, np.append(starts, len(self.rows)).astype(np.int32)
        slots = np.append(0, np.cumsum(shown.counts)).astype(np.int32)
        if name == c.ranking:
            return pa.ListArray.from_arrays(slots, to_arrow((shown.rows - starts[owner[shown.rows]]).astype(np.int32)))
        for reward, by_slot in c.slot_rewards.items():
            if name == by_slot:
                return pa.ListArray.from_arrays(slots, to_arrow(earned[reward][shown.rows]))
        if name in c.rewards:
            return to_arrow(np.bincount(owner, weights=earned[name], minlength=len(starts)))
        if first is not None and name in first.columns:
            return first.columns[name]
        values = self.rows[name].combine_chunks()
        if name in c.by_slot:
            return pa.ListArray.from_arrays(slots, self._without_null(name, values.take(to_arrow(shown.rows))))
        if name == c.item or name in c.by_item:
            return pa.ListArray.from_arrays(offsets, self._without_null(name, values))
        return self._of_display(name, values, starts, owner)

    def _first_rewards(
        self, times: LongTimes, starts: Ints, owner: Ints, earned: dict[str, npt.NDArray[np.float64]]
    ) -> FirstRewards:
        """When the first rewards of displays came; what came too late is taken out of `earned`."""
        values = self.rows[times.time].combine_chunks()
        shown = self._of_display(times.time, values, starts, owner).take(to_arrow(owner))
        columns = {name: self.rows[name].combine_chunks() for name in times.rewards.values()}
        try:
            return fold_times(times, shown, columns, earned, owner, len(starts))
        except RowFault as fault:
            raise self.fault(fault.column, int(fault.rows[0]), fault.what, fault.remedy) from None

    def _without_null(self, name: str, values: pa.Array) -> pa.Array:
        if values.null_count:
            row = int(np.flatnonzero(np.asarray(values.is_null()))[0])
            raise self.fault(name, row, "an item has no value", "Every item of a display needs one.")
        if pa.types.is_floating(values.type):
            wrong = np.flatnonzero(~np.isfinite(np.asarray(values)))
            if len(wrong):
                value = "NaN" if np.isnan(values[int(wrong[0])].as_py()) else "infinite"
                raise self.fault(name, int(wrong[0]), f"the value of an item is {value}", "Values must be finite.")
        return values

    def _of_display(self, name: str, values: pa.Array, starts: Ints, owner: Ints) -> pa.Array:
        """The one value that a display has; items without one, which were not shown, have none of their own."""
        if pa.types.is_null(values.type):
            return pa.nulls(len(starts))
        import pyarrow.compute as pc

        present = np.flatnonzero(np.asarray(values.is_valid()))
        first = np.full(len(starts), -1, np.int64)
        first[owner[present][::-1]] = present[::-1]
        other = values.take(to_arrow(first[owner[present]]))
        own = values.take(to_arrow(present))
        differs = np.flatnonzero(np.asarray(pc.not_equal(own, other)) & ~(_is_nan(own) & _is_nan(other)))
        if len(differs):
            one, two = other[differs[0]].as_py(), values[present[differs[0]]].as_py()
            raise self.fault(
                name, int(present[differs[0]]), f"it is {one!r} and {two!r} in one display",
                "All rows of a display have one value; of a value for each item name the policy's scores.",
            )  # fmt: skip
        return values.take(pa.array(first, mask=first < 0))

    def _refuse_items(self, owner: Ints) -> None:
        """Refuse items that are null, or that a display lists twice."""
        import pyarrow.compute as pc

        items = self.rows[self.columns.item].combine_chunks()
        if items.null_count:
            row = int(np.flatnonzero(np.asarray(items.is_null()))[0])
            raise self.fault(self.columns.item, row, "an item is null", "Every row is about one item.")
        same = np.asarray(pc.equal(items[1:], items[:-1])) if len(items) > 1 else np.zeros(0, np.bool_)
        twice = np.flatnonzero(same & (owner[1:] == owner[:-1]))
        if len(twice):
            raise self.fault(
                self.columns.item, int(twice[0]), f"the item {items[int(twice[0])].as_py()!r} is listed twice",
                "A display lists each item once, with the slot where it was shown.",
            )  # fmt: skip

    def _shown(self, starts: Ints, owner: Ints) -> _Shown:
        """The shown rows in the order of their slots, which are complete and distinct."""
        name, first = self.columns.slot, self.columns.first_slot
        column = self.rows[name].combine_chunks()
        slot = _floats(column, np.nan)
        missing = np.isnan(slot)  # of a dataframe of pandas NaN too
        self.marks.has_null |= bool(missing.any())
        self.marks.one_zero &= bool((np.bincount(owner[slot == 0.0], minlength=len(starts)) == 1).all())
        slot[missing] = -1.0 if first == 0 else 0.0
        is_shown = slot >= first
        odd = np.flatnonzero(((slot != np.floor(slot)) | (slot < min(first, 0))) & ~missing)
        if len(odd):
            raise self.fault(name, int(odd[0]), f"a slot is {slot[odd[0]]:g}", _SLOTS.format(first))
        rows = np.flatnonzero(is_shown)
        rows = rows[np.lexsort((slot[rows], owner[rows]))]
        counts = np.bincount(owner[rows], minlength=len(starts))
        without = np.flatnonzero(counts == 0)
        if len(without):
            zero = " Where the best slot is 0, add first_slot = 0 to [log]." if first == 1 else ""
            raise self.fault(
                name, int(starts[without[0]]), "no item was shown",
                f"Every display shows an item, in slot {first}; leave others out.{zero}",
            )  # fmt: skip
        expected = first + np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        wrong = np.flatnonzero(slot[rows] != expected)
        if len(wrong):
            at = int(wrong[0])
            before = at > 0 and owner[rows[at - 1]] == owner[rows[at]] and slot[rows[at - 1]] == slot[rows[at]]
            what = f"slot {slot[rows[at]]:g} occurs twice" if before else f"slot {expected[at]:g} is missing"
            raise self.fault(name, int(rows[at]), what, _SLOTS.format(first))
        return _Shown(rows, counts)

    def _rewards(self, name: str, shown: _Shown) -> npt.NDArray[np.float64]:
        """What every row earned, 0 where it is null."""
        column = self.rows[name].combine_chunks()
        earned = _floats(column, 0.0)
        odd = np.flatnonzero(~(np.isfinite(earned) & (earned >= 0.0)))
        if len(odd):
            value = "NaN" if np.isnan(earned[odd[0]]) else f"{earned[odd[0]]:g}"
            raise self.fault(name, int(odd[0]), f"a reward is {value}", "Rewards are finite, and 0 or more.")
        nothing = np.ones(len(earned), np.bool_)
        nothing[shown.rows] = False
        wrong = np.flatnonzero(nothing & (earned != 0.0))
        if len(wrong):
            item = self.rows[self.columns.item][int(wrong[0])].as_py()
            raise self.fault(
                name, int(wrong[0]), f"the item {item!r} has a reward and was not shown",
                "Only shown items can earn: check the join of rewards, and the column of slots (where the best slot is"
                " 0, add first_slot = 0).",
            )  # fmt: skip
        return earned


_SLOTS = "The slots of a display count on from {}, each once; of a candidate that was not shown the slot is null."


def _floats(column: pa.Array, null: float) -> npt.NDArray[np.float64]:
    """Numbers of any type, the nearest that a float has; another in place of null."""
    return np.array(column.cast(pa.float64(), safe=False).fill_null(null))


def _is_nan(values: pa.Array) -> npt.NDArray[np.bool_]:
    """The values that are NaN, which equals nothing."""
    if not pa.types.is_floating(values.type):
        return np.zeros(len(values), np.bool_)
    return np.isnan(np.asarray(values, np.float64))


def _starts(display: pa.ChunkedArray) -> Ints:
    """Where each display begins among sorted rows."""
    import pyarrow.compute as pc

    column = display.combine_chunks()
    changes = np.asarray(pc.not_equal(column[1:], column[:-1])) if len(column) > 1 else np.zeros(0, np.bool_)
    return np.append(0, np.flatnonzero(changes) + 1).astype(np.int64) if len(column) else np.zeros(0, np.int64)


def fold_displays(
    batches: Iterator[pa.RecordBatch], long: LongColumns, source: str, columns: Sequence[str], marks: Marks
) -> Iterator[pa.RecordBatch]:
    """Batches of displays from batches of long rows that are sorted by display and item; what they have in common is
    added to the marks."""
    waiting: pa.Table | None = None
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if rows[long.display].null_count:
            raise BadInput(f"{source}: column '{long.display}': a row has no display. Every row belongs to one.")
        rows = rows if waiting is None else pa.concat_tables([waiting, rows]).combine_chunks()
        starts = _starts(rows[long.display])
        last = int(starts[-1]) if len(starts) else 0
        if last:
            yield _Displays(rows.slice(0, last).combine_chunks(), long, source, marks).folded(columns)
        waiting = rows.slice(last)
    if waiting is not None and len(waiting):
        yield _Displays(waiting.combine_chunks(), long, source, marks).folded(columns)
    marks.refuse_first_slot(source, long)

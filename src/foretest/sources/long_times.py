"""When the rewards of a long log came: a time of the display, and one of the reward in each item's row.

A folded display has the time of its first reward. Under a window, rewards of its other items that came too late are
taken out as it is folded; where the first is too late already, all are, and the reader takes them out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.batch import Floats
from foretest.displays.durations import SECOND
from foretest.displays.reward_times import ages_as_given, ages_by_time, refuse_untimed
from foretest.displays.times import Instants, Ints, instants, is_time
from foretest.errors import RowFault
from foretest.records import dataclass

_TIMES = pa.timestamp("us", "UTC")
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class LongTimes:
    """Which columns of a long log say when."""

    time: str  # of the display
    rewards: Mapping[str, str]  # by reward, the column that says when it came
    as_ages: bool  # in seconds after the display, and not as times?
    window: int | None  # microseconds

    def folded_type(self, kind: pa.DataType) -> pa.DataType:
        """The type of a reward's column in the folded log; one that is wrong stays, to be refused by its name."""
        if self.as_ages:
            return kind if is_time(kind) else pa.float64()
        return _TIMES if is_time(kind) else kind


@dataclass(frozen=True)
class FirstRewards:
    """When the first rewards of some displays came, as columns of the folded log."""

    columns: dict[str, pa.Array]


def fold_times(
    times: LongTimes, shown: pa.Array, columns: Mapping[str, pa.Array], earned: dict[str, Floats], owner: Ints,
    displays: int,
) -> FirstRewards:  # fmt: skip
    """The first reward of each display by column; what came after the window, in a display whose first reward did not,
    is taken out of `earned`. `shown` has the display's time for each row, `owner` its display."""
    when = instants(times.time, shown)
    if not when.is_there.all():
        rows = np.flatnonzero(~when.is_there)
        raise RowFault("time-null", times.time, rows, "the time of the display is null",
                       "Every display needs one: fill it, or leave the display out.")  # fmt: skip
    folded = {}
    for column, array in columns.items():
        rewards = [reward for reward, name in times.rewards.items() if name == column]
        ages = ages_as_given(column, array) if times.as_ages else ages_by_time(column, array, when.values)
        for reward in rewards:
            refuse_untimed(reward, column, earned[reward], ages)
        first = _first(ages, np.any([earned[reward] != 0.0 for reward in rewards], axis=0), owner, displays)
        if times.window is not None:
            late = (ages.values > times.window) & (first[owner] <= times.window)
            for reward in rewards:
                earned[reward] = np.where(late, 0.0, earned[reward])
        folded[column] = _column(times, first, when.values, owner)
    return FirstRewards(folded)


def _first(ages: Instants, has_reward: npt.NDArray[np.bool_], owner: Ints, displays: int) -> Ints:
    """The smallest age of a reward of each display."""
    first = np.full(displays, _NEVER)
    np.minimum.at(first, owner[has_reward], ages.values[has_reward])
    return first


def _column(times: LongTimes, first: Ints, when: Ints, owner: Ints) -> pa.Array:
    none = first == _NEVER
    ages = np.where(none, 0, first)
    if times.as_ages:
        return pa.array(ages / SECOND, mask=none)
    shown = np.zeros(len(first), np.int64)
    shown[owner] = when
    return pa.array(shown + ages, pa.int64(), mask=none).cast(_TIMES)

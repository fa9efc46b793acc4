"""How long after its display each reward came, in microseconds, from a column of times or of ages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from foretest.displays.arrow_numbers import filled
from foretest.displays.batch import Floats
from foretest.displays.durations import SECOND, instant_text
from foretest.displays.ragged import numbers, plain
from foretest.displays.times import Instants, Ints, instants
from foretest.errors import RowFault

LONGEST = 1e11  # seconds of a reward's age: beyond it is no age


def ages_by_time(name: str, array: pa.Array, shown: Ints) -> Instants:
    """Ages from a column with the time of the reward; a reward before its display is a fault."""
    came = instants(name, array)
    early = np.flatnonzero(came.is_there & (came.values < shown))
    if len(early):
        at = early[0]
        was = f"{instant_text(int(came.values[at]))}, before the display's time {instant_text(int(shown[at]))}"
        raise RowFault("reward-before-display", name, early, f"the reward is of {was}",
                       "No reward comes before its display: check the join, and the time zones (a time without one is"
                       " in UTC).")  # fmt: skip
    return Instants(np.where(came.is_there, came.values - shown, 0), came.is_there)


def ages_as_given(name: str, array: pa.Array) -> Instants:
    """Ages from a column that has them in seconds; none where they are null or NaN.

    >>> ages_as_given("age", pa.array([1.5, None, float("nan")])).values.tolist()
    [1500000, 0, 0]
    """
    seconds: Floats = numbers(filled(plain(array).cast(pa.float64(), safe=False), np.nan))
    wrong = np.flatnonzero((seconds < 0.0) | (seconds > LONGEST))
    if len(wrong):
        value = seconds[wrong[0]]
        what = "negative" if value < 0.0 else "beyond any age"
        raise RowFault("reward-age", name, wrong, f"the age of the reward is {what} ({value:g})",
                       "It is the number of seconds from the display to the reward, null where there is none."
                       )  # fmt: skip
    is_there = ~np.isnan(seconds)
    return Instants(np.rint(np.where(is_there, seconds, 0.0) * SECOND).astype(np.int64), is_there)


def refuse_untimed(reward: str, column: str, rewards: Floats, ages: Instants) -> None:
    """Refuse rows with a reward of which nobody knows when it came."""
    rows = np.flatnonzero((rewards != 0.0) & ~ages.is_there)
    if len(rows):
        raise RowFault("reward-without-time", column, rows, f"the row has a reward in '{reward}' and no time of it",
                       "Every reward needs one: fill it, or leave the row out.")  # fmt: skip

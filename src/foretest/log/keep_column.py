"""The probability with which each row was kept when the log was thinned: [log] keep."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from foretest.displays.batch import Floats
from foretest.displays.keys import refuse_nulls
from foretest.displays.ragged import numbers
from foretest.errors import RowFault

LEAST = 1e-12  # no log keeps a row more rarely: such a number is a zero that was floored


def displays_of_kept(name: str, array: pa.Array) -> Floats:
    """1/keep of each row: how many displays it stands for. A row whose keep is no probability above 0 is a fault.

    >>> displays_of_kept("keep", pa.array([1.0, 0.05])).tolist()
    [1.0, 20.0]
    """
    refuse_nulls(name, array)
    keep = numbers(array).astype(np.float64, copy=False)
    wrong = np.flatnonzero(~((keep >= LEAST) & (keep <= 1.0)))
    if len(wrong):
        raise _fault(name, keep, wrong)
    return np.asarray(1.0 / keep)


def _fault(name: str, keep: Floats, wrong: np.ndarray) -> RowFault:
    """The fault of the first wrong row, with all rows that share it."""
    first = keep[wrong[0]]
    what = "the probability with which the row was kept"
    if np.isnan(first):
        rows = np.flatnonzero(np.isnan(keep))
        return RowFault("keep-nan", name, rows, f"{what} is NaN", "Every row needs one: fill it, or leave the row out.")
    if first > 1.0:
        rows = np.flatnonzero(keep > 1.0)
        return RowFault("keep-above-one", name, rows, f"{what} is {first:g}, above 1",
                        "It is a share: of 5 % write 0.05, and of a weight w write 1/w.")  # fmt: skip
    rows = np.flatnonzero(keep < LEAST)
    return RowFault("keep-zero", name, rows, f"{what} is {first:g}, and that of a row in the log is above 0",
                    "A row that was never thinned has 1: fix it, or leave the row out.")  # fmt: skip

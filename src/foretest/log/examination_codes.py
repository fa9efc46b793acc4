"""Which examination curve each display has, by the value of a column, and whether it is long enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from foretest.displays.batch import Displays
from foretest.displays.keys import refuse_nulls
from foretest.errors import RowFault, nearest
from foretest.log.column_values import label_codes
from foretest.settings.examination import curves_of
from foretest.settings.settings import Settings
from foretest.weights.examination import Curves, code_column


def curve_codes(batch: pa.RecordBatch, settings: Settings, displays: Displays) -> dict[str, npt.NDArray[Any]]:
    """The columns of displays with the number of each one's curve; a display without one, or with one that is shorter
    than what it shows, is a fault of its row."""
    log, setting = settings.log, settings.analysis.examination
    every = [curves_of(setting, name) for name in log.rewards if name in (log.slot_rewards or {})]
    codes: dict[str, npt.NDArray[Any]] = {}
    for curves in dict.fromkeys(curves for curves in every if curves is not None):
        if curves.column is not None:
            codes[code_column(curves.column)] = _codes(curves.column, batch[curves.column], curves)
        row_codes = codes[code_column(curves.column)] if curves.column is not None else np.zeros(len(displays), int)
        _refuse_short(curves, row_codes, displays, log.ranking or "")
    return codes


def _codes(column: str, array: pa.Array, curves: Curves) -> npt.NDArray[np.int64]:
    coded = label_codes(array, curves.labels)
    unknown = np.flatnonzero(coded < 0)
    if len(unknown):
        value = array[int(unknown[0])].as_py()
        if value is None:
            refuse_nulls(column, array)
        raise RowFault(
            "curve-unknown", column, unknown,
            f"the value '{value}' has no examination curve (there are curves for {', '.join(curves.labels)})",
            "Add a curve for it to [analysis] examination, or leave its rows out."
            f"{nearest(str(value), curves.labels)}",
        )  # fmt: skip
    return coded


def _refuse_short(curves: Curves, codes: npt.NDArray[Any], displays: Displays, ranking: str) -> None:
    lengths = np.array([len(theta) for theta in curves.thetas])[codes]
    short = np.flatnonzero(displays.slots > lengths)
    if len(short):
        at = int(short[0])
        whose = f" for '{curves.labels[int(codes[at])]}'" if curves.column is not None else ""
        raise RowFault(
            "curve-short", ranking, short,
            f"the row shows {displays.slots[at]} items, and the examination curve{whose} has {lengths[at]}"
            f" number{'' if lengths[at] == 1 else 's'}",
            "Give [analysis] examination one number for each slot.",
        )  # fmt: skip

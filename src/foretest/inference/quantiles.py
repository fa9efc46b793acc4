"""Quantiles and medians, to the last bit those of NumPy, whose own functions import masked arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats


def quantiles(values: Floats, levels: Sequence[float]) -> Floats:
    """Linear quantiles along the last axis, one for each level; NaN where a value is.

    >>> quantiles(np.array([3.0, 1.0, 2.0, 4.0]), [0.0, 0.5, 0.9]).tolist()
    [1.0, 2.5, 3.7]
    """
    last = values.shape[-1] - 1
    place = np.asarray(levels) * last
    below = place.astype(np.intp)
    above, share = np.minimum(below + 1, last), place - below
    ordered = np.partition(values, sorted({*below.tolist(), *above.tolist(), last}), axis=-1)  # NaN comes last
    low, high = ordered[..., below], ordered[..., above]
    step = high - low
    between = np.where(share < 0.5, low + step * share, high - step * (1.0 - share))
    return np.where(np.isnan(ordered[..., -1:]), np.nan, between)


def median(values: npt.NDArray[np.floating]) -> float:
    """The mean of the two values in the middle, or the one; NaN where a value is.

    >>> median(np.array([3.0, 1.0, 2.0, 4.0]))
    2.5
    """
    last = len(values) - 1
    middle = [last // 2, (last + 1) // 2]
    ordered = np.partition(values, [*middle, last])
    return float(ordered[middle].mean()) if ordered[-1] == ordered[-1] else np.nan

"""What several estimators ask of one batch of displays, found once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats


class BatchDraws:
    """Of one batch of displays, found when first asked for: w of two-sided draws, and the most that log w can be."""

    def __init__(self, displays: Displays) -> None:
        self.displays = displays
        self.most: Floats | None = None
        self._held: Floats | None = None
        self._known = np.zeros(len(displays), np.bool_)

    def missing(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those of the rows whose weights have yet to be drawn."""
        return np.asarray(rows[~self._known[rows]])

    def put(self, rows: npt.NDArray[np.int64], w: Floats) -> None:
        if len(rows) == len(self.displays):  # all at once: no copy
            self._held = w
        else:
            if self._held is None:
                self._held = np.empty((len(self.displays), w.shape[1]))
            self._held[rows] = w
        self._known[rows] = True

    def of(self, rows: npt.NDArray[np.int64]) -> Floats:
        assert self._held is not None
        return self._held if len(rows) == len(self.displays) else self._held[rows]

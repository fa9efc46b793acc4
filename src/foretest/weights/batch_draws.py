"""What was drawn and enumerated for one batch of displays: made once, shared by all estimators that need it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Displays, Floats
from foretest.weights.enumeration import Priced


class BatchDraws:
    """For one batch of displays, filled when first needed: w of two-sided draws, and the most that log w can be; the
    probabilities of all rankings of rows that are enumerated through `log_prob`."""

    def __init__(self, displays: Displays) -> None:
        self.displays = displays
        self.most: Floats | None = None
        self.priced: dict[int, Priced] = {}
        self._weights: Floats | None = None
        self._drawn = np.zeros(len(displays), np.bool_)

    def missing(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The rows among `rows` whose weights have yet to be drawn."""
        return np.asarray(rows[~self._drawn[rows]])

    def put(self, rows: npt.NDArray[np.int64], w: Floats) -> None:
        """Store the weights of some rows."""
        if len(rows) == len(self.displays):  # all at once: no copy
            self._weights = w
        else:
            if self._weights is None:
                self._weights = np.empty((len(self.displays), w.shape[1]))
            self._weights[rows] = w
        self._drawn[rows] = True

    def of(self, rows: npt.NDArray[np.int64]) -> Floats:
        """The weights of some rows, all of which have been put."""
        assert self._weights is not None
        return self._weights if len(rows) == len(self.displays) else self._weights[rows]

"""What a row adds to the noise of an uplift: as it was drawn, and on average over what the control could have shown.

Of a reward r with the weight w̃ the uplift has the term (w̃ − 1)·r. Its square is what the log itself shows of noise. A
log that lacks its heavy rewards shows too little, and is the one whose answer is farthest off; E_p[(w̃ − 1)² | x]·r²,
with E_p[w̃ | x] = 1, does not depend on what was drawn. By slot each has its own term. With several loggers, where an
uplift has the terms (w̃ − w_p)·r, these are of w̃ all the same: it is what can be large.

Where rewards are dense and all rows are weighed, values are ratios and r − β takes the place of r: terms are then kept
by power of r, so that the analysis can put any β.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats


class NoiseTerms(NamedTuple):
    """Sums over the slots of each row (its ranking counts as one), with a row per row and a column per power of r: r²
    alone, or r², r and 1."""

    observed: Floats  # r²·(w̃ − 1)²
    expected: Floats  # r²·E_p[(w̃ − 1)² | x]
    second: Floats  # r²·E_p[w̃² | x], without powers

    @classmethod
    def of(
        cls, log_h: Floats, second: Floats, r: Floats, owner: npt.NDArray[np.int64], rows: int, *,
        displays_per_row: Floats, dense: bool = False,
    ) -> NoiseTerms:  # fmt: skip
        """The terms of slots (or rows) of the rows `owner`, with rewards r, which have in them how many displays
        each stands for."""
        powers = [r * r]
        if dense:
            powers += [r * displays_per_row, np.square(displays_per_row)]

        def by_row(term: Floats) -> Floats:
            return np.stack([np.bincount(owner, p * term, rows) for p in powers], axis=1)

        with np.errstate(over="ignore", invalid="ignore"):
            observed, expected = by_row(np.square(np.expm1(log_h))), by_row(np.maximum(second - 1.0, 0.0))
            return cls(observed, expected, np.asarray(np.bincount(owner, r * r * second, rows), np.float64))

"""How sums move with the fitted number of a control, and the error that this adds to them.

The sums of some rows are folded with the number moved up and down by a small step on its scale, τ: the difference over
twice the step is their slope ∂S/∂τ, up to a few 1e-4 of it, and up to chance where weights are from draws. Slope times
the influence of each cell on τ is added to the sums by cell. As influences sum to 0, totals stay as they are, while
resamples and standard errors then have the error of the number in them, together with that of the sums.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.ledger import Account, Key, Ledger
from foretest.aggregation.quantities import Moves
from foretest.displays.batch import Floats


class Moved(NamedTuple):
    """Sums of the same rows with a number above and below the fitted one."""

    above: Aggregates
    below: Aggregates
    factor: float  # what the slope is the difference times: rows of the log per row here, over twice the step

    def of_treatment(self, name: str) -> Moved:
        """The same for a further treatment."""
        return Moved(self.above.treatments[name], self.below.treatments[name], self.factor)


class MovedSums(NamedTuple):
    """The sums of rows of all kinds, for what all rows add, and of rewarded ones, for what only they do."""

    all_rows: Moved
    rewarded: Moved

    def of_treatment(self, name: str) -> MovedSums:
        """The same for a further treatment."""
        return MovedSums(*(moved.of_treatment(name) for moved in self))


def with_error(whole: Aggregates, moved: MovedSums, influence: Floats) -> Aggregates:
    """The sums with the error of a fitted number; `influence` has that of every cell on τ."""
    of_parts = {
        column: tuple((side.above.segments[column], side.below.segments[column]) for side in moved)
        for column in whole.segments
    }
    factors = moved.all_rows.factor, moved.rewarded.factor
    return replace(
        whole,
        ledger=_with_error(
            whole.ledger, tuple((side.above.ledger, side.below.ledger) for side in moved), factors, influence
        ),
        segments={
            column: _with_error(ledger, of_parts[column], factors, influence)
            for column, ledger in whole.segments.items()
        },
        treatments={
            name: with_error(further, moved.of_treatment(name), influence) for name, further in whole.treatments.items()
        },
    )


def _with_error(
    ledger: Ledger, sides: tuple[tuple[Ledger, Ledger], ...], factors: tuple[float, float], influence: Floats
) -> Ledger:
    """The sums of a log, or of every part of it, with the error in those that move with the number."""

    def moved(account: Account, key: Key, array: Floats) -> Floats:
        if key.quantity.moves is Moves.NEVER:
            return array
        which = 0 if key.quantity.moves is Moves.WITH_ALL_ROWS else 1
        labels = ledger.labels_of(key)
        blocks = len(array) // ledger.cells if labels is None else len(labels)
        above, below = (side.block_totals(ledger, account, key, blocks) for side in sides[which])
        error = (factors[which] * (above - below)[:, None] * influence).ravel()
        padded = np.zeros(len(error))
        padded[: len(array)] = array
        return padded + error

    return ledger.mapped(moved)

"""Rewards that are so small that a float cannot hold their squares, which errors and intervals are made of."""

from __future__ import annotations

from collections.abc import Mapping

from foretest.displays.batch import Floats
from foretest.errors import BadInput

SMALLEST = 1e-120  # of the largest reward of a metric: sums of squares and of their products stay above 1e-308


def refuse_tiny(places: Mapping[str, int], positives: Floats, squares: Floats) -> None:
    """Refuse a metric whose rewards are all tiny: their variance would be rounded to 0, and every uplift certain.

    Parameters
    ----------
    places: the place of each metric among the sums.
    positives: by metric, the number of rows with a reward.
    squares: by metric, Σ r².
    """
    for name, m in places.items():
        if positives[m] and float(squares[m]) < SMALLEST**2:
            raise BadInput(
                f"the rewards of '{name}' are all below {SMALLEST:g}: their squares, of which errors are made, cannot"
                " be represented. Give them in another unit."
            )

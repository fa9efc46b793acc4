"""Do some rows come from another policy than the control: a fallback, random traffic, a cache?

Such rows have next to no probability under the control, far more of them than it draws, while the others are as likely
as they should be. A wrong temperature makes all rows a little too unlikely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.formatting import percent

MOST_SHARE = 0.5  # more rows are no exception
MANY_TIMES = 1.5  # what the best temperature explains
LEAST_GAIN = 20.0  # twice the log-likelihood
_ROUNDS = 100


class OtherRows(NamedTuple):
    """Rows that the control hardly ever shows."""

    share: float
    rows: npt.NDArray[np.bool_]  # likelier of another policy than of the control


def other_rows(log_p: Floats, log_rankings: Floats, gain_of_number: float = 0.0) -> OtherRows | None:
    """The share ε of rows that another policy shows by which (1 − ε)·π_p + ε/N is most likely, N the number of
    rankings; None where that explains the log no better than another temperature, whose gain per row is given."""
    if np.isnan(log_rankings).any():
        return None
    share = 0.05
    for _ in range(_ROUNDS):
        # the odds of another policy, bounded so that no row is beyond numbers
        apart = np.clip(np.log1p(-share) + log_p - np.log(share) + log_rankings, -500.0, 500.0)
        other = 1.0 / (1.0 + np.exp(apart))
        share = float(np.clip(other.mean(), 1e-9, 1.0 - 1e-9))
    gain = float((np.log1p(-share) + np.log1p(np.exp(-apart))).mean())
    rows = other > 0.5
    if share > MOST_SHARE or not rows.any() or 2.0 * gain * len(log_p) < LEAST_GAIN:
        return None
    return OtherRows(share, rows) if gain > MANY_TIMES * gain_of_number else None


def remedy(share: float, where: str) -> str:
    """What to do about the rows of another policy; `where` names some of them."""
    return (
        f"About {percent(share)} of the rows come from another policy{where and f' ({where})'}: a fallback, random"
        " traffic, a cache or a rule. Describe it, as a part of a mixture or as a logger of its own; or leave its rows"
        " out, by what marks them and not by how unlikely they are."
    )

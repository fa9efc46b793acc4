"""Capping: min(w, c), or w where it is below c and else 0, in log space."""

from __future__ import annotations

import numpy as np

from foretest.displays.batch import Floats

CAPPINGS = ("max", "zero")


def capped(log_w: Floats, cap: float, capping: str) -> Floats:
    """log w̄: min(w, c) under max capping; w where w < c, else 0, under zero capping."""
    return capped_at(log_w, float(np.log(cap)), capping)


def capped_at(log_w: Floats, log_cap: Floats | float, capping: str) -> Floats:
    """log w̄ at one cap, or at a cap for each row, given as log c."""
    if capping == "zero":
        return np.where(log_w < log_cap, log_w, -np.inf)
    return np.minimum(log_w, log_cap)

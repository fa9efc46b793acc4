"""The noise that offline and online share through the control arm, where its log is not there to show it.

With φ_u what a unit of the offline log adds to x (of n_x units) and ψ_u what a unit of the online control arm adds to y
(of n_y), units being independent, only the n_c units that are in both make x and y go together:

    |cov(x, y)| = n_c |cov(φ, ψ)|/(n_x n_y) ≤ se_x · se_y,control · n_c/√(n_x n_y)

n_c is at most the smaller of both numbers. Where n_y is not known, it is at least n_c, so that n_c/√(n_x n_y) is at
most √(n_c/n_x), and at most 1.
"""

from __future__ import annotations

import math

from foretest.history.online_estimate import OnlineSide


def shared_error(side: OnlineSide, units: int, shared_units: int | None) -> float:
    """se_y,control · n_c/√(n_x n_y): times the error of an offline uplift, the most that their covariance can be.

    `units` is n_x and `shared_units` n_c; None where nobody says how many units are in both.
    """
    if not units:
        return side.control_error
    arm = side.control_count
    most = units if arm is None else min(units, arm)
    common = most if shared_units is None else min(shared_units, most)
    if arm is None:
        return side.control_error * (1.0 if shared_units is None else math.sqrt(common / units))
    return side.control_error * common / math.sqrt(units * arm)

""" "Both capping methods show very similar results" (section 4.2): zero against max capping on the same logs."""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest.paper.estimators import NAMES, ZERO, column, mean, verdicts, zero_label


def cappings(agreement: dict[str, Any]) -> dict[str, Any]:
    """For each estimator: how far its relative uplift moves, how often its verdict stays, and how both agree with
    online.

    `half_width` is the mean half-width of the interval under max capping, to compare the moves with.
    """
    tests, table = agreement["tests"], agreement["table"]
    rows = {}
    for key in ZERO:
        zero = zero_label(key)
        moves = column(tests, zero) - column(tests, key)
        width = column(tests, key, "rel_effect_size_ci_upper") - column(tests, key, "rel_effect_size_ci_lower")
        there = moves[np.isfinite(moves)]
        pairs = list(zip(verdicts(tests, key), verdicts(tests, zero), strict=True))
        rows[key] = {
            "name": NAMES[key].name,
            "mean_move": mean(moves),
            "mean_absolute_move": mean(np.abs(moves)),
            "largest_move": float(there[np.abs(there).argmax()]) if len(there) else None,
            "half_width": mean(width / 2.0),
            "same_verdict": sum(a == b for a, b in pairs),
            "correlation": {"max": table[key]["correlation"], "zero": table[zero]["correlation"]},
            "fnr": {"max": table[key]["fnr"], "zero": table[zero]["fnr"]},
        }
    return {"tests": len(tests), "rows": rows}

"""Estimators without a cap: are they "always neutral" (section 6.2), and is DR "very close to IS" (section 4.1)?"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest.displays.batch import Floats
from foretest.history.agreement import DECISIONS
from foretest.paper.estimators import NAMES, UNCAPPED, column, verdicts

WITHOUT_CAPPED_DR = (
    "Capped DR, Σ [(r − r̂) w̄ + E_t r̂]/n, is left out. Its limit is E_t[R Z] + E_t[r̂ (1 − Z)], Z = W̄/W: what the cap"
    " cuts off is worth what the reward model says, on exactly the rankings that the log does not show and the model"
    " has hardly seen. As the cap falls to 0 nothing of the log is left, and the best policy is the one that always"
    " shows the model's favourite: a model would judge itself. With a model of the context alone, V(x), what is cut"
    " off is worth what the control earns there: every uplift is shrunk towards 0 by the part that was cut off, by"
    " assumption and not by evidence."
)


def uncapped(agreement: dict[str, Any]) -> dict[str, Any]:
    """Verdicts, effective positives, and the standard errors of NIS and DR over that of IS.

    `interval_decides` counts intervals without 0: what the verdicts would be if the evidence were never insufficient.
    """
    tests = agreement["tests"]
    is_error = column(tests, "is", "std_error")
    rows = {}
    for key in UNCAPPED:
        of_tests = verdicts(tests, key)
        lower, upper = (column(tests, key, f"effect_size_ci_{end}") for end in ("lower", "upper"))
        ratios = column(tests, key, "std_error") / np.where(is_error > 0.0, is_error, np.nan)
        rows[key] = {
            "name": NAMES[key].name,
            "verdicts": {verdict: of_tests.count(verdict) for verdict in DECISIONS},
            "interval_decides": {"positive": int((lower > 0.0).sum()), "negative": int((upper < 0.0).sum())},
            "effective_positives": _quantiles(column(tests, key, "effective_positives")),
            "std_error_over_is": _quantiles(ratios),
            "correlation": agreement["table"][key]["correlation"],
            "fnr": agreement["table"][key]["fnr"],
        }
    return {"tests": len(tests), "rows": rows, "capped_dr": WITHOUT_CAPPED_DR}


def _quantiles(values: Floats) -> dict[str, float | None]:
    """The 10 %, 50 % and 90 % quantiles of the numbers there are."""
    there = values[np.isfinite(values)]
    levels = (0.1, 0.5, 0.9)
    quantiles = np.quantile(there, levels).tolist() if len(there) else [None] * len(levels)
    return {f"{level:g}": value for level, value in zip(levels, quantiles, strict=True)}

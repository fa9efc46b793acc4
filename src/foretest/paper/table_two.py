"""Table 2: how well each estimator agreed with the online tests, beside the paper's numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from foretest.history.agreement import DECISIONS
from foretest.paper.estimators import NAMES, TABLE_2_KEYS
from foretest.paper.published import TABLE_2

FIGURES = ("correlation", "precision", "fnr", "ci_size")
BESIDE = ("noise_ceiling", "bias", "rmse", "coverage")
ORDER = ("cis", "ncis", "piece-ncis", "point-ncis-adaptive")
"""The order of the paper's claim: each is better than the one before it."""


def table_two(agreement: dict[str, Any]) -> dict[str, Any]:
    """Our figures with their 10 % and 90 % quantiles, the printed ones, and whether the order of the paper holds.

    PointNCIS has two rows: with one cap for all displays, as section 5.4 prints it, and with the appendix's cap for
    each display. The paper does not say which of the two its own row is.
    """
    rows = {}
    for key in TABLE_2_KEYS:
        ours = agreement["table"][key]
        row: dict[str, Any] = {"name": NAMES[key].name, "ours": {}, "paper": None}
        for name in (*FIGURES, *BESIDE):
            row["ours"] |= {field: ours.get(field) for field in (name, f"{name}_q10", f"{name}_q90")}
        if key in TABLE_2:
            row["paper"] = {name: printed._asdict() for name, printed in TABLE_2[key].items()}
        rows[key] = row
    online = [test["online"]["verdict"] for test in agreement["tests"]]
    return {
        "tests": len(online),
        "online": {verdict: online.count(verdict) for verdict in DECISIONS},
        "failures": [failure["name"] for failure in agreement["failures"]],
        "rows": rows,
        "in_order": {name: _ordered(rows, name) for name in ("correlation", "precision", "fnr")},
    }


def _ordered(rows: dict[str, Any], figure: str) -> bool | None:
    """Does the figure go up (the false negatives: down) from CIS to the adaptive PointNCIS, step by step?"""
    values = [rows[key]["ours"][figure] for key in ORDER]
    if any(value is None for value in values):
        return None
    steps = [b - a for a, b in pairwise(values)]
    return all(step < 0 for step in steps) if figure == "fnr" else all(step > 0 for step in steps)

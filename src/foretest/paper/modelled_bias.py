"""The summary table of the estimators: what each takes the capping bias to be, value − CIS, beside what it is.

CIS counts what the cap cuts off as worth nothing, so the truth is CIS + B, B = E_t[R (1 − Z)] (section 4.2). Every
other estimator is CIS plus a model of B. All figures are relative to the control's value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest.displays.batch import Floats
from foretest.paper.estimators import NAMES, TABLE_2_KEYS, column, mean, rms


def modelled_bias(agreement: dict[str, Any], truth: Floats, example: dict[str, Any], known: float) -> dict[str, Any]:
    """The modelled bias of each estimator in the example's log and over the tests, with the distance from the truth.

    `truth` are the tests' true relative uplifts, `known` is the example's.
    """
    tests = agreement["tests"]
    cis = column(tests, "cis")
    of_example = {key: example["estimates"][key]["rel_effect_size"] for key in TABLE_2_KEYS}
    rows = {}
    for key in TABLE_2_KEYS:
        modelled = column(tests, key) - cis
        rows[key] = {
            **NAMES[key]._asdict(),
            "example_uplift": of_example[key],
            "example": _difference(of_example[key], of_example["cis"]),
            "mean": mean(modelled),
            "rmse_of_bias": rms(modelled - (truth - cis)),
        }
    return {
        "rows": rows,
        "truth": {
            "example_uplift": known,
            "example": _difference(known, of_example["cis"]),
            "mean": mean(np.asarray(truth - cis)),
        },
    }


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b

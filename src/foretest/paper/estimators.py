"""The estimators of a run of the paper, and the tests of its history as columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foretest.displays.batch import Floats
from foretest.estimators import CIS, NCIS, PieceNCIS, PointNCIS

TABLE_2_KEYS = ("cis", "ncis", "piece-ncis", "point-ncis", "point-ncis-adaptive")
UNCAPPED = ("is", "nis", "dr")
ZERO = ("cis", "ncis", "piece-ncis", "point-ncis")
"""The estimators of Table 2 that zero capping allows: it has no adaptive cap."""


class Named(NamedTuple):
    """An estimator as the summary names it."""

    name: str
    formula: str
    bias: str  # the model of the capping bias, value − CIS


NAMES = {
    "is": Named("IS", "Σ w r / n", "none: no cap"),
    "nis": Named("NIS", "Σ w r / Σ w", "none: no cap"),
    "dr": Named("DR", "Σ [(r − V) w + V] / n", "none: no cap"),
    "cis": Named("CIS", "Σ w̄ r / n", "0"),
    "ncis": Named("NCIS", "Σ w̄ r / Σ w̄", "E[RZ] · (1 − E[Z])/E[Z]"),
    "piece-ncis": Named(
        "PieceNCIS", "Σ_g (n_g/n) · Σ_g w̄ r / Σ_g w̄", "E[RZ given g] · (1 − E[Z given g])/E[Z given g]"
    ),
    "point-ncis": Named("PointNCIS, as printed", "Σ IP(x) w̄ r / n", "E[RZ given x] · (1 − E[Z given x])/E[Z given x]"),
    "point-ncis-adaptive": Named("PointNCIS, adaptive cap", "Σ w̃ r / n", "the same, at a cap for each display"),
}


def zero_label(key: str) -> str:
    """The name of an estimator under zero capping."""
    return f"{key}-zero"


def all_estimators() -> list[Any]:
    """The estimators of Table 2, the ones without a cap, and the forms of the former under zero capping."""
    kinds = {"cis": CIS, "ncis": NCIS, "piece-ncis": PieceNCIS, "point-ncis": PointNCIS}
    zero = [kinds[key](capping="zero", name=zero_label(key)) for key in ZERO]
    return [*TABLE_2_KEYS, *UNCAPPED, *zero]


def column(tests: list[dict[str, Any]], label: str, field: str = "rel_effect_size") -> Floats:
    """A field of one estimator over the tests of an agreement; NaN where there is no number."""
    values = [test["offline"].get(label, {}).get(field) for test in tests]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def verdicts(tests: list[dict[str, Any]], label: str) -> list[str]:
    """The verdicts of one estimator, test by test."""
    return [test["offline"][label]["verdict"] for test in tests]


def mean(values: Floats) -> float | None:
    """The mean of the numbers there are; None where there are none."""
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else None


def rms(values: Floats) -> float | None:
    """The root mean square of the numbers there are; None where there are none."""
    there = values[np.isfinite(values)]
    return float(np.sqrt(np.square(there).mean())) if len(there) else None

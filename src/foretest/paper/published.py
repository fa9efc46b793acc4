"""What the paper itself says: the numbers that ours are compared with (Gilotte et al., WSDM 2018)."""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """A figure and the half-width of its 10 %/90 % interval, where one is printed."""

    value: float
    half_width: float | None = None


TABLE_2: dict[str, dict[str, Printed]] = {
    "cis": {
        "correlation": Printed(-0.15, 0.35),
        "precision": Printed(0.28, 0.10),
        "fnr": Printed(0.64, 0.11),
        "ci_size": Printed(1.0),
    },
    "ncis": {
        "correlation": Printed(0.24, 0.18),
        "precision": Printed(0.47, 0.11),
        "fnr": Printed(0.33, 0.11),
        "ci_size": Printed(1.1),
    },
    "piece-ncis": {
        "correlation": Printed(0.36, 0.22),
        "precision": Printed(0.53, 0.11),
        "fnr": Printed(0.28, 0.08),
        "ci_size": Printed(1.5),
    },
    "point-ncis": {
        "correlation": Printed(0.49, 0.13),
        "precision": Printed(0.56, 0.13),
        "fnr": Printed(0.16, 0.09),
        "ci_size": Printed(0.8),
    },
}
"""Table 2: 39 tests of a commercial recommender, cap 100. It does not say whether PointNCIS had the appendix's cap."""

TABLE_1 = {"control": 1.9, "truth": 2.1, "ncis": 1.8}
"""The values in the caption of Table 1."""

VARIANCE_BELOW, BIAS_ABOVE = 1e2, 1e23
"""Section 4.3: "a good variance is achieved below 10^2 whereas a good value for bias requires … above 10^23"."""

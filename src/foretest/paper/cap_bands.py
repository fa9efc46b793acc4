"""Section 4.3: no cap gives CIS both little noise and a provably small bias.

The bias bound r_max·(1 − q̄) depends on the policies alone. The noise falls as 1/√n: so for every cap there is a length
of log that would make it small enough; `rows_needed_for_both` is the shortest at a cap that the bias allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.displays.batch import Floats
from foretest.paper.published import BIAS_ABOVE, VARIANCE_BELOW

LENGTHS = (10**6, 10**7, 10**9, 10**11)
"""Displays of longer logs, to compare with; the paper's logs had 10^11 and more."""


def cap_bands(cap_path: dict[str, Any], rows: int) -> dict[str, Any]:
    """The caps of each criterion, from a metric's `cap_path` of a log of `rows` displays."""
    sought, caps = cap_path["sought"], np.array(cap_path["caps"])
    noise, bias = (np.array(cap_path[name], dtype=np.float64) for name in ("noise", "bias_bound"))
    unbiased = bias <= sought
    # the number of rows at which the noise, falling as 1/√n, is what is sought
    needed = rows * np.square(noise / sought)
    return {
        "sought": sought,
        "rows": rows,
        "control": cap_path["control"],
        "noise_band": cap_path["noise_band"],
        "bias_band": cap_path["bias_band"],
        "satisfies_both": cap_path["satisfies_both"],
        "lowest_noise": float(noise.min()),
        "at_cap": {
            "cap": cap_path["cap"],
            "noise": float(np.interp(np.log(cap_path["cap"]), np.log(caps), noise)),
            "bias_bound": float(np.interp(np.log(cap_path["cap"]), np.log(caps), bias)),
        },
        "rows_needed_for_both": float(needed[unbiased].min()) if unbiased.any() else None,
        "by_length": [
            {"rows": length, "highest_cap_of_noise": _highest(caps, needed <= length)} for length in (rows, *LENGTHS)
        ],
        "paper": {"noise_below": VARIANCE_BELOW, "bias_above": BIAS_ABOVE},
    }


def _highest(caps: Floats, small: npt.NDArray[np.bool_]) -> float | None:
    """The highest cap up to which `small` is true without a gap, from the lowest on."""
    count = int(np.argmin(small)) if not small.all() else len(caps)
    return float(caps[count - 1]) if count else None

"""Section 4.3: no cap gives CIS both little noise and a provably small bias.

The bias bound r_max·(1 − q̄) depends on the policies alone. The noise falls as 1/√n: so for every cap there is a length
of log that would make it small enough, and at the caps that the bias needs that length is the answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest.paper.published import BIAS_ABOVE, VARIANCE_BELOW

LENGTHS = (10**6, 10**7, 10**9, 10**11)
"""Displays of the logs that are thought of beside the one at hand; the paper's were 10^11 and more."""


def cap_bands(cap_path: dict[str, Any], rows: int) -> dict[str, Any]:
    """The caps of each criterion, from a metric's `cap_path` of a log of `rows` displays."""
    sought, caps = cap_path["sought"], np.array(cap_path["caps"])
    noise, bias = (np.array(cap_path[name], dtype=np.float64) for name in ("noise", "bias_bound"))
    unbiased = bias <= sought
    # n at which the noise, falling as 1/√n, is what is sought
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


def _highest(caps: Any, small: Any) -> float | None:
    """The highest cap of the run of caps from 1 on where it holds."""
    holds = int(np.argmin(small)) if not small.all() else len(caps)
    return float(caps[holds - 1]) if holds else None

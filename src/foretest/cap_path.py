"""Figure 2 as data: CIS and NCIS at every cap from 1 to 1e25, and what noise and bias leave to be seen."""

from __future__ import annotations

from typing import Any

from foretest.aggregates import Aggregates
from foretest.displays import Floats


def cap_path(aggregates: Aggregates, metric: int, counts: Floats | None, r_max: float | None) -> dict[str, Any]:
    """Columns over the caps of the path, under max capping. All but `cis` and `ncis` are of CIS, relative to the control.

    metric, capping ("max"), interval, confidence_level, sought (0.01), cap (the run's), r_max, control, source,
    max_log10_weight
    caps            the caps
    cis, ncis       columns by the names of an estimate: treatment, std_error, effect_size, effect_size_ci_lower, …
    treatment_mass_kept         q̄
    share_above_cap             P_t(W > c)
    variance        of CIS's value (absolute, squared units of the metric)
    noise           half the width of the relative uplift's interval
    bias_bound      r_max (1 − q̄)/control;  bias_bound_loose  r_max P_t(W > c)/control, as the paper prints it
    sensitivity     noise + bias_bound: the smallest uplift that it is sure to show
    noise_band, bias_band, both_band    [lowest cap, highest cap] where below `sought`, or null
    satisfies_both  does any cap? null where the bias bound is unknown
    notes           in words
    """
    raise NotImplementedError

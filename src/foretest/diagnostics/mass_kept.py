"""How much of the treatment an estimator keeps: the mean of q(x) at its own cap or bound, over the sample of displays.

π_t = q·π̃ + (1 − q)·ν: what is measured is the surrogate π̃, and of ν the log says nothing. Where q is small on average,
the answer is about another policy than the treatment.

E_p[min(w, c) | x] = q_c(x). Where no ranking can be drawn, as with logged probabilities, the mean weight of all rows
tells the same mass, with the noise of what was shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.quantities import WEIGHTS
from foretest.aggregation.slot_masses import EXPOSURE, PREFIX, SLOT, capped_bounds
from foretest.diagnostics.treatment_health import LOG_NEVER
from foretest.estimators import Estimator
from foretest.inference.bound_choice import at_chosen_bound
from foretest.inference.verdict import LEAST_MASS_KEPT
from foretest.kernels.normaliser import adaptive_caps_of_draws
from foretest.weights.exposure_weights import ExposureAdaptive
from foretest.weights.policy_pair import weights_of, z_of
from foretest.weights.prefix_weights import PrefixAdaptive
from foretest.weights.slot_weights import SlotAdaptive
from foretest.weights.weightings import Adaptive, Capped, Pointwise, Uncapped, Weighting

DISPLAYS = 4096  # of the sample, the first by hash: enough for a mean to a hundredth


def mass_kept_by(aggregates: Aggregates, estimators: Sequence[Estimator]) -> dict[str, dict[str, float]]:
    """The field `mass_kept` of health: the mass by estimator, at the first metric's bound; nothing where it is known of
    none."""
    chosen = [at_chosen_bound(aggregates, e, 0) for e in estimators]
    masses = {e.label: mass_kept(aggregates, aggregates.plan.weighting(e)) for e in chosen}
    known = {label: mass for label, mass in masses.items() if mass is not None}
    return {"mass_kept": known} if known else {}


def mass_kept(aggregates: Aggregates, weighting: Weighting) -> float | None:
    """The mean of q(x); without a cap, the mass that a log can show at all, or what its weights add up to if that is
    less than half. None for weights by slot that no cap cuts, and where rankings have no known weight."""
    sample = aggregates.sampled_displays
    if isinstance(weighting, SlotAdaptive | PrefixAdaptive | ExposureAdaptive):
        return _by_slot(aggregates, weighting)
    if "draws_treatment" not in sample:
        return _mean_weight(aggregates, weighting)
    treatment, control = (sample[name][:DISPLAYS] for name in ("draws_treatment", "draws_control"))
    if isinstance(weighting, Adaptive):
        _, q, _ = adaptive_caps_of_draws(weights_of(np.hstack([treatment, control])), weighting.bound)
        return min(1.0, float(q.mean()))  # of noisy q, the mean alone is right
    if isinstance(weighting, Capped | Pointwise):
        return float(z_of(treatment, weighting.cap, weighting.capping == "zero").mean())
    if isinstance(weighting, Uncapped):
        possible, in_log = float((treatment <= LOG_NEVER).mean()), _mean_weight(aggregates, weighting)
        # a weight of 1e9 that no row has supports nothing
        return possible if in_log is None or in_log >= LEAST_MASS_KEPT else min(possible, in_log)
    return None


def _mean_weight(aggregates: Aggregates, weighting: Weighting) -> float | None:
    """The mean weight of all displays, at most 1; None for what is no weight of every shown ranking."""
    if not isinstance(weighting, Capped | Uncapped) or not aggregates.has_weights(weighting) or not aggregates.displays:
        return None
    sums = aggregates.weights(weighting)
    total = sums.total(WEIGHTS)
    return math.exp(min(0.0, math.log(total / aggregates.displays) + sums.log_unit)) if total > 0.0 else 0.0


def _by_slot(aggregates: Aggregates, weighting: SlotAdaptive | PrefixAdaptive | ExposureAdaptive) -> float | None:
    """The mean of q(x) by slot, prefix or exposure; None where the sample lacks it, as in files of earlier versions."""
    plan = aggregates.plan
    if isinstance(weighting, SlotAdaptive):
        name, bounds = SLOT, plan.slot_bounds or ()
    elif isinstance(weighting, PrefixAdaptive):
        name, bounds = PREFIX, plan.prefix_bounds
    else:
        name, bounds = EXPOSURE, capped_bounds(plan)
    column = aggregates.sampled_displays.get(name)
    if column is None or weighting.bound not in bounds or column.shape[1] != len(bounds):
        return None
    q = column[:, bounds.index(weighting.bound)]
    q = q[np.isfinite(q)]
    return float(q.mean()) if len(q) else None

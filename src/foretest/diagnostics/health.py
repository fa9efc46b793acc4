"""Can this log answer the question? What weights and support show, before any result."""

from __future__ import annotations

from typing import Any

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.noise_sums import noise_sums
from foretest.aggregation.quantities import (
    APPROXIMATE,
    LARGEST_LOG_SHARE,
    SIZES,
    SQUARED_WEIGHTED_REWARDS,
    SQUARED_WEIGHTS,
    UNSUPPORTED,
    WEIGHTED_REWARDS,
    WEIGHTS,
)
from foretest.diagnostics.outside_candidates import outside_candidates
from foretest.diagnostics.treatment_health import treatment_health
from foretest.inference.quantiles import quantiles
from foretest.weights.weightings import PointWeighting, Uncapped, Weighting

_CERTAIN = float(np.log1p(-1e-6))
# what is of the weights of whole rankings: not known where the control is known slot by slot
_OF_RANKINGS = (
    "effective_sample_size", "max_weight", "max_log10_weight", "max_weight_share", "capped_share",
    "treatment_mass_kept",
)  # fmt: skip
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def effective_count(total: float, squares: float) -> float | None:
    """(Σx)²/Σx²: how many equal rows would carry as much information; None where all are 0."""
    return total * total / squares if squares > 0.0 else None


def health(aggregates: Aggregates) -> dict[str, Any]:
    """The fields of `health` in result.json; None where a number is not known."""
    plan, rows = aggregates.plan, aggregates.displays
    capped, raw = aggregates.weights(plan.health_weighting), aggregates.weights(Uncapped())
    total_w, total_capped = raw.total(WEIGHTS), capped.total(WEIGHTS)
    # of a thinned log the row that stands for most of the treatment
    largest = aggregates.ledger.plain.total(LARGEST_LOG_SHARE)
    report: dict[str, Any] = {
        "effective_sample_size": effective_count(total_capped, capped.total(SQUARED_WEIGHTS)),
        "max_weight": float(np.exp(aggregates.max_log_w)) if rows and aggregates.max_log_w < 709.0 else None,
        "max_log10_weight": float(aggregates.max_log_w / np.log(10.0)) if np.isfinite(aggregates.max_log_w) else None,
        "max_weight_share": float(np.exp(largest - raw.log_unit)) / total_w if total_w else None,
        "capped_share": aggregates.capped_rows / rows if rows else None,
        "treatment_mass_kept": total_capped * float(np.exp(capped.log_unit)) / rows if rows else None,
        "unsupported_rows": aggregates.largest_count(UNSUPPORTED),
        "approximate_rows": aggregates.largest_count(APPROXIMATE),
        "effective_positives": {name: effective_positives(aggregates, plan.health_weighting, m)
                                for name, m in plan.shown.items()},
        "support": None,
        "control_deterministic": control_is_deterministic(aggregates),
    }  # fmt: skip
    if not plan.prices_rankings:
        report |= dict.fromkeys(_OF_RANKINGS) | {"effective_positives": dict.fromkeys(plan.shown)}
    treatment = treatment_health(aggregates)
    if treatment is not None:
        report["treatment"] = treatment.to_dict()
    if plan.cap_choice is not None:
        report["cap"] = plan.cap_choice.to_dict()
    if aggregates.sampled.get(plan.health_weighting):
        report["approximate"] = True
    sample = aggregates.sampled_displays
    if "q" in sample:
        report["support"] = _support(sample)
    outside = outside_candidates(aggregates)
    if outside is not None:
        report["outside_candidates"] = outside
    return report


def control_is_deterministic(aggregates: Aggregates) -> bool | None:
    """Did the control leave nothing to chance? True where every ranking of the sample of displays had a probability
    over 1 − 1e-6; None where there is no sample."""
    log_p = aggregates.sampled_displays.get("log_p")
    return None if log_p is None else bool((log_p > _CERTAIN).all())


def effective_positives(aggregates: Aggregates, weighting: Weighting, metric: int) -> float | None:
    """(Σhr)²/Σ(hr)² of a metric under a weighting, rewards counted by their size."""
    account = aggregates.weighted(weighting, metric)
    sizes = account.total(SIZES if account.has(SIZES) else WEIGHTED_REWARDS)
    return effective_count(sizes, account.total(SQUARED_WEIGHTED_REWARDS))


def predicted_effective_positives(aggregates: Aggregates, weighting: Weighting, metric: int) -> float | None:
    """n_eff* = [(Σr)²/Σr²]/(mean of E_p[h²|x] over rewarded rows, weighted by r²), by slot over rewarded slots;
    None for what is not pointwise or has no bound.

    What (Σhr)²/Σ(hr)² would be on average over the rankings that the control might have shown: it counts the heavy rows
    that this log happens not to have. Of more than 2^17 rewarded rows the mean is over those kept, the smallest by
    hash. Rows without support, of weight 0, are no part of it.
    """
    weightings, columns = aggregates.plan.point_weightings, aggregates.rewarded.columns()
    if not isinstance(weighting, PointWeighting) or weighting not in weightings:
        return None
    if weighting.by_slot or not columns:
        noise = noise_sums(aggregates.weighted(weighting, metric))
        return None if noise is None else noise.effective(float(aggregates.positives[metric]))
    r, second = np.abs(columns["r", metric]), columns["second", weighting]
    r = np.where(second > 0.0, r, 0.0) / max(r.max(), 1e-300)  # squares of 1e200 would overflow
    count = effective_count(float(r.sum()), float((r * r) @ second))
    # rows that were not kept: as many more of the same kind
    return None if count is None else count * aggregates.rewarded.seen / len(r)


def _support(sample: Columns) -> dict[str, Any]:
    """q(x) over the fixed sample of displays, and the treatment's mass on rankings that the control never shows."""
    q, drawn = sample["q"], sample["draws_treatment"]
    impossible = np.isposinf(drawn)
    return {
        "displays": len(q),
        "mean_q": float(q.mean()),
        "q_quantiles": {f"{p:g}": float(v) for p, v in zip(_QUANTILES, quantiles(q, _QUANTILES), strict=True)},
        "share_q_below_half": float((q < 0.5).mean()),
        "share_q_below_tenth": float((q < 0.1).mean()),
        "treatment_mass_unshowable": float(impossible.mean()),
        "share_deterministic": float(sample["certain"].mean()) if "certain" in sample else None,
    }

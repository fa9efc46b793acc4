"""Does the estimate with a reward model lead?

A control variate changes no expectation where the log supports the treatment, so that the better of two estimates with
one weight w̃ is the one that varies less. How much each varies is predicted over all that the control could have shown,
not read off the treatment's rewards: with s = E_p[w̃²|x] − 1 the variance of a display's weight,

    S_model = Σ s (r − r̂ − ρ)² + Σ (δ − δ̄)²      S_plain = Σ s (r − β)²

δ = E_t r̂ − E_p r̂; ρ and β are the means of r − r̂ and of r where values are ratios, or 0 where they are means. It takes
residuals to be alike over all actions, and those that the treatment prefers may be the ones that the model knows least:
so the log's own variance of the uplift must be smaller too.

Where the log does not support the treatment, the model alone says what that part is worth, moved by how far it errs on
the supported part. That error is known where weights are reliable, at the least bound: it is ρ_0 = Σw̃_0(r − r̂)/Σw̃_0. If
the model errs elsewhere by as much again, the value moves by u·|ρ_0|, u the unsupported share. It leads if S_model is
below 0.8 of S_plain, the log's own variance below 0.9 of that without a model, and u·|ρ_0| below one standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.model_sums import model_moments, spread_of_uplifts
from foretest.aggregation.quantities import UPLIFTS
from foretest.estimators import AdaptivePointDR, AdaptivePointNCIS, Estimator
from foretest.files import finite_or_none
from foretest.formatting import format_number
from foretest.inference.buckets import bucket_sums
from foretest.inference.sensitivity import Terms
from foretest.inference.uplift import mean_reward, value_of
from foretest.records import dataclass
from foretest.results.result import Estimate

MOST_VARIANCE = 0.8  # of that without a model: as predicted
MOST_NOISE = 0.9  # and in the log itself


@dataclass(frozen=True)
class ModelLead:
    """What the log says of the estimate with a reward model beside the one without."""

    model: str  # the label of the estimator with the model
    plain: str  # and of the one without
    variance_ratio: float  # S_model/S_plain
    noise_ratio: float  # of the squares of both standard errors
    residual: float  # ρ_0
    doubt: float  # u·|ρ_0|
    std_error: float

    @property
    def agrees(self) -> bool:
        """Could the model's own error move the value by less than noise?"""
        return self.doubt <= self.std_error

    @property
    def leads(self) -> bool:
        return self.variance_ratio < MOST_VARIANCE and self.noise_ratio < MOST_NOISE and self.agrees

    def takes_over(self, headline: str, asked: str | None) -> bool:
        """Does it take the place of a headline that nobody asked for?"""
        return self.leads and headline == self.plain and asked is None

    @property
    def reason(self) -> str:
        """Why it leads, or why not: what is said of the estimator."""
        variance = f"the predicted variance is {self.variance_ratio:.2f} of that of {self.plain}"
        if self.leads:
            return f"leads: with the reward model {variance}"
        if self.variance_ratio < MOST_VARIANCE and self.agrees:
            return (
                f"does not lead: with the reward model {variance}, but in the log itself {self.noise_ratio:.2f}, and"
                f" it would have to be below {MOST_NOISE:g}"
            )
        if self.agrees:
            return f"does not lead: with the reward model {variance}, and it would have to be below {MOST_VARIANCE:g}"
        return (
            f"does not lead: the reward model is off by {format_number(self.residual)} where the log can check it, and"
            " it alone says what the part of the treatment is worth that the log does not support"
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as result.json has it."""
        return {
            "estimator": self.model,
            "plain": self.plain,
            "variance_ratio": finite_or_none(self.variance_ratio),
            "noise_ratio": finite_or_none(self.noise_ratio),
            "residual": finite_or_none(self.residual),
            "doubt": finite_or_none(self.doubt),
            "agrees": self.agrees,
            "leads": self.leads,
            "reason": f"{self.model} {self.reason}",
        }


def model_lead(
    aggregates: Aggregates, estimators: Sequence[Estimator], metric: int, estimates: Mapping[str, Estimate]
) -> ModelLead | None:
    """The comparison of the two, each at its bound; None where one of them did not run or has no numbers."""
    model = next((e for e in estimators if type(e) is AdaptivePointDR), None)
    plain = next((e for e in estimators if type(e) is AdaptivePointNCIS), None)
    if model is None or plain is None or aggregates.rows == 0:
        return None
    weighting = aggregates.plan.weighting(model)
    moments = model_moments(aggregates.weighted(weighting, metric))
    error, plain_error = (estimates[e.label].std_error for e in (model, plain))
    if weighting != aggregates.plan.weighting(plain) or moments is None or error is None or plain_error is None:
        return None
    sums, least = (bucket_sums(aggregates, e, metric).total() for e in (model, _at_least_bound(aggregates, model)))
    rho_0 = float(value_of(model, replace(least, v=np.zeros_like(least.v)))[0])
    uplifts, displays = aggregates.ledger.plain.get(UPLIFTS, metric, model.label), aggregates.displays
    between = spread_of_uplifts(uplifts, displays)
    # the control's means: of what the treatment earns no ratio may depend
    is_ratio, predicted = bool(np.any(sums.h)), (float(sums.v[0]) - uplifts[0]) / displays
    beta = float(mean_reward(sums)[0]) if is_ratio else 0.0
    rho = beta - predicted if is_ratio else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(moments.of_residuals(rho) + between, moments.about(beta))
        noise = np.divide(error**2, plain_error**2)
    terms = Terms.of(aggregates, weighting, metric)
    weighted = float(sums.hr[0]) * sums.unit
    share = float(terms.t.sum()) / weighted if weighted > 0.0 else 0.0
    return ModelLead(model.label, plain.label, float(ratio), float(noise), rho_0, share * abs(rho_0), error)


def with_model_reason(estimates: dict[str, Estimate], lead: ModelLead | None) -> dict[str, Estimate]:
    """The estimates, the one with a reward model with the reason why it does not lead."""
    if lead is None or lead.leads:
        return estimates
    own = estimates[lead.model]
    return {**estimates, lead.model: replace(own, reasons=[*own.reasons, f"it {lead.reason}"])}


def _at_least_bound(aggregates: Aggregates, model: AdaptivePointDR) -> Estimator:
    """The estimator at the least of the bounds that the log chooses among; as it is where its bound was given."""
    own = replace(model, weight_bound=None)
    weightings = aggregates.plan.bound_weightings(own)
    return replace(model, weight_bound=weightings[0].bound) if weightings else model

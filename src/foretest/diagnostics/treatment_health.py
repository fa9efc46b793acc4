"""What the treatment looks like beside the control: agreement of their scores, entropies, scale."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.audit_draws import LOG_RANKINGS
from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.quantities import WEIGHTS
from foretest.aggregation.treatment_scores import (
    CORRELATION,
    DRAWN_TREATMENT,
    SCALED_CONTROL,
    SCALED_TREATMENT,
    SHAPE_CONTROL,
    SHAPE_TREATMENT,
)
from foretest.diagnostics.audit.by_unit import first_of_units
from foretest.displays.batch import Floats, Hashes
from foretest.files import finite_or_none
from foretest.inference.quantiles import median
from foretest.kernels.score_lists import EQUAL, EVENLY_SPACED, PROBABILITIES, RATES, SHORT, SORTED
from foretest.records import dataclass
from foretest.weights.weightings import Uncapped

PROBABILITY, RATE, RANK, CONSTANT = "probabilities", "rates", "ranks", "constant"
NEARLY_ALL = 0.95  # of the displays have a shape: then the scores have it
_SAME_WEIGHT = 1e-9
_ROUNDING = 1e-12  # of a spread: scores that are all equal have one as small
# a ranking that the control shows so rarely is in no log: its probability is a floor in place of 0, or as good as 0
LOG_NEVER = 50.0


@dataclass(frozen=True)
class TreatmentHealth:
    """The field `treatment` of health; None where a number is not known."""

    rank_correlation: float | None  # of both score lists within displays, on average
    rank_correlation_error: float | None  # its standard error, by unit
    entropy_control: float | None  # of rankings, in nats, on average over displays
    entropy_treatment: float | None
    entropy_uniform: float | None  # of rankings that are all equally likely
    scale_ratio: float | None  # spread of the treatment's scores over its temperature, against the control's
    looks_like: str | None  # probabilities, rates, ranks or constant, where the control's scores do not
    sorted: bool | None  # are the treatment's lists in order of their scores, and the control's not?
    mass_never_shown: float | None  # of the treatment: the control's probability is 0 or below e^-50
    identical: bool  # is every weight 1?

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def treatment_health(aggregates: Aggregates) -> TreatmentHealth | None:
    """How the treatment compares with the control; None where the sample is empty or of an earlier version."""
    sample = aggregates.sampled_displays
    if LOG_RANKINGS not in sample:
        return None
    correlation, error = mean_by_unit(sample[CORRELATION], sample["unit"]) if CORRELATION in sample else (None, None)
    drawn, shown = sample.get(DRAWN_TREATMENT), sample.get("expected_log_p", sample.get("log_p"))
    never = sample.get("draws_treatment")
    return TreatmentHealth(
        rank_correlation=correlation,
        rank_correlation_error=error,
        entropy_control=None if shown is None else finite_or_none(abs(float(shown.mean()))),
        entropy_treatment=None if drawn is None else _entropy(drawn),
        entropy_uniform=_mean(sample[LOG_RANKINGS]),
        scale_ratio=scale_ratio(sample, SCALED_CONTROL, SCALED_TREATMENT),
        looks_like=_looks_like(sample),
        sorted=_is_sorted(sample),
        mass_never_shown=None if never is None else float((never > LOG_NEVER).mean()),
        identical=_is_identical(aggregates),
    )


def mean_by_unit(values: Floats, unit: Hashes) -> tuple[float | None, float | None]:
    """The mean of what is known and its standard error by unit; rows are sorted by unit."""
    known = np.isfinite(values)
    x, starts = values[known].astype(np.float64), first_of_units(unit[known])
    if len(starts) < 2:
        return None, None
    mean = float(x.mean())
    sums = np.add.reduceat(x - mean, starts)
    return mean, float(np.sqrt(np.square(sums).sum() * len(starts) / (len(starts) - 1.0))) / len(x)


def scale_ratio(sample: Columns, control: str, treatment: str) -> float | None:
    """The median spread of the treatment's scores within displays against the control's, of two columns; None where
    the control's scores are all equal, but for rounding."""
    if control not in sample:
        return None
    spreads = [median(sample[name]) for name in (control, treatment)]
    return finite_or_none(spreads[1] / spreads[0]) if spreads[0] > _ROUNDING * spreads[1] else None


def _share(shapes: Any, bit: int) -> float:
    """The share of displays with a shape; of shapes that short lists have by chance, among the others."""
    judged = shapes[shapes & SHORT == 0] if bit in (EVENLY_SPACED, SORTED) else shapes
    return float((judged & bit != 0).mean()) if len(judged) else 0.0


def _looks_like(sample: Columns) -> str | None:
    """What the treatment's scores look like where the control's, which the audit checks, do not."""
    if SHAPE_TREATMENT not in sample:
        return None
    shapes = {CONSTANT: EQUAL, PROBABILITY: PROBABILITIES, RATE: RATES, RANK: EVENLY_SPACED}
    for word, bit in shapes.items():
        if _share(sample[SHAPE_TREATMENT], bit) >= NEARLY_ALL:
            return word if _share(sample[SHAPE_CONTROL], bit) < NEARLY_ALL else None
    return None


def _is_sorted(sample: Columns) -> bool | None:
    if SHAPE_TREATMENT not in sample:
        return None
    return _share(sample[SHAPE_TREATMENT], SORTED) >= NEARLY_ALL > _share(sample[SHAPE_CONTROL], SORTED)


def _is_identical(aggregates: Aggregates) -> bool:
    """Is every weight 1? So it is where none is larger and their mean is not smaller."""
    raw, rows = aggregates.weights(Uncapped()), aggregates.displays
    if not aggregates.plan.prices_rankings or not rows or not abs(aggregates.max_log_w) <= _SAME_WEIGHT:
        return False
    return raw.total(WEIGHTS) * float(np.exp(raw.log_unit)) >= rows * (1.0 - _SAME_WEIGHT)


def _entropy(drawn: Floats) -> float | None:
    """Minus the mean log-probability of drawn rankings; None where none was drawn or the mean is infinite."""
    known = drawn[~np.isnan(drawn)]
    return finite_or_none(abs(float(known.mean()))) if len(known) else None


def _mean(values: Floats) -> float | None:
    return None if np.isnan(values).any() or not len(values) else float(values.mean())

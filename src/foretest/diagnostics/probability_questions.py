"""Do two columns of probabilities belong to the same rows, and were all rows randomised? Both policies know the display
that was shown, so that what one finds likely the other mostly finds likelier than elsewhere; where a column is off by a
row, they agree on nothing. And weights average 1 where the control could show all that the treatment does.

Where both policies have scores these are compared within displays; this is for policies of logged probabilities.
"""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.diagnostics.audit.by_unit import independent_rows
from foretest.diagnostics.audit.possible_weights import mean_below_one
from foretest.diagnostics.treatment_health import mean_by_unit
from foretest.displays.batch import Floats, Hashes
from foretest.results.questions import Question

ROWS, BELOW_ONE = "order of rows", "weights below 1"

FEWEST_DISPLAYS = 100
LEAST_CORRELATION = 0.02  # and two standard errors, as of scores
SURE = 0.001  # a p-value


def probability_questions(aggregates: Aggregates) -> list[Question]:
    """What the two columns of probabilities of a log ask for; nothing where both policies have scores."""
    settings, sample = aggregates.plan.settings, aggregates.sampled_displays
    both_draw = settings.control.can_draw and settings.treatment.can_draw
    if both_draw or "log_p" not in sample or len(sample["unit"]) < FEWEST_DISPLAYS:
        return []
    questions = [_order(sample["log_p"], sample["log_w"], sample["unit"]), _mean(sample["log_w"], sample["unit"])]
    return [question for question in questions if question is not None]


def _mean(log_w: Floats, unit: Hashes) -> Question | None:
    """Asked where no weight is large and they average less than 1: in some rows the control had no choice."""
    starts, w = independent_rows(unit), np.exp(np.minimum(log_w, 700.0))
    n = np.diff(starts, append=len(w)).astype(np.float64)
    mean = mean_below_one(np.add.reduceat(w, starts), n, float(len(starts)), float(w.max()))
    if mean is None or mean.p_value >= SURE or mean.mean >= 1.0:
        return None
    return Question(
        BELOW_ONE,
        f"no weight is large, and yet they average {mean.mean:.2f} over {len(w):,} displays, where it should be 1. Were"
        " some rows never randomised (a fixed rule, a fallback, users who could not be shown anything else)? Leave them"
        " out, by what marks them. Or can the treatment show what the control never does? Then this log cannot say what"
        " that is worth.",
    )


def _order(log_p: Floats, log_w: Floats, unit: Hashes) -> Question | None:
    control, treatment = standard_ranks(log_p), standard_ranks(log_p + log_w)
    if control is None or treatment is None:
        return None
    correlation, error = mean_by_unit(control * treatment, unit)
    if correlation is None or error is None or abs(correlation) >= LEAST_CORRELATION + 2.0 * error:
        return None
    return Question(
        ROWS,
        "what the control finds likely and what the treatment finds likely have nothing to do with each other from"
        f" row to row (rank correlation {correlation:.2f} over {len(log_p):,} displays). Two models of the same"
        " displays usually agree more: is a column of probabilities off by a row, sorted otherwise, or of another"
        " display?",
    )


def standard_ranks(values: Floats) -> Floats | None:
    """Average ranks with mean 0 and standard deviation 1; None where all values are equal.

    >>> standard_ranks(np.array([3.0, 1.0, 3.0, 1.0])).tolist()
    [1.0, -1.0, 1.0, -1.0]
    """
    # sums of the same logarithms differ in their last digits
    _, place, count = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    if len(count) < 2:
        return None
    rank = (np.cumsum(count) - 0.5 * count)[place]
    return np.asarray((rank - rank.mean()) / rank.std(), np.float64)

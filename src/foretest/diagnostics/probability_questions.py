"""Do two columns of probabilities belong to the same rows? Both policies know the display that was shown, so that what
one finds likely the other mostly finds likelier than elsewhere; where a column is off by a row, they agree on nothing.

Where both policies have scores these are compared within displays; this is for policies of logged probabilities.
"""

from __future__ import annotations

import numpy as np

from foretest.aggregation.aggregates import Aggregates
from foretest.diagnostics.treatment_health import mean_by_unit
from foretest.displays.batch import Floats
from foretest.results.questions import Question

ROWS = "order of rows"

FEWEST_DISPLAYS = 100
LEAST_CORRELATION = 0.02  # and two standard errors, as of scores


def probability_questions(aggregates: Aggregates) -> list[Question]:
    """What the two columns of probabilities of a log ask for; nothing where both policies have scores."""
    settings, sample = aggregates.plan.settings, aggregates.sampled_displays
    both_draw = settings.control.can_draw and settings.treatment.can_draw
    if both_draw or "log_p" not in sample or len(sample["unit"]) < FEWEST_DISPLAYS:
        return []
    log_p = sample["log_p"]
    control, treatment = standard_ranks(log_p), standard_ranks(log_p + sample["log_w"])
    if control is None or treatment is None:
        return []
    correlation, error = mean_by_unit(control * treatment, sample["unit"])
    if correlation is None or error is None or abs(correlation) >= LEAST_CORRELATION + 2.0 * error:
        return []
    return [
        Question(
            ROWS,
            "what the control finds likely and what the treatment finds likely have nothing to do with each other from"
            f" row to row (rank correlation {correlation:.2f} over {len(log_p):,} displays). Two models of the same"
            " displays usually agree more: is a column of probabilities off by a row, sorted otherwise, or of another"
            " display?",
        )
    ]


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

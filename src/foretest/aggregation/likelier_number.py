"""The temperature, sigma or epsilon that a log looks as if drawn at, where it does not look like the one given."""

from __future__ import annotations

import numpy as np

from foretest.aggregation.fold_plan import FoldPlan
from foretest.aggregation.kept_rows import Columns
from foretest.displays.batch import Displays, Floats
from foretest.policies.fitted_parameter import parameter_of, with_number
from foretest.policies.likelihood_fit import CannotFit, fit_number

LIKELIER = "likelier_number"  # the column of the sampled displays with it, one number in all of them
GAIN = "likelier_gain"  # by how much it makes what was shown more likely: log π_p of a display, on average
MOST_DISPLAYS = 4096  # that it is fitted on
_SUSPECT = 3.0  # how many standard errors the likelihood may be off before a fit is tried


def likelier_number(plan: FoldPlan, displays: Displays, columns: Columns, displays_per_row: Floats) -> Columns:
    """The number that is fitted to the sampled displays and its gain, as columns; none where what was shown is as
    likely as the control says, or where the control has no such number. It costs nothing unless the audit is about to
    fail."""
    control = plan.settings.control
    if plan.control_fits or parameter_of(control) is None or "expected_log_p" not in columns or len(displays) < 2:
        return {}
    apart = columns.get("log_p_scores", columns["log_p"]) - columns["expected_log_p"]
    with np.errstate(over="ignore", invalid="ignore"):  # of scores of 1e307
        suspect = abs(apart.mean()) > _SUSPECT * apart.std() / np.sqrt(len(apart))
    if not suspect:
        return {}
    some = np.arange(min(len(displays), MOST_DISPLAYS))
    try:
        fit = fit_number(control, displays.take(some), displays_per_row[some])
    except CannotFit:
        return {}
    fitted_on = displays.take(some)
    likely = with_number(control, fit.value).log_prob(fitted_on, fitted_on.ranking)
    gain = float((likely - columns.get("log_p_scores", columns["log_p"])[some]).mean())
    return {LIKELIER: np.full(len(displays), fit.value), GAIN: np.full(len(displays), gain)}

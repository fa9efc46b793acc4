"""Do the treatment's scores know what was shown? Given the context, what was shown is a draw of the control,
independent of all scores that were not computed from it.

S_1 and S_2 (`aggregation/shown_scores.py`) have mean 0 then, whatever the rewards are, also for scores from the user's
earlier displays: these are a past that no later draw depends on. A wrong control fails this test too, so the cause is
named only where the tests of the control itself pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from foretest.aggregation.kept_rows import Columns
from foretest.aggregation.shown_scores import SCORED, SIZE, residual_at_one_slope
from foretest.aggregation.thinning import standing_for
from foretest.diagnostics.audit.by_unit import two_sided, z_by_unit
from foretest.displays.batch import Floats
from foretest.displays.ragged import Ints
from foretest.results.audit import FAIL, PASS, Finding, grade

NAME = "knows the draw"
_REMEDY = (
    "A treatment may not be trained on the rows it is tested on, nor may its features be computed from them (a user's"
    " clicks on an item, a click rate by category). Train it on earlier days and name the last of them: [treatment]"
    " trained_until = DATE leaves out the rows up to that day. What a user did before a display may be in its scores."
)


class Standing(NamedTuple):
    """How far the sums of S_1 and S_2 (and of the number of items scored, with candidates of its own) are from 0."""

    z: Floats
    p_value: float  # of the farthest, times how many there are


def standing(sample: Columns, starts: Ints, error: Floats, information_ratio: float) -> Standing | None:
    """The sums by group of rows, those that begin at `starts`; None where every display allows one ranking alone, or
    the treatment follows the control.

    A row of a thinned log counts 1/keep times. `error` is log π_p(a) less its expectation, which a fitted control errs
    along: z² is then divided by 1 + r²·I_audit/I_fit, r the correlation of the sum with that of `error`.
    """
    sums = [residual_at_one_slope(sample), sample[SIZE], sample.get(SCORED, np.zeros(len(error)))]
    some = [column for column in sums if column.any()]
    if not some:
        return None
    counts = standing_for(sample)
    terms = np.column_stack(some).astype(np.float64) * counts[:, None]
    z = z_by_unit(terms, starts)
    if information_ratio > 0.0:
        error = np.where(np.isfinite(error), error, 0.0)
        by_unit, along = np.add.reduceat(terms, starts, axis=0), np.add.reduceat(error * counts, starts)
        size = np.square(by_unit).sum(axis=0) * float(along @ along)
        shared = np.divide(np.square(along @ by_unit), size, out=np.ones(len(z)), where=size > 0.0)
        z = z / np.sqrt(1.0 + shared * information_ratio)
    return Standing(z, min(1.0, len(z) * two_sided(float(np.abs(z).max()))))


def knows_draw(standing: Standing, p_value: float, doubts: list[str]) -> Finding:
    """The finding; `p_value` is adjusted for the number of treatments, `doubts` are the tests of the control that do
    not pass."""
    z = float(standing.z[np.abs(standing.z).argmax()])
    numbers = f"(z = {' and '.join(f'{value:+.1f}' for value in standing.z)})"
    outcome = grade(p_value)
    if outcome == PASS:
        return Finding(NAME, PASS, p_value, z, f"the treatment's scores do not know what was shown {numbers}", None)
    if doubts:
        return Finding(
            NAME, outcome, p_value, z,
            f"what was shown is not independent of the treatment's scores {numbers}, but the control is wrong first"
            f" ({', '.join(doubts)})",
            "Put the control right: a wrong one fails this test too. If it still fails then, the treatment was trained"
            " on these rows.",
        )  # fmt: skip
    perhaps = "" if outcome == FAIL else "perhaps "
    were = "were" if outcome == FAIL else "may have been"
    return Finding(
        NAME, outcome, p_value, z,
        f"the treatment's scores {perhaps}know what these displays showed: they {were} computed from data that contains"
        f" them {numbers}",
        _REMEDY,
    )  # fmt: skip


def with_leak(finding: Finding) -> Finding:
    """A finding about the treatment's weights, of a log whose control passes its own tests: only scores that know what
    was shown can fail it."""
    if finding.remedy is None:
        return finding
    likely = "The control passes its own tests, so the treatment's scores probably know what these displays showed."
    return replace(finding, remedy=f"{likely} {_REMEDY} If it was not: {finding.remedy}")

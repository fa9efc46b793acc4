"""Was the control the same on all days? One that was changed in the middle of a log fits before some day or after it,
or where its number was fitted to both, on neither side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.aggregation.audit_context import texts_of
from foretest.diagnostics.audit.by_unit import independent_rows, two_sided, z_by_unit
from foretest.displays.batch import Floats, Hashes
from foretest.displays.days import first_and_last
from foretest.results.audit import Finding, tested

NAME = "likelihood by day"
FEWEST_UNITS = 100  # before a day, and from it on
MOST_SPLITS = 30  # days that may be the first of another control
ROUNDING = 1e-10  # of log-probabilities: where all rankings are equally likely nothing else is left

Ints = npt.NDArray[np.int64]


def days_in_order(column: npt.NDArray[np.uint64]) -> tuple[list[str], Ints]:
    """The days of rows in their order, and the number of each row's day; no days where their order is not known."""
    names, day = texts_of(column)
    if all(name.lstrip("-").isdigit() for name in names):
        order = sorted(range(len(names)), key=lambda i: int(names[i]))
    elif all(first_and_last([name]) for name in names):
        order = sorted(range(len(names)), key=lambda i: names[i])
    else:
        return [], day
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    return [names[i] for i in order], rank[day]


def likelihood_by_day(apart: Floats, unit: Hashes, names: list[str], day: Ints) -> Finding | None:
    """The day that best divides rows whose log π_p(a) is above its expectation from those where it is below: z by unit
    of the difference, of every day that leaves enough units on both sides (Bonferroni). None where no day does.

    `apart` is log π_p(a) − E_p log π_p, whose mean is 0 on any rows that the control showed. What a fitted number errs
    by is in it on both sides, and leaves their difference alone.
    """
    starts, rows = independent_rows(unit), len(day)
    apart = np.where(np.abs(apart) <= ROUNDING, 0.0, apart)
    up_to = np.cumsum(np.bincount(day, minlength=len(names)))[:-1]  # rows before each day but the first
    units = len(starts) / rows  # per row
    able = 1 + np.flatnonzero((up_to * units >= FEWEST_UNITS) & ((rows - up_to) * units >= FEWEST_UNITS))
    if not len(able):
        return None
    splits = able[np.linspace(0, len(able) - 1, min(len(able), MOST_SPLITS)).astype(np.int64)]  # each another day
    centred = apart - apart.mean()
    shares = 1.0 - up_to[splits - 1] / rows  # of the rows from each day on
    of_units = np.add.reduceat(centred, starts)
    after = [np.add.reduceat(centred * (day >= k), starts) - of_units * s for k, s in zip(splits, shares, strict=True)]
    z = np.array([z_by_unit(sums[:, None], np.arange(len(sums)))[0] for sums in after])
    at = int(np.argmax(np.abs(z)))
    first, worst = names[splits[at]], float(z[at])
    before, later = (float(apart[side].mean()) for side in (day < splits[at], day >= splits[at]))
    more = "more" if later > before else "less"
    numbers = (
        f"log-probability less what is expected: {before:+.4f} before, {later:+.4f} from then on (z = {worst:+.1f})"
    )
    return tested(
        NAME, min(1.0, two_sided(worst) * len(splits)), worst,
        f"what was shown is as likely before every day as from it on (of {len(splits):,} days)",
        f"from {first} on what was shown is {more} likely than before; {numbers}",
        f"The control was probably changed on {first}: another temperature, model or rule. Test the days from then on"
        " alone, as the control now is; or describe both as loggers, with the column that says which of them showed a"
        " row in [log] logger.",
    )  # fmt: skip

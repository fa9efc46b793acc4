"""Was the log thinned as [log] keep says? Keep that is smaller where there is a reward, or rows without a reward that
are all missing, are questioned."""

from __future__ import annotations

from typing import NamedTuple

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.quantities import KEEP
from foretest.aggregation.thinning import size_of
from foretest.diagnostics.reward_questions import are_counts
from foretest.formatting import format_number
from foretest.results.questions import Question

NO_UNREWARDED, INVERTED = "no row without a reward", "keep smaller with a reward"

FEWEST_ROWS = 100  # of a log, and of the rewarded
MUCH_LESS = 0.5  # of the mean keep of rows without a reward
_ALL = 1.0 - 1e-9  # keep that is 1 in every row


class _Kept(NamedTuple):
    """Some rows, and their mean keep."""

    rows: float
    keep: float


def thinning_notes(aggregates: Aggregates) -> list[str]:
    """What was left out because rows were, as a note; nothing where the log was not thinned."""
    return [
        f"the log was thinned: {aggregates.rows:,} rows stand for {displays:,.0f} displays. Betting"
        " intervals and lower bounds are left out, which need all rows of every unit."
        for displays in size_of(aggregates.ledger).values()
        if aggregates.rows
    ]


def thinning_questions(aggregates: Aggregates) -> list[Question]:
    """What keep and the rewards of a thinned log ask for together."""
    column = aggregates.plan.settings.log.keep
    rows, keep, other_rows, other_keep = aggregates.ledger.plain.get(KEEP, size=4).tolist()
    rewarded, others = (_Kept(n, total / n if n else 0.0) for n, total in ((rows, keep), (other_rows, other_keep)))
    if rewarded.rows < FEWEST_ROWS:
        return []
    if not others.rows:
        sample, metrics = aggregates.sampled_displays, aggregates.plan.rewards.values()
        every = all(are_counts(sample["r", m]) for m in metrics)  # minutes and amounts are above 0 in every row
        return [_no_unrewarded(column, rewarded)] if every else []
    if others.rows >= FEWEST_ROWS and rewarded.keep < MUCH_LESS * others.keep:
        return [
            Question(
                INVERTED,
                f"rows with a reward were kept less often than others ('{column}' is {format_number(rewarded.keep)} on"
                f" average, and {format_number(others.keep)} without a reward). Logs are thinned the other way round:"
                " is the column the probability that a row is kept, and not that it is dropped?",
            )
        ]
    return []


def _no_unrewarded(column: str | None, rewarded: _Kept) -> Question:
    """Every row has a reward: no keep can stand for rows that are all missing."""
    was = "is 1 in every row" if rewarded.keep >= _ALL else f"has a mean of {format_number(rewarded.keep)}"
    return Question(
        NO_UNREWARDED,
        f"every row has a reward, and '{column}' {was}. Were rows without a reward dropped altogether? No weight can"
        " stand for them: keep a share of them, at random, and write it in their rows.",
    )

"""Do few units have most of the rows? A bot, or an id that stands for many, decides an answer alone."""

from __future__ import annotations

from foretest.aggregation.aggregates import Aggregates
from foretest.aggregation.large_units import LargeUnits
from foretest.aggregation.unit_counts import UnitCounts
from foretest.formatting import percent, some_of
from foretest.results.questions import Question

LARGE, FEW_LARGE = "one unit has many rows", "few units have most rows"

FEWEST_ROWS = 500
MOST_OF_ONE = 0.05  # of the rows
MANY_TIMES = 10.0  # the mean rows of a unit: of few units each has a large share
FEW, MOST_OF_FEW = 0.01, 1.0 / 3.0  # so many of the units have so many of the rows
FEWEST_UNITS = 500
_REMEDY = (
    "The rows of a unit count as one observation, so that these decide much of the answer. Leave bots and test accounts"
    " out; where an id stands for many, as for all who are not logged in, give these rows ids of their own, as of their"
    " session."
)


def unit_questions(aggregates: Aggregates) -> list[Question]:
    """What the numbers of rows of the units ask for; nothing where the log's units have no names."""
    units, large, column = aggregates.units, aggregates.large_units, aggregates.plan.settings.log.unit
    if units is None or large is None or column is None or units.rows < FEWEST_ROWS:
        return []
    large = large.largest(units)  # of all rows: a unit that is large in one part need not be
    question = _large(column, units, large) or _few(column, units, large)
    return [] if question is None else [question]


def _large(column: str, units: UnitCounts, large: LargeUnits) -> Question | None:
    """Units that have more than a twentieth of the rows each."""
    shares = _shares(units, large, max(MOST_OF_ONE, MANY_TIMES / max(units.units, 1)))
    if not shares:
        return None
    named = [f"{column} = {name} has {percent(share)} of the rows" for name, share in shares.items()]
    return Question(LARGE, f"{some_of(named, 3)}. Is it a bot, or an id that stands for many? {_REMEDY}")


def _few(column: str, units: UnitCounts, large: LargeUnits) -> Question | None:
    """A hundredth of the units with a third of the rows."""
    if units.units < FEWEST_UNITS:
        return None
    number, share = units.share_of_largest(FEW)
    if share < MOST_OF_FEW:
        return None
    shares = _shares(units, large, 0.0)
    first = f"; the largest are {some_of([*shares], 3)}" if shares else ""
    return Question(
        FEW_LARGE,
        f"{number:,} of {units.units:,} values of '{column}' have {percent(share)} of the rows{first}. Are they bots,"
        f" or ids that stand for many? {_REMEDY}",
    )


def _shares(units: UnitCounts, large: LargeUnits, least: float) -> dict[str, float]:
    """The shares of the rows that the named units have, if larger than `least`."""
    shares = units.rows_of(large.hashes) / units.rows
    return {name: float(share) for name, share in zip(large.names.values(), shares, strict=True) if share > least}

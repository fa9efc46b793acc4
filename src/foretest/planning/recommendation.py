"""One way to explore that is worth its cost.

An uplift that exploration helps to find must first repay what exploration gave up. Both are shares of the control's
value, so the rule adds them: smallest uplift (at the best level) + cost. Of all ways within a tenth of the least sum,
the one that costs least is recommended: the last tenth is not worth paying for, and not known so well either. Where the
log cannot tell a cost, the most that it could be counts; in the sum a cost below 0 counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from foretest.formatting import percent
from foretest.planning.explored import Explored
from foretest.planning.exploring_policies import UNIFORM
from foretest.planning.levels import FIT, LevelOutlook

TOLERANCE = 0.1


class Recommended(NamedTuple):
    """The way to explore that is recommended for a metric."""

    metric: str
    row: Explored
    level: str
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.json."""
        return {
            "metric": self.metric, "kind": self.row.kind, "settings": self.row.settings, "level": self.level,
            **self.row.cost.to_dict(), "cost_at_most": self.row.cost_at_most,
            "smallest_uplift": self.row.levels[self.level].smallest_uplift.to_dict(), "sentence": self.sentence,
        }  # fmt: skip


def recommend(metric: str, rows: Sequence[Explored]) -> Recommended | None:
    """The recommended one of the rows, the first of which is the control as it is; None where none shows anything."""
    able = [row for row in rows if row.best_level is not None]
    if not able:
        return None
    least = min(map(_sum, able))
    chosen = min(
        (row for row in able if _sum(row) <= (1.0 + TOLERANCE) * least), key=lambda row: (_price(row), _sum(row))
    )
    assert chosen.best_level is not None
    return Recommended(metric, chosen, chosen.best_level, _sentence(chosen, rows[0]))


def _price(row: Explored) -> float:
    """What a row costs, at the most where more is not known."""
    return row.cost_at_most if math.isnan(row.cost.value) else row.cost.value


def _sum(row: Explored) -> float:
    assert row.best_level is not None
    return row.levels[row.best_level].total + max(0.0, _price(row))


def _sentence(row: Explored, present: Explored) -> str:
    """Why, in a sentence."""
    assert row.best_level is not None
    best = row.levels[row.best_level]
    shows = f"the log could then show {percent(best.total)} ({by_level(row.best_level, best)})"
    if row is present:
        return f"Leave the control as it is: {shows.replace(' then', '')}, and no exploration buys enough to pay for."
    level = present.best_level
    instead = "instead of nothing" if level is None else f"instead of {percent(present.levels[level].total)}"
    return f"{what_to_do(row.kind, row.settings, row.epsilon)}: {shows}, {instead}, {_price_text(row)}."


def _price_text(row: Explored) -> str:
    """What it costs, in words."""
    if math.isnan(row.cost.value):
        return f"at a cost that this log does not tell (at most {percent(row.cost_at_most)} of the reward)"
    if row.cost.value < 0.0:
        return f"and earns about {percent(-row.cost.value)} more"
    return f"at a cost of about {percent(row.cost.value)} of the reward"


def by_level(level: str, outlook: LevelOutlook) -> str:
    """At which level, in words."""
    fitted = ", with the examination curve fitted" if outlook.examination == FIT else ""
    return f"by {level}{fitted}"


def what_to_do(kind: str, settings: dict[str, Any] | None, share: float | None) -> str:
    """What to do, as the start of a sentence; `share` is that of random rankings."""
    table = settings or {}
    if kind == UNIFORM:
        return f"Show random rankings in {percent(share or 0.0)} of displays"
    if "swap" in table:
        return f"Swap neighbours with probability {table['swap']:g}"
    if "temperature" in table:
        return f"Draw by Plackett-Luce at temperature {table['temperature']:.3g}"
    return f"Explore epsilon-greedily, epsilon {table.get('epsilon', 0.0):g}"

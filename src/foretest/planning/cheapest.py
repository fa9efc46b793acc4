"""The cheapest exploration that makes an uplift visible in a given time: the rows of exploration, inverted.

For each way to explore the smallest uplift is predicted at a few settings, from little to much exploration, for as many
displays as the days asked have (sampling shrinks with their root, identification stays). It usually falls with more
exploration, but need not: a treatment may be nearer to the control than to random rankings. So the first setting of
these that reaches the uplift is found, and between it and the one before, which does not, the least round number that
does, by bisection.

Costs are not known to the last digit, and a gain is not what exploration is for: a cost below 0 counts as 0, and of all
candidates within a tenth of the least cost, or within a tenth of a percent of the reward, the one is taken whose cost
has the lowest upper limit. The control as it is comes before all others: where it shows the uplift nothing is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from typing import Any, NamedTuple

from foretest.aggregation.fold_plan import FoldPlan
from foretest.planning.cost import Cost
from foretest.planning.explored import Explorer
from foretest.planning.exploring_policies import UNIFORM, Exploration, Way, as_it_is, ways_to_explore
from foretest.planning.levels import EXPOSURE, LEVELS, LevelOutlook
from foretest.planning.smallest_uplift import NEVER_VARIES
from foretest.policies import Policy
from foretest.records import dataclass

TOLERANCE = 0.1  # of the least cost
LEAST_DIFFERENCE = 0.001  # of the reward: costs that are nearer to each other are the same


class Candidate(NamedTuple):
    """A control that explores, what it costs, and what a log of the days asked could show with it."""

    kind: str
    parameter: str | None  # what `value` is called; None for the control as it is
    value: float | None
    settings: dict[str, Any] | None  # the [control] table that makes it
    policy: Policy | None
    cost: Cost
    cost_at_most: float
    levels: dict[str, LevelOutlook]

    @property
    def share(self) -> float | None:
        """The share of random rankings, where that is what it does; 0 for the control as it is."""
        return None if self.kind != UNIFORM else self.value or 0.0

    @property
    def price(self) -> float:
        """What it costs, at the most where the log does not tell; 0 where it would gain."""
        return self.cost_at_most if math.isnan(self.cost.value) else max(0.0, self.cost.value)

    @property
    def highest_price(self) -> float:
        """The upper limit of what it costs."""
        return self.cost_at_most if math.isnan(self.cost.ci_upper) else self.cost.ci_upper

    def reaches(self, level: str, uplift: float) -> bool:
        """Would its log show the uplift?"""
        return self.levels[level].total <= uplift


class Needed(NamedTuple):
    """How many times the days asked would show the uplift, with which control."""

    times: float
    candidate: Candidate


class LevelAnswer(NamedTuple):
    """What reaches the uplift at one level."""

    ways: list[Candidate]  # the least of each way that reaches it; the control as it is alone where it does
    best: Candidate | None  # the one that shows the smallest uplift; None where nothing would show
    needed: Needed | None  # where nothing reaches it: the least amount of log with which something does

    @property
    def cheapest(self) -> Candidate | None:
        """The cheapest that reaches the uplift."""
        return cheapest_of(self.ways)


class Cheapest(NamedTuple):
    """The answer at every level, and all candidates that were looked at."""

    levels: dict[str, LevelAnswer]
    frontier: list[Candidate]  # the control as it is first, then by way, from little to much exploration

    @property
    def present(self) -> Candidate:
        """The control as it is."""
        return self.frontier[0]

    @property
    def level(self) -> str | None:
        """The level at which the uplift is reached most cheaply, the control as it is before all others; of several the
        one that shows the smallest uplift."""
        chosen = {level: answer.cheapest for level, answer in self.levels.items()}
        reached = {level: candidate for level, candidate in chosen.items() if candidate is not None}
        enough = any(candidate is self.present for candidate in reached.values())
        cheapest = self.present if enough else cheapest_of(reached.values())
        levels = [level for level, candidate in reached.items() if candidate is cheapest]
        return min(levels, key=lambda level: reached[level].levels[level].total, default=None)

    @property
    def cheapest(self) -> Candidate | None:
        """The cheapest over all levels; None where nothing reaches the uplift."""
        level = self.level
        return None if level is None else self.levels[level].cheapest


def find_cheapest(explorer: Explorer, plan: FoldPlan, uplift: float) -> Cheapest:
    """Search all ways to explore; the scale of the explorer is that of the days asked."""
    return _Search(explorer, plan, uplift).answer()


@dataclass
class _Search:
    """Looks at candidates, each once."""

    explorer: Explorer
    plan: FoldPlan
    uplift: float
    looked: dict[tuple[str, float], Candidate] = field(default_factory=dict)

    def answer(self) -> Cheapest:
        """First a few settings of each way, then what lies between them."""
        present, ways = self._present(), ways_to_explore(self.plan, self.explorer.sample.displays)
        for way in ways:
            for value in way.values:
                self._look(way, value)
        levels = {level: self._level(level, present, ways) for level in LEVELS if level in present.levels}
        by_way = [self._looked(way) for way in ways]
        return Cheapest(levels, [present, *(candidate for some in by_way for candidate in some)])

    def _level(self, level: str, present: Candidate, ways: Iterable[Way]) -> LevelAnswer:
        if present.reaches(level, self.uplift):
            return LevelAnswer([present], present, None)
        values = {way: self._least(way, level) for way in ways}
        reaching = [self._look(way, value) for way, value in values.items() if value is not None]
        able = [one for one in (present, *self.looked.values()) if math.isfinite(one.levels[level].total)]
        best = min(able, key=lambda one: one.levels[level].total, default=None)
        return LevelAnswer(reaching, best, None if reaching else needed(able, level, self.uplift))

    def _least(self, way: Way, level: str) -> float | None:
        """The least value of a way that reaches the uplift; None where none does."""
        above = next((v for v in way.values if self._look(way, v).reaches(level, self.uplift)), None)
        if above is None or above == way.values[0]:
            return above
        values = [*round_numbers(way.values[way.values.index(above) - 1], above), above]
        low, high = 0, len(values) - 1  # the last one reaches it
        while low < high:
            middle = (low + high) // 2
            policy = way.at(values[middle]).policy
            assert policy is not None
            if self.explorer.look_at(level, policy).total <= self.uplift:
                high = middle
            else:
                low = middle + 1
        return values[low]

    def _look(self, way: Way, value: float) -> Candidate:
        if (way.kind, value) not in self.looked:
            self.looked[way.kind, value] = self._candidate(way.at(value), way.parameter, value)
        return self.looked[way.kind, value]

    def _looked(self, way: Way) -> list[Candidate]:
        values = sorted(value for kind, value in self.looked if kind == way.kind)
        return [self.looked[way.kind, value] for value in values]

    def _present(self) -> Candidate:
        """The control as it is; one that never varies shows nothing but by exposure."""
        present = self._candidate(as_it_is(self.plan), None, None)
        if not self.explorer.deterministic:
            return present
        levels = {
            level: outlook if level == EXPOSURE else outlook._replace(reason=NEVER_VARIES)
            for level, outlook in present.levels.items()
        }
        return present._replace(levels=levels)

    def _candidate(self, exploration: Exploration, parameter: str | None, value: float | None) -> Candidate:
        assert exploration.policy is not None
        cost, at_most, levels = self.explorer.look(exploration.policy)
        if exploration.epsilon is not None:  # rankings that are random in a share of displays
            at_most = exploration.epsilon
        return Candidate(
            exploration.kind, parameter, value, exploration.settings, exploration.policy, cost, at_most, levels
        )  # fmt: skip


def cheapest_of(candidates: Iterable[Candidate]) -> Candidate | None:
    """The one that costs least, as far as costs are known; None of none."""
    some = list(candidates)
    least = min((candidate.price for candidate in some), default=0.0)
    limit = least + max(TOLERANCE * least, LEAST_DIFFERENCE)
    near = [candidate for candidate in some if candidate.price <= limit]
    return min(near, key=lambda candidate: (candidate.highest_price, candidate.price), default=None)


def needed(candidates: Iterable[Candidate], level: str, uplift: float) -> Needed | None:
    """The least f with S/√f + I = uplift, f = (S/(uplift − I))²; None where no candidate has I below the uplift."""
    parts = {index: (one, one.levels[level].smallest_uplift) for index, one in enumerate(candidates)}
    times = [
        Needed((part.sampling / (uplift - part.identification)) ** 2, one)
        for one, part in parts.values()
        if part.identification < uplift
    ]
    return min(times, key=lambda one: one.times, default=None)


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones, ends left out: those of two digits, and halves of these below 20.

    >>> round_numbers(0.05, 0.055), round_numbers(0.98, 1.11)
    ([0.051, 0.052, 0.053, 0.054], [0.99, 1.0, 1.05, 1.1])
    """
    digits = [*(5 * k for k in range(20, 40)), *(10 * k for k in range(20, 100))]
    powers = range(math.floor(math.log10(low)) - 2, math.floor(math.log10(high)) + 1)
    numbers = (float(f"{number}e{power}") for power in powers for number in digits)
    return [number for number in numbers if low < number < high]

"""The cheapest exploration of a log, as plan.json has it: numbers, settings, the sampler's line, and words."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from foretest.files import finite_or_none
from foretest.formatting import format_number, percent, plural
from foretest.planning.cheapest import Candidate, Cheapest, LevelAnswer, find_cheapest
from foretest.planning.explorer_of_log import explorer_of
from foretest.planning.exploring_policies import ways_to_explore
from foretest.planning.goal import Goal
from foretest.planning.log_to_plan import LogToPlan, scale_of
from foretest.planning.promise_error import promise_error
from foretest.planning.recommendation import by_level, what_to_do
from foretest.planning.sampler_line import sampler_line
from foretest.records import dataclass
from foretest.results.result import Metric

MARGIN = 1.5  # how many times the rewards that connect slots a curve's fit is to have: logs vary, and some have fewer
SAMPLING, IDENTIFICATION, SUPPORT = "sampling", "identification", "support"


@dataclass(frozen=True)
class CheapestPlan:
    """The answer for one metric, and what turns its shares into rewards."""

    metric: str
    goal: Goal
    days: int | None  # those asked, or else those of the log
    displays: float  # of these days
    control: float  # the mean reward of a display
    slots: int  # the most that a display has
    answer: Cheapest
    error: float | None  # of the smallest uplift of the recommended control

    @cached_property
    def recommended(self) -> Candidate | None:
        """The cheapest over all levels; None where no exploration reaches the uplift."""
        return self.answer.cheapest

    def to_dict(self) -> dict[str, Any]:
        """The content of plan.json."""
        return {
            "metric": self.metric,
            "uplift": self.goal.uplift,
            "days": self.days,
            "displays": self.displays,
            "reward": self.control * self.displays,
            "sentence": self.sentence,
            "recommended": self._recommended(),
            "levels": {level: self._level(level, answer) for level, answer in self.answer.levels.items()},
            "frontier": [self._row(candidate) for candidate in self.answer.frontier],
        }

    def _recommended(self) -> dict[str, Any] | None:
        choice = self.recommended
        if choice is None:
            return None
        assert choice.policy is not None
        line = sampler_line(choice.policy, choice.settings or {}, self.slots)
        return {
            "level": self.answer.level, "smallest_uplift_std_error": self.error, **self._row(choice),
            "sampler": line.to_dict(),
        }  # fmt: skip

    def _level(self, level: str, answer: LevelAnswer) -> dict[str, Any]:
        cheapest, need = answer.cheapest, answer.needed
        return {
            "cheapest": None if cheapest is None else self._row(cheapest),
            "ways": [self._row(candidate) for candidate in answer.ways],
            "best": None if answer.best is None else self._row(answer.best),
            "limited_by": _limited_by(answer),
            "needed": None if need is None else {
                "times": need.times, "days": self._days_needed(need.times), **self._row(need.candidate),
            },
            "sentence": self._level_sentence(level, answer),
        }  # fmt: skip

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        lost = self.control * candidate.cost.value
        return {
            "kind": candidate.kind, "epsilon": candidate.share, "parameter": candidate.parameter,
            "value": candidate.value, "settings": candidate.settings, **candidate.cost.to_dict(),
            "cost_at_most": candidate.cost_at_most, "lost_per_display": finite_or_none(lost),
            "lost": finite_or_none(lost * self.displays),
            "lost_at_most": self.control * self.displays * candidate.cost_at_most,
            "levels": {level: outlook.to_dict() for level, outlook in candidate.levels.items()},
        }  # fmt: skip

    def _days_needed(self, times: float) -> int | None:
        return None if self.days is None else math.ceil(times * self.days)

    # -- words ---------------------------------------------------------------------------------------------------------

    @property
    def log_words(self) -> str:
        """The log that is to show the uplift."""
        return "as much log as this" if self.days is None else f"{plural(self.days, 'day')} of log"

    @property
    def sentence(self) -> str:
        """The answer over all levels."""
        choice, level = self.recommended, self.answer.level
        if choice is None or level is None:
            return self._none_reaches()
        outlook = choice.levels[level]
        known = "" if self.error is None else f"give or take {100.0 * self.error:.1f} points, "
        shows = f"could {{}}show {percent(outlook.total)} ({known}{by_level(level, outlook)})"
        if choice is self.answer.present:
            return f"Leave the control as it is: {self.log_words} {shows.format('')}, and no exploration is needed."
        return f"{_what(choice)}: {self.log_words} {shows.format('then ')}. {self._cost_words(choice)}"

    def _cost_words(self, choice: Candidate) -> str:
        cost, at_most = choice.cost, percent(choice.cost_at_most)
        if math.isnan(cost.value):
            return f"What it costs this log does not tell: at most {at_most} of the reward."
        limits = f"{percent(cost.ci_lower)} to {percent(cost.ci_upper)}"
        total, lost = self.control * self.displays, self.control * self.displays * cost.value
        whole = f"{lost:,.0f}" if total >= 1000.0 else format_number(lost)
        amounts = f"{whole} of {format_number(total)} {self.metric} in that time"
        about = "It costs about" if cost.value > 0.0 else "It costs nothing that the log can tell:"
        return f"{about} {percent(cost.value)} of the reward ({limits}; at most {at_most}), {amounts}."

    def _none_reaches(self) -> str:
        """Where the uplift is out of reach: the level that needs the least log, or none."""
        asked = f"No exploration makes {percent(self.goal.uplift)} visible in {self.log_words}"
        needs = [answer.needed for answer in self.answer.levels.values() if answer.needed is not None]
        if not needs:
            return f"{asked}, nor in any amount of it: what is not supported stays unknown."
        need = min(needs, key=lambda one: one.times)
        [level] = [name for name, answer in self.answer.levels.items() if answer.needed is need]
        return f"{asked}. {self._more(need.times)} would, by {level}: {_lower(_what(need.candidate))}."

    def _more(self, times: float) -> str:
        """So many times the days asked, in words."""
        days = self._days_needed(times)
        return f"{times:,.1f} times as much" if days is None else plural(days, "day")

    def _level_sentence(self, level: str, answer: LevelAnswer) -> str | None:
        """Why the uplift is not reached at a level; None where it is."""
        if answer.ways:
            return None
        if answer.best is None:
            return f"nothing would show: {self._obstacle(level)}"
        least = f"the least is {percent(answer.best.levels[level].total)} ({_lower(_what(answer.best))})"
        if answer.needed is not None:
            way = f"{_lower(_what(answer.needed.candidate))}"
            return f"{least}; sampling is the limit, and {self._more(answer.needed.times)} would do ({way})"
        rows = [one.levels[level] for one in self.answer.frontier]
        part = min(row.smallest_uplift.identification for row in rows if math.isfinite(row.total))
        return f"{least}; identification alone is {percent(part)} or more, and no amount of log would do"

    def _obstacle(self, level: str) -> str:
        """Why nothing shows at a level, by the candidate with the most support."""
        outlook = max(
            (one.levels[level] for one in self.answer.frontier), key=lambda outlook: outlook.treatment_mass_kept
        )
        return outlook.obstacle or "there is no standard error"


def _limited_by(answer: LevelAnswer) -> str | None:
    if answer.ways:
        return None
    if answer.best is None:
        return SUPPORT
    return IDENTIFICATION if answer.needed is None else SAMPLING


def _what(candidate: Candidate) -> str:
    if candidate.value is None:
        return "Leave the control as it is"
    return what_to_do(candidate.kind, candidate.settings, candidate.share)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def cheapest_plan(name: str, metric: Metric, m: int, log: LogToPlan, goal: Goal) -> CheapestPlan | str:
    """The cheapest exploration for the m-th metric, whose result is `metric`; or why there is none, in a sentence."""
    log = log.at_chosen_bounds(m)
    control, estimate = metric.control.value, metric.estimates[log.estimator.label]
    if log.sample is None or not control or estimate.std_error is None:
        return f"no exploration is searched: the log has no {name} to predict from."
    if not ways_to_explore(log.aggregates.plan, log.sample.displays):
        return "no exploration is searched: neither policy has scores, by which a display could be ranked otherwise."
    times = 1.0 if goal.days is None else goal.days / (log.days or 1)
    scale = scale_of(log, m, control, estimate.treatment or 0.0)
    scale = scale._replace(rows=scale.rows * times, rewards=scale.rewards * times / MARGIN)
    explorer = explorer_of(log, log.sample, m, scale)
    if explorer is None:
        return f"no exploration is searched: no display of the sample has {name}."
    answer, error = find_cheapest(explorer, log.aggregates.plan, goal.uplift), None
    if answer.cheapest is not None and answer.level is not None and answer.cheapest.policy is not None:
        error = promise_error(log, log.sample, m, scale, answer.level, answer.cheapest.policy)
    return CheapestPlan(
        metric=name,
        goal=goal,
        days=log.days if goal.days is None else goal.days,
        displays=scale.rows,
        control=control,
        slots=int(log.sample.displays.slots.max()),
        answer=answer,
        error=error,
    )

"""What studies of one log, tested in several ways, have in common: how often intervals hold, and how wide they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from interval_coverage import World, limits, make_world, user_effect


class HasLimits(Protocol):
    """The answer of one run."""

    @property
    def limits(self) -> dict[str, tuple[float, float]]: ...


Answer = TypeVar("Answer", bound=HasLimits)


@dataclass(frozen=True)
class PairedStudy(Generic[Answer]):
    """The answers of all logs of one kind by way, and the absolute uplifts that estimators tend to."""

    answers: dict[str, list[Answer]]
    expected: dict[str, float]
    control: float

    def coverage(self, how: str, label: str) -> float:
        """The share of logs whose interval holds the limit."""
        lower, upper = self._limits(how, label)
        return float(((lower <= self.expected[label]) & (self.expected[label] <= upper)).mean())

    def width(self, how: str, label: str) -> float:
        """The mean width, over the control's value."""
        lower, upper = self._limits(how, label)
        return float(np.mean(upper - lower)) / self.control

    def _limits(self, how: str, label: str) -> Any:
        return np.array([answer.limits[label] for answer in self.answers[how]]).T


def run_study(
    cls: Any, users: Any, seeds: Sequence[np.random.SeedSequence], labels: Sequence[str],
    one_log: Callable[[World, np.random.SeedSequence], dict[str, Answer]],
) -> Any:  # fmt: skip
    """A study of class `cls`: one log for each seed, of `users` who come several times where they are given."""
    world = make_world(cold_by=2.0, changes=(1.0, 1.0, 1.0, 1.0))
    ends, effect = limits(world), 1.0 if users is None else user_effect(users)
    by_log = [one_log(world, seed) for seed in seeds]
    answers = {how: [one[how] for one in by_log] for how in by_log[0]}
    expected = {label: effect * (ends[label] - ends["control"]) for label in labels}
    return cls(answers, expected, effect * ends["control"])

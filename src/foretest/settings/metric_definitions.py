"""Metrics that are made of rewards: sums of several with any sign, ratios of two, values per unit.

What a log is folded into are *parts*: rewards, or sums of rewards, that are 0 or more. A sum with losses, and a reward
that may be negative, is the difference of two parts, its gains and its losses; ratios and values per unit are made of
such metrics once a log is folded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from foretest.errors import BadInput
from foretest.records import dataclass
from foretest.settings.metric_kinds import (
    KINDS,
    Combination,
    Difference,
    Formula,
    Linear,
    derived_nouns,
    unknown_metric,
)

GAINS, LOSSES = "gains", "losses"
LARGEST_FACTOR = 1e100  # of a reward in a sum
_DEEPEST = 200  # sums that are made of sums


class Term(NamedTuple):
    """What one reward column r adds to a part: share · max(sign · r, 0)."""

    column: str
    sign: float  # 1: the column or, of one with losses, its gains; −1: its losses
    share: float  # above 0
    signed: bool = False  # may the column be negative? Gains of one slot and losses of another then count both


class Part(NamedTuple):
    """A sum of rewards that is 0 or more, which a log is folded into."""

    name: str
    terms: tuple[Term, ...]

    @property
    def is_column(self) -> bool:
        """Is it a reward column as it stands?"""
        return self.terms == (Term(self.name, 1.0, 1.0),)


@dataclass(frozen=True)
class MetricDefinitions:
    """All metrics of a test: what a log is folded into, and how the others follow from it."""

    names: tuple[str, ...]  # in the order of results
    parts: tuple[Part, ...]
    differences: tuple[Difference, ...] = ()  # of parts
    derived: tuple[Formula, ...] = ()  # those without sums of their own, in the order of kinds

    @cached_property
    def combinations(self) -> tuple[Combination, ...]:
        """What is linear in parts, by place: every part alone, then the differences."""
        parts = (Combination(part.name, m) for m, part in enumerate(self.parts))
        return (*parts, *self.differences)

    @cached_property
    def linear(self) -> dict[str, int]:
        """The place of every metric that is a part or a difference; differences stand behind all parts."""
        places = {combination.name: m for m, combination in enumerate(self.combinations)}
        return {name: places[name] for name in self.names if name in places}

    @cached_property
    def formulas(self) -> dict[str, Formula]:
        """All metrics, in the order of kinds."""
        linear = {name: self.combinations[m] for name, m in self.linear.items()}
        return {**linear, **{formula.name: formula for formula in self.derived}}

    @cached_property
    def joint(self) -> tuple[Formula, ...]:
        """The metrics that are functions of several others, whose sums they need together."""
        return tuple(formula for formula in self.derived if formula.multiple_of is None)

    @cached_property
    def multiples(self) -> tuple[Formula, ...]:
        """The metrics that are another one times a number which is taken as known."""
        return tuple(formula for formula in self.derived if formula.multiple_of is not None)


def metric_definitions(rewards: tuple[str, ...], tables: Mapping[str, Any]) -> MetricDefinitions:
    """All metrics of a test with these reward columns and these checked tables [metrics.NAME].

    >>> from foretest.settings.metric_roles import MetricRole
    >>> tables = {"value": MetricRole(sum={"play": 1.0, "hide": -3.0})}
    >>> metrics = metric_definitions(("play", "hide"), tables)
    >>> metrics.names, [part.name for part in metrics.parts], metrics.linear["value"]
    (('play', 'hide', 'value'), ['play', 'hide', 'value (gains)', 'value (losses)'], 4)
    """
    signed = {name for name, table in tables.items() if table.signed}
    derived = {name: table for name, table in tables.items() if table.is_derived}
    names = (*rewards, *derived)
    factors = {name: {name: 1.0} for name in rewards}
    of_sums: dict[str, dict[str, float]] = {}
    for name, table in derived.items():
        if table.sum is not None:
            factors[name] = _factors(name, tables, rewards, (), of_sums)
            _refuse_sizes(name, factors[name])
    parts: list[Part] = []
    differences: list[Difference] = []
    for name, by_column in factors.items():
        sides = _parts(name, by_column, signed)
        differences += [Difference(name, len(parts), len(parts) + other) for other in range(1, len(sides))]
        parts += sides
    _refuse_taken([part.name for part in parts])
    plain = MetricDefinitions(names, tuple(parts), tuple(differences))
    metrics = Linear({name: plain.combinations[m] for name, m in plain.linear.items()}, names)
    made = (
        kind.made(name, table, metrics)
        for kind in KINDS
        for name, table in derived.items()
        if name not in plain.linear and kind in table.kinds
    )
    return dataclasses.replace(plain, derived=tuple(made))


def _factors(
    name: str,
    tables: Mapping[str, Any],
    rewards: tuple[str, ...],
    inside: tuple[str, ...],
    made: dict[str, dict[str, float]],
) -> dict[str, float]:
    """The factor of every reward column in a sum, whose terms may be sums themselves: `made` has those of sums that
    were met before, for a sum of sums may name one on a million ways."""
    if name in made:
        return made[name]
    if len(inside) >= _DEEPEST:
        raise BadInput(
            f"[metrics.{inside[0]}] sum is made of sums that are made of sums, more than {_DEEPEST} deep: write it as a"
            " sum of rewards."
        )
    total: dict[str, float] = {}
    for term, factor in tables[name].sum.items():
        if term == name or term in inside:
            raise BadInput(
                f"[metrics.{name}] sum names {'itself' if term == name else f'{term}, which is made of it'}."
            )
        table = tables.get(term)
        if term in rewards:
            columns = {term: 1.0}
        elif table is not None and table.sum is not None:
            columns = _factors(term, tables, rewards, (*inside, name), made)
        elif table is not None and table.is_derived:
            raise BadInput(
                f"[metrics.{name}] sum names {term}, which is {derived_nouns()}: a sum is of rewards and sums."
            )
        else:
            sums = (other for other, made in tables.items() if made.sum is not None and other != name)
            raise BadInput(unknown_metric(f"[metrics.{name}] sum", term, (*rewards, *sums)))
        for column, share in columns.items():
            total[column] = total.get(column, 0.0) + factor * share
    made[name] = {column: factor for column, factor in total.items() if factor}
    return made[name]


def _refuse_sizes(name: str, factors: Mapping[str, float]) -> None:
    """Refuse factors whose squares no float holds."""
    for column, factor in factors.items():
        if not 1.0 / LARGEST_FACTOR <= abs(factor) <= LARGEST_FACTOR:
            raise BadInput(
                f"[metrics.{name}] sum: {column} counts {factor:g} times, and a factor is between"
                f" {1.0 / LARGEST_FACTOR:g} and {LARGEST_FACTOR:g}, whatever its sign: sums of squares cannot be"
                " represented. Choose another unit."
            )


def _parts(name: str, by_column: Mapping[str, float], signed: set[str]) -> list[Part]:
    """The parts of a metric: what adds to it, and what takes from it where anything does."""
    gains, losses = (_side(by_column, signed, side) for side in (1.0, -1.0))
    if not gains:
        raise BadInput(f"[metrics.{name}] sum has no factor above 0: turn the signs, and set direction.")
    if not losses:
        return [Part(name, gains)]
    return [Part(f"{name} ({GAINS})", gains), Part(f"{name} ({LOSSES})", losses)]


def _side(by_column: Mapping[str, float], signed: set[str], side: float) -> tuple[Term, ...]:
    """One side of a metric, as a sum of terms that are 0 or more."""
    return tuple(
        Term(column, sign, abs(factor), column in signed)
        for column, factor in by_column.items()
        for sign in ((1.0, -1.0) if column in signed else (1.0,))
        if side * sign * factor > 0.0
    )


def _refuse_taken(parts: list[str]) -> None:
    twice = [name for name in parts if parts.count(name) > 1]
    if twice:
        raise BadInput(f"two metrics are named '{twice[0]}': rename one of them.")

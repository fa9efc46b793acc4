"""Metrics that are made of rewards: sums of several with any sign, ratios of two, values per unit.

What a log is folded into are *parts*: rewards, or sums of rewards, that are 0 or more. A sum with losses, and a reward
that may be negative, is the difference of two parts, its gains and its losses; ratios and values per unit are made of
such metrics once a log is folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from foretest.errors import BadInput, check_number, nearest
from foretest.records import dataclass

WHOLE, GAINS, LOSSES = "whole", "gains", "losses"
UNIT = "unit"
LARGEST_FACTOR = 1e100  # of a reward in a sum
_DEEPEST = 200  # sums that are made of sums


class Term(NamedTuple):
    """What one reward column adds to a part: `share` times it, or times its gains or losses alone."""

    column: str
    side: str  # WHOLE, GAINS or LOSSES
    share: float  # above 0


class Part(NamedTuple):
    """A sum of rewards that is 0 or more, which a log is folded into."""

    name: str
    terms: tuple[Term, ...]

    @property
    def is_column(self) -> bool:
        """Is it a reward column as it stands?"""
        return self.terms == (Term(self.name, WHOLE, 1.0),)


class Difference(NamedTuple):
    """A metric with losses: one part less another."""

    name: str
    gains: int  # the places of both parts
    losses: int


class Combination(NamedTuple):
    """A metric that is linear in parts: a part, or one part less another."""

    name: str
    gains: int  # the place of the part that counts in its favour
    losses: int | None = None  # and of the one that counts against it, where there is one


class Ratio(NamedTuple):
    """A metric that is one metric per another, both folded."""

    name: str
    above: str
    below: str


class PerUnit(NamedTuple):
    """A metric per unit, not per display."""

    name: str
    of: str


@dataclass(frozen=True)
class MetricDefinitions:
    """All metrics of a test: what a log is folded into, and how the others follow from it."""

    names: tuple[str, ...]  # in the order of results
    parts: tuple[Part, ...]
    differences: tuple[Difference, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    per_unit: tuple[PerUnit, ...] = ()

    @property
    def combinations(self) -> tuple[Combination, ...]:
        """What is linear in parts, by place: every part alone, then the differences."""
        parts = (Combination(part.name, m) for m, part in enumerate(self.parts))
        return (*parts, *(Combination(*one) for one in self.differences))

    @property
    def linear(self) -> dict[str, int]:
        """The place of every metric that is a part or a difference; differences stand behind all parts."""
        shown = {part.name: m for m, part in enumerate(self.parts) if part.name in self.names}
        behind = {one.name: len(self.parts) + d for d, one in enumerate(self.differences)}
        both = {**shown, **behind}
        return {name: both[name] for name in self.names if name in both}


def check_definition(sum_of: Any, ratio: Any, per: Any, of: Any, signed: Any) -> None:
    """Refuse a [metrics.NAME] table whose definition has a wrong type, or says two things."""
    given = [key for key, value in (("sum", sum_of), ("ratio", ratio), ("per", per)) if value is not None]
    if len(given) > 1:
        raise BadInput(f"{' and '.join(given)} are both given: a metric is one of sum, ratio, or per and of.")
    if sum_of is not None:
        if not isinstance(sum_of, Mapping) or not sum_of:
            raise BadInput(
                f"sum = {sum_of!r}: expected a factor for each metric, as in sum = {{play = 1.0, hide = -3.0}}."
            )
        for name, factor in sum_of.items():
            check_number(f"sum: {name}", factor)
            if factor == 0:
                raise BadInput(f"sum: {name} = 0 adds nothing: leave {name} out.")
    if ratio is not None and (
        not isinstance(ratio, list | tuple) or len(ratio) != 2 or not all(isinstance(name, str) for name in ratio)
    ):
        raise BadInput(f'ratio = {ratio!r}: expected two metrics, as in ratio = ["revenue", "click"].')
    if per is not None and per != UNIT:
        raise BadInput(f'per = {per!r}: a metric is per display, or per = "unit".')
    if (per is None) != (of is None):
        raise BadInput('per and of belong together, as in per = "unit", of = "click".')
    if of is not None and not isinstance(of, str):
        raise BadInput(f'of = {of!r}: expected the name of a metric, as in of = "click".')
    if not isinstance(signed, bool):
        raise BadInput(f"signed = {signed!r}: expected true or false.")
    if signed and given:
        raise BadInput(
            f"signed is for a column of rewards, and this metric is made by {given[0]}: a sum may have any sign."
        )


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
    made: dict[str, dict[str, float]] = {}
    for name, table in derived.items():
        if table.sum is not None:
            factors[name] = _factors(name, tables, rewards, (), made)
            _refuse_sizes(name, factors[name])
    parts: list[Part] = []
    differences: list[tuple[str, int]] = []
    for name, by_column in factors.items():
        gains, losses = _sides(by_column, signed)
        if gains and losses:
            differences.append((name, len(parts)))
            parts += [Part(f"{name} ({GAINS})", gains), Part(f"{name} ({LOSSES})", losses)]
        elif gains:
            parts.append(Part(name, gains))
        else:
            raise BadInput(f"[metrics.{name}] sum has no factor above 0: turn the signs, and set direction.")
    _refuse_taken([part.name for part in parts])
    return MetricDefinitions(
        names=names,
        parts=tuple(parts),
        differences=tuple(Difference(name, at, at + 1) for name, at in differences),
        ratios=tuple(_ratio(name, table.ratio, factors, names) for name, table in derived.items() if table.ratio),
        per_unit=tuple(_per_unit(name, table.of, factors, names) for name, table in derived.items() if table.per),
    )


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
                f"[metrics.{name}] sum names {term}, which is a ratio or per unit: a sum is of rewards and sums."
            )
        else:
            sums = (other for other, made in tables.items() if made.sum is not None and other != name)
            raise BadInput(_unknown(f"[metrics.{name}] sum", term, (*rewards, *sums)))
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


def _sides(by_column: Mapping[str, float], signed: set[str]) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """What adds to a metric and what takes from it, both as sums of terms that are 0 or more."""
    gains: list[Term] = []
    losses: list[Term] = []
    for column, factor in by_column.items():
        adds, takes = (gains, losses) if factor > 0 else (losses, gains)
        if column in signed:
            adds.append(Term(column, GAINS, abs(factor)))
            takes.append(Term(column, LOSSES, abs(factor)))
        else:
            adds.append(Term(column, WHOLE, abs(factor)))
    return tuple(gains), tuple(losses)


def _ratio(name: str, given: Any, factors: Mapping[str, Any], names: tuple[str, ...]) -> Ratio:
    above, below = given
    for one in given:
        _refuse_no_part(name, "ratio", one, factors, names)
    if above == below:
        raise BadInput(f"[metrics.{name}] ratio is of {above} by itself, which is always 1.")
    return Ratio(name, above, below)


def _per_unit(name: str, of: str, factors: Mapping[str, Any], names: tuple[str, ...]) -> PerUnit:
    _refuse_no_part(name, "of", of, factors, names)
    return PerUnit(name, of)


def _refuse_no_part(name: str, key: str, one: str, factors: Mapping[str, Any], names: tuple[str, ...]) -> None:
    if one in factors:
        return
    if one == name:
        raise BadInput(f"[metrics.{name}] {key} names itself.")
    if one in names:
        raise BadInput(
            f"[metrics.{name}] {key} names {one}, which is a ratio or per unit itself: name rewards or sums."
        )
    raise BadInput(_unknown(f"[metrics.{name}] {key}", one, tuple(factors)))


def _unknown(where: str, name: str, known: tuple[str, ...]) -> str:
    known = tuple(dict.fromkeys(known))
    return (
        f"{where} names '{name}', which is no metric.{nearest(str(name), known)} The metrics are: {', '.join(known)}."
    )


def _refuse_taken(parts: list[str]) -> None:
    twice = [name for name in parts if parts.count(name) > 1]
    if twice:
        raise BadInput(f"two metrics are named '{twice[0]}': rename one of them.")

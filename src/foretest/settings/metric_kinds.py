"""The kinds of metrics: what each is made of, and the one function of values that it is.

Rewards, and sums of rewards with any sign, have sums of their own. Every other metric is a fraction of such metrics'
values per display: a ratio A/B, a value per unit A/U with U the units per display. Whoever asks for its value, in the
control, in the treatment, in an arm or in a resample, calls `fraction` with theirs; every standard error is the
derivative of the same function, by the complex step. What a kind can have is declared by its class.

To add a kind, add its keys to `MadeOf`, its class, and its place in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import sub
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from foretest.errors import BadInput, check_number, nearest
from foretest.formatting import format_number, some_of
from foretest.records import dataclass
from foretest.settings.key_help import explained
from foretest.settings.log_columns import MULTIPLICITIES, LogColumns, multiplicities_of

if TYPE_CHECKING:
    from foretest.settings.analysis import Analysis

UNIT = "unit"


@dataclass(frozen=True)
class MadeOf:
    """The keys of [metrics.NAME] that say what a metric is made of, of every kind."""

    sum: Mapping[str, float] | None = explained(
        None, "the metric is a sum: factors, of any sign, by the names of other metrics"
    )
    ratio: tuple[str, str] | None = explained(
        None, "the metric is a ratio: the names of two other metrics, the upper one first"
    )
    per: str | None = explained(None, "unit: the metric is a value per unit, of the metric that the key of names")
    of: str | None = explained(None, "the metric whose value per unit it is")

    @property
    def kinds(self) -> list[type[Formula]]:
        """The kinds whose key is given: one at most in a table that was checked."""
        return [kind for kind in KINDS if getattr(self, kind.keys[0]) is not None]


class LogFacts(NamedTuple):
    """What a note on a kind of metric may say of the log."""

    unit: str | None
    displays_per_unit: float  # 0 in an empty log
    without: list[str]  # estimators that metrics with losses cannot have


@dataclass(frozen=True)
class Formula:
    """A metric: its name, what it is made of, and one function of the values of that."""

    name: str

    keys: ClassVar[tuple[str, ...]]  # of its table; the first of them names the kind
    noun: ClassVar[str]  # what a metric of the kind is
    #: is the number of units per display the last value that its function takes?
    counts_units: ClassVar[bool] = False

    @classmethod
    def check(cls, table: MadeOf) -> None:
        """Refuse keys of the kind that have a wrong type."""

    @classmethod
    def made(cls, name: str, table: MadeOf, metrics: Linear) -> Formula:
        """The metric of a checked table."""
        raise NotImplementedError(f"{cls.__name__} is not made of other metrics")

    def note(self, log: LogFacts) -> str | None:
        """What a reader must know of metrics of this kind in an offline test."""
        return None

    @property
    def of(self) -> tuple[Combination, ...]:
        """The metrics with sums whose values its function takes."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it is made of")

    def fraction(self, *values: Any) -> tuple[Any, Any]:
        """Its numerator and denominator, from the values per display of what it is made of: arithmetic, for real and
        complex numbers alike."""
        raise NotImplementedError(f"{type(self).__name__} has no function")

    def denominator(self, *values: Any) -> Any:
        return self.fraction(*values)[1]

    @property
    def divisor(self) -> str | None:
        """In words what it is divided by, where that may be 0: there is no number where its interval contains 0."""
        return None

    def per(self, unit: str | None) -> str | None:
        """What it is per, where that is not a display."""
        return self.divisor

    @property
    def multiple_of(self) -> str | None:
        """The one metric with sums that it is a known multiple of, above 0: all that is said of that metric holds for
        it. None where it is a function of several, whose sums are needed together."""
        return None

    @property
    def has_range(self) -> bool:
        """Do bounds on rewards bound its value, so that it may have limits which hold with any number of rewards?"""
        return False

    @property
    def needs_clear_control(self) -> bool:
        """Has it a relative uplift only where the interval of the control's value excludes 0?"""
        return False

    @property
    def is_calibrated(self) -> bool:
        """Can past tests say what unsupported recommendations earn of it?"""
        return False

    @property
    def is_planned(self) -> bool:
        """Can a plan say what a log could show of it?"""
        return False

    def refuse(self, log: LogColumns, analysis: Analysis) -> None:
        """Refuse settings under which it has no numbers."""
        from foretest.settings.analysis import BOUNDED

        if analysis.interval in BOUNDED and not self.has_range:
            raise BadInput(
                f'[analysis] interval = "{analysis.interval}" is for rewards of 0 or more, and {self.name} is not one:'
                ' take interval = "bootstrap" or "delta", or leave the metric out.'
            )


class Linear(NamedTuple):
    """The metrics with sums, by name, and the names of all metrics: what others may be made of."""

    combinations: Mapping[str, Combination]
    names: tuple[str, ...]

    def find(self, owner: str, key: str, name: str) -> Combination:
        """The metric that a key of another one names."""
        if name in self.combinations:
            return self.combinations[name]
        if name == owner:
            raise BadInput(f"[metrics.{owner}] {key} names itself.")
        if name in self.names:
            raise BadInput(
                f"[metrics.{owner}] {key} names {name}, which is {derived_nouns()} itself: name rewards or sums."
            )
        raise BadInput(unknown_metric(f"[metrics.{owner}] {key}", name, tuple(self.combinations)))


@dataclass(frozen=True)
class Combination(Formula):
    """A metric that is linear in parts, and so has sums of its own: here a part as it stands."""

    gains: int  # the place of the part that counts in its favour

    keys = ("sum",)
    noun = "a sum"
    may_be_negative: ClassVar[bool] = False

    @classmethod
    def check(cls, table: MadeOf) -> None:
        factors: Any = table.sum
        if factors is None:
            return
        if not isinstance(factors, Mapping) or not factors:
            raise BadInput(
                f"sum = {factors!r}: expected a factor for each metric, as in sum = {{play = 1.0, hide = -3.0}}."
            )
        for name, factor in factors.items():
            check_number(f"sum: {name}", factor)
            if factor == 0:
                raise BadInput(f"sum: {name} = 0 adds nothing: leave {name} out.")

    @property
    def places(self) -> tuple[int, ...]:
        """The parts that it is made of: the second, where there is one, counts against it."""
        return (self.gains,)

    def of_parts(self, amount: Callable[[int], Any]) -> Any:
        """Its amount, from that of each part by place."""
        return reduce(sub, map(amount, self.places))

    @property
    def of(self) -> tuple[Combination, ...]:
        return (self,)

    def fraction(self, *values: Any) -> tuple[Any, Any]:
        [value] = values
        return value, 1.0

    @property
    def multiple_of(self) -> str | None:
        return self.name

    @property
    def has_range(self) -> bool:
        return True

    @property
    def is_calibrated(self) -> bool:
        return True

    @property
    def is_planned(self) -> bool:
        return True


@dataclass(frozen=True)
class Difference(Combination):
    """A metric with losses: one part less another."""

    losses: int  # the place of the part that counts against it

    may_be_negative = True

    def note(self, log: LogFacts) -> str | None:
        without = f"{some_of(log.without)}, " if log.without else ""
        return (
            f"what has losses is without {without}betting intervals, lower bounds and calibration, which are for"
            " rewards of 0 or more."
        )

    @property
    def places(self) -> tuple[int, ...]:
        return self.gains, self.losses

    @property
    def has_range(self) -> bool:
        return False

    @property
    def needs_clear_control(self) -> bool:
        return True

    @property
    def is_calibrated(self) -> bool:
        return False

    @property
    def is_planned(self) -> bool:
        return False


@dataclass(frozen=True)
class Ratio(Formula):
    """A metric that is one metric per another."""

    above: Combination
    below: Combination

    keys = ("ratio",)
    noun = "a ratio"

    @classmethod
    def check(cls, table: MadeOf) -> None:
        check_pair("ratio", table.ratio)

    @classmethod
    def made(cls, name: str, table: MadeOf, metrics: Linear) -> Formula:
        above, below = (metrics.find(name, "ratio", of) for of in table.ratio or ())
        if above == below:
            raise BadInput(f"[metrics.{name}] ratio is of {above.name} by itself, which is always 1.")
        return cls(name, above, below)

    def note(self, log: LogFacts) -> str | None:
        return "a ratio of metrics has the interval of noise alone, no sensitivity band and no bounds."

    @property
    def of(self) -> tuple[Combination, ...]:
        return self.above, self.below

    def fraction(self, *values: Any) -> tuple[Any, Any]:
        above, below = values
        return above, below

    @property
    def divisor(self) -> str | None:
        return self.below.name


@dataclass(frozen=True)
class PerUnit(Formula):
    """A metric per unit, not per display."""

    metric: Combination

    keys = ("per", "of")
    noun = "per unit"
    counts_units = True

    @classmethod
    def check(cls, table: MadeOf) -> None:
        if table.per is not None and table.per != UNIT:
            raise BadInput(f'per = {table.per!r}: a metric is per display, or per = "unit".')
        if (table.per is None) != (table.of is None):
            raise BadInput('per and of belong together, as in per = "unit", of = "click".')
        if table.of is not None and not isinstance(table.of, str):
            raise BadInput(f'of = {table.of!r}: expected the name of a metric, as in of = "click".')

    @classmethod
    def made(cls, name: str, table: MadeOf, metrics: Linear) -> Formula:
        return cls(name, metrics.find(name, "of", str(table.of)))

    def note(self, log: LogFacts) -> str | None:
        if not log.displays_per_unit:
            return None
        count = format_number(log.displays_per_unit)
        return f"per {log.unit}, which has {count} displays on average in this log; that number is taken as known."

    @property
    def of(self) -> tuple[Combination, ...]:
        return (self.metric,)

    def fraction(self, *values: Any) -> tuple[Any, Any]:
        value, units = values
        return value, units

    def per(self, unit: str | None) -> str | None:
        return unit

    @property
    def multiple_of(self) -> str | None:
        return self.metric.name

    @property
    def has_range(self) -> bool:
        return True  # where its metric has one, which is refused itself where it has none

    @property
    def needs_clear_control(self) -> bool:
        return self.metric.needs_clear_control

    @staticmethod
    def obstacles(log: LogColumns) -> list[str]:
        """Why a log has no value per unit; nothing where it has."""
        if log.unit is None:
            return ['name the column of units in [log] unit, as in unit = "user".']
        return [
            f"of {MULTIPLICITIES[role].log} ([log] {role}) nobody knows how many displays a {log.unit} had. Leave the"
            " metric out, or take a log with all rows."
            for role in multiplicities_of(log)
        ]

    def refuse(self, log: LogColumns, analysis: Analysis) -> None:
        for obstacle in self.obstacles(log):
            raise BadInput(f'[metrics.{self.name}] per = "unit": {obstacle}')


#: all kinds; of what is wrong with several metrics, the first kind's is said
KINDS: tuple[type[Formula], ...] = (Combination, Ratio, PerUnit)


def check_made(table: MadeOf) -> None:
    """Refuse a [metrics.NAME] table whose definition has a wrong type, or says two things."""
    given = [kind.keys[0] for kind in table.kinds]
    if len(given) > 1:
        raise BadInput(
            f"{' and '.join(given)} are both given: a metric is one of {_either(' and '.join(k.keys) for k in KINDS)}."
        )
    for kind in KINDS:
        kind.check(table)


def check_pair(key: str, given: Any) -> None:
    """Refuse a key that is not the names of two metrics."""
    are_two = isinstance(given, list | tuple) and len(given) == 2 and all(isinstance(name, str) for name in given)
    if given is not None and not are_two:
        raise BadInput(f'{key} = {given!r}: expected two metrics, as in {key} = ["revenue", "click"].')


def table_words() -> str:
    """What the table of a metric that is made of others has, in words: a sum, a ratio, or per and of."""
    return _either(f"a {kind.keys[0]}" if len(kind.keys) == 1 else " and ".join(kind.keys) for kind in KINDS)


def derived_nouns() -> str:
    """What a metric without sums of its own is, in words: a ratio or per unit."""
    *nouns, last = (kind.noun for kind in KINDS if kind is not Combination)
    return f"{', '.join(nouns)} or {last}"


def unknown_metric(where: str, name: str, known: tuple[str, ...]) -> str:
    """The sentence on a name that is no metric."""
    known = tuple(dict.fromkeys(known))
    what = f"{where} names '{name}', which is no metric.{nearest(str(name), known)}"
    return f"{what} The metrics are: {', '.join(known)}."


def _either(words: Any) -> str:
    *words, last = words
    return f"{', '.join(words)}, or {last}"

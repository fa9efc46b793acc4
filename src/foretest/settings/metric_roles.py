"""The tables [metrics.NAME]: what a metric is for (a goal to move, something to watch, or a guardrail that must not get
much worse), and what it is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from foretest.errors import BadInput, check_number, choose, nearest
from foretest.records import dataclass
from foretest.settings.changed_fields import call_text, changed_fields
from foretest.settings.key_help import explained
from foretest.settings.metric_kinds import MadeOf, check_made, table_words
from foretest.settings.unknown_keys import refuse_unknown
from foretest.settings.winsorising import Winsorising, winsorising

GOAL, SECONDARY, GUARDRAIL = ROLES = ("goal", "secondary", "guardrail")
INCREASE, DECREASE = DIRECTIONS = ("increase", "decrease")
_MIRRORED = {
    "positive": "negative", "negative": "positive",
    "leans positive": "leans negative", "leans negative": "leans positive",
}  # fmt: skip


@dataclass(frozen=True)
class Purpose:
    """The keys of [metrics.NAME] that say what a metric is for."""

    role: str | None = explained(
        None, "goal, secondary or guardrail; default: goal where no metric has a role, else secondary"
    )
    direction: str | None = explained(None, "the way that is better: increase (the default) or decrease")
    margin: float | None = explained(
        None, "of a guardrail, the share of the control's value that it may get worse by, as in 0.01"
    )


@dataclass(frozen=True)
class MetricRole(MadeOf, Purpose):
    """The table [metrics.NAME]. `direction` is the way that is better; `margin`, of a guardrail, is the share of the
    control's value that it may get worse by.

    A metric may be made of others: `sum`, of metrics times a factor each; `ratio`, of two metrics; `per="unit"` and
    `of`, a metric per unit. `signed` says that a column of rewards may have losses, as negative numbers. `winsorise`
    cuts a reward at a quantile of the log, or at a limit.

    >>> import foretest as ft
    >>> ft.MetricRole(role="guardrail", direction="decrease", margin=0.01).limit
    0.01
    """

    signed: bool = explained(False, "the column of rewards may have losses, as negative numbers")
    winsorise: float | Mapping[str, float | None] | None = explained(
        None, "cut the reward at a quantile of the log, as in 0.99, or at a limit, as in {limit = 500}"
    )

    def __post_init__(self) -> None:
        if self.winsorising is not None and (self.is_derived or self.signed):
            raise BadInput(
                "winsorise is for a column of rewards of 0 or more: cut the rewards that the metric is made of."
            )
        check_made(self)
        if not isinstance(self.signed, bool):
            raise BadInput(f"signed = {self.signed!r}: expected true or false.")
        if self.signed and self.is_derived:
            raise BadInput(
                f"signed is for a column of rewards, and this metric is made by {self.kinds[0].keys[0]}: a sum may have"
                " any sign."
            )
        if self.sum is not None:
            object.__setattr__(self, "sum", {name: float(factor) for name, factor in self.sum.items()})
        for key in dataclasses.fields(MadeOf):
            if isinstance(names := getattr(self, key.name), list):
                object.__setattr__(self, key.name, tuple(names))
        if self.role is not None:
            choose("role", self.role, ROLES)
        if self.direction is not None:
            choose("direction", self.direction, DIRECTIONS)
        if self.margin is not None:
            if self.role != GUARDRAIL:
                raise BadInput(f'margin = {self.margin!r} is for a guardrail: add role = "guardrail", or leave it out.')
            check_number("margin", self.margin, above=0.0, below=1.0)
        elif self.role == GUARDRAIL:
            raise BadInput('role = "guardrail" needs a margin, as in margin = 0.01: it may get worse by less than 1 %.')

    def __repr__(self) -> str:
        return call_text(self, changed_fields(self))

    @property
    def has_role(self) -> bool:
        """Does the table say what the metric is for, and not only what it is made of?"""
        return self.role is not None or self.direction is not None or self.margin is not None

    @property
    def winsorising(self) -> Winsorising | None:
        """How the reward is cut, where it is."""
        return winsorising(self.winsorise)

    @property
    def is_derived(self) -> bool:
        """Is it made of other metrics?"""
        return bool(self.kinds)

    @property
    def limit(self) -> float:
        """The relative uplift beyond which a guardrail is broken."""
        margin = self.margin or 0.0
        return margin if self.direction == DECREASE else -margin


def checked_roles(given: Any, rewards: tuple[str, ...]) -> dict[str, MetricRole]:
    """Roles by metric, from objects or tables; names that are no metric are refused, and roles without a goal."""
    if not isinstance(given, Mapping):
        raise BadInput(f"metrics = {given!r}: expected a table by metric, as in [metrics.{rewards[0]}].")
    roles: dict[str, MetricRole] = {}
    for name, entry in given.items():
        where = f"[metrics.{name}]"
        if isinstance(entry, Mapping):
            refuse_unknown(where, entry, [f.name for f in dataclasses.fields(MetricRole)])
            try:
                entry = MetricRole(**entry)
            except BadInput as error:
                raise BadInput(f"{where} {error}") from None
        if not isinstance(entry, MetricRole):
            raise BadInput(f"{where} = {entry!r}: expected a table with role, direction and margin.")
        if entry.is_derived and name in rewards:
            raise BadInput(f"{where} is a column of [log] rewards, and made of metrics here: give it another name.")
        if name not in rewards and not entry.is_derived:
            raise BadInput(
                f"{where}: there is no metric '{name}'.{nearest(str(name), rewards)} The rewards are:"
                f" {', '.join(rewards)}. A metric of metrics has {table_words()}."
            )
        roles[name] = entry
    if any(role.role for role in roles.values()) and not any(role.role == GOAL for role in roles.values()):
        raise BadInput(
            f'[metrics] gives roles, but none is the goal: add [metrics.{rewards[0]}] with role = "goal", or name'
            " another."
        )
    return roles


def role_of(roles: Mapping[str, MetricRole], name: str) -> MetricRole:
    """A metric's role, defaults filled in: all are goals where no role is given, else the others are secondary."""
    role = roles.get(name, MetricRole())
    default = SECONDARY if any(other.role for other in roles.values()) else GOAL
    return dataclasses.replace(role, role=role.role or default, direction=role.direction or INCREASE)


def toward_good(verdict: str, direction: str) -> str:
    """A verdict or a word as it would be if higher were better: positive is good and negative is bad, whatever the
    direction.

    >>> toward_good("positive", "decrease"), toward_good("positive", "increase"), toward_good("neutral", "decrease")
    ('negative', 'positive', 'neutral')
    """
    return _MIRRORED.get(verdict, verdict) if direction == DECREASE else verdict


def roles_dict(roles: Mapping[str, MetricRole]) -> dict[str, dict[str, Any]]:
    """The roles as the tables of a settings file."""
    tables = {}
    for name, role in roles.items():
        whole = dataclasses.replace(role, direction=role.direction or INCREASE) if role.has_role else role
        given = {key: value for key, value in vars(whole).items() if value is not None and value is not False}
        tables[name] = {key: _plain(value) for key, value in given.items()}
    return tables


def _plain(value: Any) -> Any:
    """A value as JSON and TOML have it."""
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value

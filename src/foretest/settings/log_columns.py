"""Which column of the log plays which role: the table [log]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from foretest.errors import BadInput, nearest
from foretest.records import dataclass
from foretest.settings.changed_fields import Fields, call_text, changed_fields
from foretest.settings.key_help import explained
from foretest.settings.late_rewards import check_times
from foretest.settings.long_layout import DISPLAY, LONG, check_layout, derived_fields
from foretest.settings.multiplicity import KEY, Multiplicity, multiplicity


@dataclass(frozen=True)
class LogColumns:
    """Which column plays which role in the log; one row is one display, or with layout="long" one item of a display.

    >>> import foretest as ft
    >>> ft.LogColumns(rewards=["click"], unit="user").rewards
    ('click',)
    >>> ft.LogColumns(rewards=["click"], layout="long", display="view", item="sku", slot="place").id
    'view'
    """

    rewards: tuple[str, ...] = field(
        metadata={"help": "the metrics: columns of numbers of 0 or more, or of true and false"}
    )
    unit: str | None = explained(
        None, "who is independent of whom, such as the user; default: every row is its own unit"
    )
    ranking: str | None = explained(
        None, "what was shown, best slot first: positions in the row's lists or, with candidates, ids"
    )
    candidates: str | None = explained(None, "the ids of the eligible items, where ranking has ids")
    id: str | None = explained(None, "the display, for random draws; default: a hash of other columns")
    date: str | None = explained(None, "the day of the display, for results by day")
    features: tuple[str, ...] = explained(
        (), "columns of the context, for the value model; none may come from the treatment"
    )
    slot_rewards: Mapping[str, str] | None = explained(
        None, "which slot earned the reward: by metric, a list column with one number per shown slot"
    )
    segments: tuple[str, ...] = explained((), "columns to read the answer by")
    logger: str | None = explained(None, "which of several policies showed the row: the name of a control")
    item_features: tuple[str, ...] = explained(
        (), "list columns with one value per eligible item, for the reward model"
    )
    layout: str = explained(DISPLAY, "display: one row per display; long: one row per display and item")
    display: str | None = explained(None, "of a long log, the column with the display's id")
    item: str | None = explained(None, "of a long log, the column with the item's id")
    slot: str | None = explained(None, "of a long log, the column with the item's slot, null where it was not shown")
    first_slot: int = explained(1, "of a long log, the number of the best slot: 0 or 1")
    tables: Mapping[str, str] | None = explained(
        None, "of a long log in several files: displays, items and rewards, by name"
    )
    keep: str | None = multiplicity(
        "the probability with which the row was kept when the log was thinned",
        meaning="the probability with which a row was kept", where="when the log was thinned", log="a thinned log",
        rows="rows were left out",
    )  # fmt: skip
    time: str | None = explained(None, "when the display was shown, without a zone in UTC")
    reward_time: str | Mapping[str, str] | None = explained(
        None, "when the reward came, null where there is none; or a table by metric"
    )
    reward_age: str | Mapping[str, str] | None = explained(
        None, "in place of reward_time: how many seconds after the display the reward came"
    )
    read_at: str | None = explained(None, "when the log was read, a time and no column; default: the latest time in it")

    def __post_init__(self) -> None:
        for name in ("rewards", "features", "segments", "item_features"):
            object.__setattr__(self, name, _names(f"[log] {name}", getattr(self, name)))
        for name in ("unit", "ranking", "candidates", "id", "date", "logger", *MULTIPLICITIES):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise BadInput(f"[log] {name} = {value!r}: expected the name of a column.")
        if not self.rewards:
            raise BadInput("[log] rewards is empty: name at least one reward column.")
        if len(set(self.rewards)) < len(self.rewards):
            raise BadInput(f"[log] rewards names a column twice: {', '.join(self.rewards)}.")
        if len(set(self.segments)) < len(self.segments):
            raise BadInput(f"[log] segments names a column twice: {', '.join(self.segments)}.")
        if len(set(self.item_features)) < len(self.item_features):
            raise BadInput(f"[log] item_features names a column twice: {', '.join(self.item_features)}.")
        self._check_multiplicities()
        check_times(self)
        check_layout(self)
        if self.layout == LONG:
            for name, value in derived_fields(self).items():
                object.__setattr__(self, name, value)
        for name in ("candidates", "item_features"):
            if getattr(self, name) and self.ranking is None:
                raise BadInput(f"[log] {name} is given without ranking: name the column of the shown items too.")
        if self.slot_rewards is not None:
            self._check_slots(self.slot_rewards)

    def __repr__(self) -> str:
        return call_text(self, self.written())

    def written(self) -> Fields:
        """The fields that differ from their defaults, as a user writes them."""
        fields = changed_fields(self)
        return fields if self.layout == DISPLAY else {k: v for k, v in fields.items() if k not in derived_fields(self)}

    @property
    def contexts(self) -> tuple[str, ...]:
        """The columns that say in which context a row was shown."""
        return tuple(dict.fromkeys([*self.features, *self.segments]))

    def _check_multiplicities(self) -> None:
        """Refuse a column of another role as one that says how many displays a row stands for."""
        others = {"rewards": self.rewards, "unit": (self.unit,), "id": (self.id,), "logger": (self.logger,)}
        for role, column in multiplicities_of(self).items():
            for other, columns in others.items():
                if column in columns:
                    raise BadInput(
                        f"[log] {role} and [log] {other} both name the column '{column}': {role} is"
                        f" {MULTIPLICITIES[role].meaning} {MULTIPLICITIES[role].where}."
                    )
            others[role] = (column,)

    def _check_slots(self, slot_rewards: Any) -> None:
        if not isinstance(slot_rewards, Mapping) or not all(isinstance(v, str) for v in slot_rewards.values()):
            raise BadInput(
                f"[log] slot_rewards = {slot_rewards!r}: expected a list column for each metric, as in"
                f' {{{self.rewards[0]} = "slot_{self.rewards[0]}"}}.'
            )
        for name in slot_rewards:
            if name not in self.rewards:
                remedy = (
                    "One of the two is misspelt" if nearest(str(name), self.rewards) else "Add it there, or take it out"
                )
                raise BadInput(
                    f"[log] slot_rewards names '{name}', which is not among [log] rewards: {', '.join(self.rewards)}."
                    f" {remedy}."
                )
        if self.ranking is None:
            raise BadInput("[log] slot_rewards is given without ranking: name the column of the shown items too.")


#: the words of the columns that say how many displays a row stands for, by role
MULTIPLICITIES: dict[str, Multiplicity] = {
    field.name: field.metadata[KEY] for field in fields(LogColumns) if KEY in field.metadata
}


def multiplicities_of(log: LogColumns) -> dict[str, str]:
    """The columns that say how many displays a row stands for, by role; none where every row stands for itself."""
    return {role: column for role in MULTIPLICITIES if (column := getattr(log, role)) is not None}


def _names(where: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        raise BadInput(f'{where} = {value!r}: expected a list of column names, as in ["click"].')
    return tuple(value)

"""Which column of the log plays which role: the table [log]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foretest.errors import BadInput, nearest
from foretest.settings.changed_fields import Fields, call_text, changed_fields
from foretest.settings.late_rewards import check_times
from foretest.settings.long_layout import DISPLAY, LONG, check_layout, derived_fields


@dataclass(frozen=True)
class LogColumns:
    """Which column plays which role in the log; one row is one display, or with layout="long" one item of a display.

    >>> LogColumns(rewards=["click"], unit="user").rewards
    ('click',)
    >>> LogColumns(rewards=["click"], layout="long", display="view", item="sku", slot="place").id
    'view'
    """

    rewards: tuple[str, ...]
    unit: str | None = None
    ranking: str | None = None
    candidates: str | None = None
    id: str | None = None
    date: str | None = None
    features: tuple[str, ...] = ()
    slot_rewards: Mapping[str, str] | None = None
    segments: tuple[str, ...] = ()
    logger: str | None = None
    item_features: tuple[str, ...] = ()
    layout: str = DISPLAY
    display: str | None = None
    item: str | None = None
    slot: str | None = None
    first_slot: int = 1
    tables: Mapping[str, str] | None = None
    keep: str | None = None
    time: str | None = None
    reward_time: str | Mapping[str, str] | None = None
    reward_age: str | Mapping[str, str] | None = None
    read_at: str | None = None

    def __post_init__(self) -> None:
        for name in ("rewards", "features", "segments", "item_features"):
            object.__setattr__(self, name, _names(f"[log] {name}", getattr(self, name)))
        for name in ("unit", "ranking", "candidates", "id", "date", "logger", "keep"):
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
        self._check_keep()
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

    def _check_keep(self) -> None:
        """Refuse a column of another role as the probability with which rows were kept."""
        others = {"rewards": self.rewards, "unit": (self.unit,), "id": (self.id,), "logger": (self.logger,)}
        role = None if self.keep is None else next((name for name, own in others.items() if self.keep in own), None)
        if role is not None:
            raise BadInput(
                f"[log] keep and [log] {role} both name the column '{self.keep}': keep is the probability"
                " with which a row was kept when the log was thinned."
            )

    def _check_slots(self, slot_rewards: Any) -> None:
        if not isinstance(slot_rewards, Mapping) or not all(isinstance(v, str) for v in slot_rewards.values()):
            raise BadInput(
                f"[log] slot_rewards = {slot_rewards!r}: expected a list column for each metric, as in"
                f' {{{self.rewards[0]} = "slot_{self.rewards[0]}"}}.'
            )
        for name in slot_rewards:
            if name not in self.rewards:
                raise BadInput(
                    f"[log] slot_rewards names '{name}', which is no reward.{nearest(str(name), self.rewards)}"
                    f" The rewards are: {', '.join(self.rewards)}."
                )
        if self.ranking is None:
            raise BadInput("[log] slot_rewards is given without ranking: name the column of the shown items too.")


def _names(where: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        raise BadInput(f'{where} = {value!r}: expected a list of column names, as in ["click"].')
    return tuple(value)
